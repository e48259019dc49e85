import { REMOVAL_TARGETS } from "../../../db/rows.ts";
import { MAX_PAGE } from "../../../db/store.ts";
import { LIMITS } from "../../base/limits.ts";
import { REMOVAL_ENDS } from "../../model/container-gc.ts";
import { KINDS, VERDICTS } from "../../model/decision.ts";
import { END_REASON_PATTERN } from "../../model/end-reasons.ts";
import { ADMITTED, REMOVING_KINDS } from "../../model/kinds.ts";
import { KNOWN_VERSION_PATTERN } from "../../profiles/index.ts";
import { ASKED_VERSION, FLEET_SORTS, FLEET_VIEWS } from "../../service/fleet.ts";
import { DEFAULT_PAGE, timeOrAgoMeta as TIME_OR_AGO } from "../decision-list.ts";
import { MAX_HOURS, ORDERS, PRESSURES } from "../fleet.ts";
import { MAX_CSV_ROWS } from "../route.ts";
import { node, type Operation, query } from "./operation.ts";

export const AGO = "an RFC 3339 time, or a duration back from now such as 12h or 7d";
const since = query("since", `The beginning, only removals of this time or later: ${AGO}`, TIME_OR_AGO);
const until = query("until", `The end, only removals before this time: ${AGO}`, TIME_OR_AGO);
export const pageToken = query("pageToken", "The nextPageToken of the previous page, with the same filters");
export const limit = (usual: number) =>
  query("limit", `The largest number of entries of a page; the default for CSV is ${MAX_CSV_ROWS}`, {
    type: "integer",
    minimum: 1,
    maximum: MAX_PAGE,
    default: usual,
  });
export const format = query("format", "csv: the answer is a CSV file, as with `Accept: text/csv`", {
  type: "string",
  enum: ["json", "csv"],
});
export const FILE = `A CSV answer has up to ${MAX_CSV_ROWS} rows; if there are more, the answer has a Link header with rel="next".`;

export const ofReason = (what: string, more: object = {}) =>
  query("reason", `Only entries with this reason of the kubelet: ${what}`, {
    type: "string",
    minLength: 1,
    maxLength: LIMITS.textLength,
    ...more,
  });

export const DECISION_FILTERS = [
  query("kind", "Only decisions of this kind", { type: "string", enum: KINDS }),
  query(
    "verdict",
    "Only decisions with this verdict; admitted: decisions of the kind `kind` (default: admission) that admit a pod",
    {
      type: "string",
      enum: [...VERDICTS, ADMITTED],
    },
  ),
  ofReason("a refused pod's reason such as OutOfcpu, or the signal of an eviction such as memory.available", {
    pattern: END_REASON_PATTERN,
  }),
  query("pod", "Only decisions about this pod: a uid, a name, or namespace/name"),
  query("kubelet", "Only decisions made by the rules of this kubelet version, such as 1.36 (see policyVersion)", {
    type: "string",
    pattern: KNOWN_VERSION_PATTERN,
  }),
  query("since", `The beginning, only decisions made at this time or later: ${AGO}`, TIME_OR_AGO),
  query("until", `The end, only decisions made before this time: ${AGO}`, TIME_OR_AGO),
  limit(DEFAULT_PAGE),
  pageToken,
  format,
];

export const FLEET_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes": {
    tag: "history",
    summary: "List the nodes in the history with their state",
    description: `The state of a node comes from its newest decisions and its newest snapshot; the request makes no decisions. A node is listed if it matches all given filters. ${FILE}`,
    parameters: [
      query("name", "Only nodes whose name contains this text, regardless of case"),
      query("namePrefix", "Only nodes whose name begins with this text"),
      query(
        "labelSelector",
        "Only nodes whose labels match this selector, in the form of `kubectl get -l`: `pool=web,zone in (a,b),!gpu`",
      ),
      query("zone", "Only nodes with this value of the label topology.kubernetes.io/zone"),
      query(
        "kubelet",
        "Only nodes with this kubelet version, such as 1.36 or v1.36.3; not-known: nodes that report no version",
        {
          type: "string",
          pattern: ASKED_VERSION.source,
        },
      ),
      query("kind", "Only nodes with a decision of this kind", { type: "string", enum: KINDS }),
      query("verdict", "Only nodes whose newest decision of `kind`, or without `kind` of any kind, has this verdict", {
        type: "string",
        enum: VERDICTS,
      }),
      query(
        "pressure",
        "Only nodes with this pressure condition, with any, with none, or whose pressure is not known",
        {
          type: "string",
          enum: PRESSURES,
        },
      ),
      ofReason(
        "the reason, such as OutOfcpu, with which decisions or the kubelet refused a pod in the counted hours; or the reason of one of the node's newest decisions, such as memory.available",
      ),
      query(
        "show",
        "Only nodes under pressure (or whose pressure is not known), with refusals or evictions by decisions or the kubelet, with drift, or silent for 15 minutes",
        {
          type: "string",
          enum: FLEET_VIEWS,
        },
      ),
      query(
        "sort",
        "severity: the worst state first; headroom: the node that meets an eviction threshold first, by the forecast of the next hour, then by `ratio`",
        {
          type: "string",
          enum: FLEET_SORTS,
          default: "name",
        },
      ),
      query("order", "The order; absent: ascending for names and headroom, descending for everything else", {
        type: "string",
        enum: ORDERS,
      }),
      query("hours", "The number of hours, back from now, in which decisions, refusals and evictions are counted", {
        type: "integer",
        minimum: 1,
        maximum: MAX_HOURS,
        default: 24,
      }),
      limit(MAX_PAGE),
      pageToken,
      format,
    ],
    answers: { 200: "NodeList" },
    problems: ["invalid_query"],
    csv: true,
  },
  "GET /v1/decisions": {
    tag: "history",
    summary: "List the decisions about all nodes, newest first",
    description: `\`/v1/decisions?reason=OutOfcpu&since=12h\` lists every pod that was refused for lack of CPU in the last 12 hours. Decisions that an earlier version recorded have no reason. ${FILE}`,
    parameters: [query("node", "Only decisions about this node"), ...DECISION_FILTERS],
    answers: { 200: "DecisionList" },
    problems: ["unknown_node", "invalid_query"],
    csv: true,
  },
};

export const REMOVAL_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes/:node/removals": {
    tag: "history",
    summary:
      "List the images, containers, sandboxes and logs that were removed from a node, with time and reason, newest first",
    description:
      "The removals come from requests with `done`: removals that were only planned are not listed. They are kept for the longest age of decisions, even if the decisions are deleted earlier because of their number.",
    parameters: [
      node,
      query("kind", "Only removals of this kind of decision", { type: "string", enum: REMOVING_KINDS }),
      query("target", "Only removals of this sort of object", { type: "string", enum: REMOVAL_TARGETS }),
      query("end", "Only removals that ended like this", { type: "string", enum: REMOVAL_ENDS }),
      since,
      until,
      query("q", "Only removals where an id, an image's name, NAMESPACE/POD or a container's name contains this text", {
        type: "string",
        minLength: 1,
        maxLength: LIMITS.textLength,
      }),
      query("limit", "The largest number of entries", {
        type: "integer",
        minimum: 1,
        maximum: MAX_PAGE,
        default: DEFAULT_PAGE,
      }),
      pageToken,
    ],
    answers: { 200: "RemovalList" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/nodes/:node/removals/summary": {
    tag: "history",
    summary: "Sum up how much space the removal of images freed, and how often the images were pulled again",
    parameters: [node, since, until],
    answers: { 200: "RemovalSummary" },
    problems: ["unknown_node", "invalid_query"],
  },
};
