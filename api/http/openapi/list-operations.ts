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
const since = query("since", `Removed then or later: ${AGO}`, TIME_OR_AGO);
const until = query("until", `Removed earlier: ${AGO}`, TIME_OR_AGO);
export const pageToken = query("pageToken", "The nextPageToken of the page before, with the same filters");
export const limit = (usual: number) =>
  query("limit", `At most so many; in CSV, where nothing is said, ${MAX_CSV_ROWS}`, {
    type: "integer",
    minimum: 1,
    maximum: MAX_PAGE,
    default: usual,
  });
export const format = query("format", "csv: a file for spreadsheets, as `Accept: text/csv` asks for", {
  type: "string",
  enum: ["json", "csv"],
});
export const FILE = `As CSV an answer has up to ${MAX_CSV_ROWS} rows, and where there are more, a Link header with rel="next".`;

export const ofReason = (what: string, more: object = {}) =>
  query("reason", `Only with this reason of the kubelet: ${what}`, {
    type: "string",
    minLength: 1,
    maxLength: LIMITS.textLength,
    ...more,
  });

export const DECISION_FILTERS = [
  query("kind", "Only of this kind", { type: "string", enum: KINDS }),
  query("verdict", "Only with this verdict; admitted: admitted pods, by `kind` or else admission", {
    type: "string",
    enum: [...VERDICTS, ADMITTED],
  }),
  ofReason("a refused pod's reason such as OutOfcpu, the signal of an eviction such as memory.available", {
    pattern: END_REASON_PATTERN,
  }),
  query("pod", "Only about this pod: a uid, a name, or namespace/name"),
  query("kubelet", "Only decided as this version of the kubelet, such as 1.36: see policyVersion", {
    type: "string",
    pattern: KNOWN_VERSION_PATTERN,
  }),
  query("since", `Decided then or later: ${AGO}`, TIME_OR_AGO),
  query("until", `Decided earlier: ${AGO}`, TIME_OR_AGO),
  limit(DEFAULT_PAGE),
  pageToken,
  format,
];

export const FLEET_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes": {
    tag: "history",
    summary: "The nodes in the history, and their state",
    description: `As of each node's newest decisions and its newest snapshot: nothing is decided for it. Several filters select what matches all of them. ${FILE}`,
    parameters: [
      query("name", "Only with this in the name, in upper or lower case"),
      query("namePrefix", "Only whose name begins like this"),
      query("labelSelector", "Only with such labels, as `kubectl get -l` takes it: `pool=web,zone in (a,b),!gpu`"),
      query("zone", "Only with this label topology.kubernetes.io/zone"),
      query(
        "kubelet",
        "Only of this version of the kubelet, such as 1.36 or v1.36.3; not-known: the node reports none",
        {
          type: "string",
          pattern: ASKED_VERSION.source,
        },
      ),
      query("kind", "Only with a decision of this kind", { type: "string", enum: KINDS }),
      query("verdict", "Only whose newest decision of that kind, or of any, has this verdict", {
        type: "string",
        enum: VERDICTS,
      }),
      query("pressure", "Only with this condition, with any, with none, or of which that is not known", {
        type: "string",
        enum: PRESSURES,
      }),
      ofReason(
        "of a pod that was refused in the time that is counted, by decisions or the kubelet, such as OutOfcpu; or of a newest decision, such as memory.available",
      ),
      query(
        "show",
        "Only under pressure (or where that is not known), with refusals or evictions by decisions or the kubelet, with drift, or silent for 15 minutes",
        {
          type: "string",
          enum: FLEET_VIEWS,
        },
      ),
      query(
        "sort",
        "severity: the worst state first; headroom: what meets an eviction threshold first, by the forecast of the next hour, then by the share of the capacity that is left",
        {
          type: "string",
          enum: FLEET_SORTS,
          default: "name",
        },
      ),
      query("order", "Absent: names from a to z, the least headroom first, of everything else the most", {
        type: "string",
        enum: ORDERS,
      }),
      query("hours", "How far back decisions, and refusals and evictions by them and by kubelets, are counted", {
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
    summary: "Decisions about all nodes, newest first",
    description: `\`/v1/decisions?reason=OutOfcpu&since=12h\` is every pod that was refused for lack of CPU last night. Decisions that an earlier version recorded have no reason. ${FILE}`,
    parameters: [query("node", "Only about this node"), ...DECISION_FILTERS],
    answers: { 200: "DecisionList" },
    problems: ["unknown_node", "invalid_query"],
    csv: true,
  },
};

export const REMOVAL_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes/:node/removals": {
    tag: "history",
    summary: "What was removed of a node, when and why, newest first",
    description:
      "Known from requests with `done`: what was only planned is not listed. Kept as long as decisions may be by age, even if those are removed sooner because of their number.",
    parameters: [
      node,
      query("kind", "Only by this kind of decision", { type: "string", enum: REMOVING_KINDS }),
      query("target", "Only of this sort", { type: "string", enum: REMOVAL_TARGETS }),
      query("end", "Only with this end", { type: "string", enum: REMOVAL_ENDS }),
      since,
      until,
      query("q", "Only with this in an id, in an image's name, in NAMESPACE/POD or in a container's name", {
        type: "string",
        minLength: 1,
        maxLength: LIMITS.textLength,
      }),
      query("limit", "At most so many", { type: "integer", minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE }),
      pageToken,
    ],
    answers: { 200: "RemovalList" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/nodes/:node/removals/summary": {
    tag: "history",
    summary: "How much removing images freed, and how often they were pulled again",
    parameters: [node, since, until],
    answers: { 200: "RemovalSummary" },
    problems: ["unknown_node", "invalid_query"],
  },
};
