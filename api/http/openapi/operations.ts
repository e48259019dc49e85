import { MAX_PAGE } from "../../../db/store.ts";
import { ref } from "../../base/json-schema.ts";
import { KIND_EXAMPLES, SNAPSHOT } from "../../documents/kind-examples.ts";
import { KINDS } from "../../model/decision.ts";
import { AGREEMENT_VERDICTS, MAX_OUTCOMES_POSTED, OUTCOME_KINDS } from "../../model/outcome.ts";
import { DEFAULT_LIMIT, MAX_LIMIT, MAX_MARGIN_PERCENT } from "../../service/advise/advise-node.ts";
import { DEFAULT_MARGIN_PERCENT, DEFAULT_PERCENTILE } from "../../service/advise/reserves.ts";
import { DEFAULT_EXPORTED } from "../../service/export-page.ts";
import { MAX_TOUCHED } from "../../service/lint-touched.ts";
import { DEFAULT_PAGE, timeOrAgoMeta as TIME_OR_AGO } from "../decision-list.ts";
import { MAX_IMPORT_ROWS } from "../export-import.ts";
import {
  AGO,
  DECISION_FILTERS,
  FILE,
  FLEET_OPERATIONS,
  format,
  limit,
  ofReason,
  pageToken,
  REMOVAL_OPERATIONS,
} from "./list-operations.ts";
import {
  BATCH,
  BODY,
  DECISION,
  decisionId,
  EXPORT_LINES,
  ID,
  idempotencyKey,
  json,
  LINT,
  node,
  type Operation,
  OUTCOMES,
  path,
  query,
  REFUSALS,
  REPLAY,
  REPLAY_HISTORY,
  results,
  TURN,
  UPGRADE,
  WHY,
} from "./operation.ts";

const AGREEMENT_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/nodes/:node/outcomes": {
    tag: "history",
    summary: "Report what the node's kubelet did, and compare each outcome with the decision on the snapshot before it",
    description: `Each outcome is compared with the decision on the last snapshot that was observed before the outcome and stored before the outcome was reported, by the rules of the node's kubelet version. Post the v1.Pod as \`object\` with the outcome of a pod: a snapshot seldom has a pod that was just created. An outcome that is seen both in a status and in an event counts once; posting an outcome twice changes nothing. Outcomes that were recorded within two minutes of the posted ones are compared again. A request has at most ${MAX_OUTCOMES_POSTED} outcomes.`,
    parameters: [node],
    body: json(ref("OutcomesPosted"), OUTCOMES),
    answers: { 200: "OutcomesRecorded", 201: "OutcomesRecorded" },
    problems: [...BODY, "too_large"],
  },
  "GET /v1/agreement": {
    tag: "history",
    summary: "Count how often the decisions agree with what kubelets did, and list the outcomes, newest first",
    description: `\`/v1/agreement?reason=OutOfcpu&since=12h&format=csv\` lists every pod that a kubelet refused for lack of CPU in the last 12 hours. ${FILE}`,
    parameters: [
      query("since", `The beginning, only outcomes of this time or later: ${AGO}`, TIME_OR_AGO),
      query("until", `The end, only outcomes before this time: ${AGO}`, TIME_OR_AGO),
      query("kind", "Only outcomes of this kind", { type: "string", enum: OUTCOME_KINDS }),
      query("node", "Only outcomes of this node"),
      ofReason(
        "the reason of a refusal such as OutOfcpu; Evicted, Preempting, Deferred or Infeasible; or the pressure condition",
      ),
      query("pod", "Only outcomes of this pod: a uid, a name, or namespace/name"),
      query("namespace", "Only outcomes of pods in this namespace"),
      query("verdict", "Only outcomes with this verdict; the counts are over all verdicts", {
        type: "string",
        enum: AGREEMENT_VERDICTS,
      }),
      limit(DEFAULT_PAGE),
      pageToken,
      format,
    ],
    answers: { 200: "AgreementAnswer" },
    problems: ["invalid_query"],
    csv: true,
  },
};

const REPLAY_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/replay": {
    tag: "history",
    summary: "Decide the history again, optionally with another configuration, and count the decisions that differ",
    description:
      "The request replays one page, the oldest decision first: continue with `nextPageToken` until it is null, and add up the counts. A decision that uses facts gets the facts that it used when it was recorded. A decision whose snapshot is no longer stored, or whose record is damaged, is counted separately and skipped. Nothing is recorded.",
    body: json(ref("HistoryReplayRequest"), REPLAY_HISTORY),
    answers: { 200: "HistoryReplay" },
    problems: [...BODY, "unknown_node"],
  },
};

const LINT_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/lint": {
    tag: "decide",
    summary: "Find faults and likely faults of a KubeletConfiguration",
    description: `The findings are faults that keep the kubelet from starting, in its own messages; defaults that are lost because a field is set; and settings that conflict or have no effect. With a snapshot, the node's sizes, machine and state files are checked too. \`touched\` is the number of the newest ${MAX_TOUCHED} decisions about the node (without a node: about all nodes) that the finding touched; if that takes long, fewer decisions are tried. Nothing is recorded.`,
    body: json(ref("LintRequest"), LINT),
    answers: { 200: "LintAnswer" },
    problems: [...BODY, "unknown_node", "unknown_snapshot"],
  },
};

const UPGRADE_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/upgrade": {
    tag: "decide",
    summary: "Report what another kubelet version changes on a node, and what to do before the change of version",
    description:
      "The report has the faults that keep the kubelet from starting with the configuration, in its own messages; feature gates and defaults that change; static pods that restart; decisions that change on the snapshot; changes of flags, files, events and metrics; and the steps in order. With `since` or `until` the answer also has a page of the history: each decision is made again as a kubelet of `to` with its own recorded configuration, and compared with the recorded decision. Continue with `nextPageToken` until it is null, and add up the counts. `to` may be older than `from` (a downgrade). Nothing is recorded.",
    body: json(ref("UpgradeRequest"), UPGRADE),
    answers: { 200: "UpgradeAnswer" },
    problems: [...BODY, "needs_input", "unknown_node", "unknown_snapshot"],
  },
};

const WHY_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/why": {
    tag: "decide",
    summary:
      "Explain the state of a pod: findings, the decisions behind them, changes that would help, and the pods that are next",
    description:
      "The documents may be of any kind and in any order, as their content identifies them: pods, nodes, events and lists of them, /configz, /stats/summary, the text of a cpu.stat, the output of crictl, NodeSnapshots, decisions. Without documents, or with `node`, the history is read. Without `pod` the answer lists the pods that have findings, the worst first. Nothing is recorded.",
    body: json(ref("WhyRequest"), WHY),
    answers: { 200: "WhyAnswer" },
    problems: [...BODY, "no_such_pod", "unknown_node"],
  },
  "GET /v1/nodes/:node/pods/:namespace/:name/why": {
    tag: "history",
    summary: "Explain the state of a pod from the history",
    parameters: [node, path("namespace", "The pod's namespace"), path("name", "The pod's name")],
    answers: { 200: "WhyAnswer" },
    problems: ["unknown_node", "no_such_pod", "invalid_input", "invalid_query"],
  },
};

const ADVICE_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes/:node/advice/reserves": {
    tag: "history",
    summary: "Recommend kubeReserved and systemReserved for a node from its measured use",
    description:
      "The measurements are the system containers in the /stats/summary of the node's recorded snapshots. kubeReserved is for the kubelet and the runtime, systemReserved for the usage that belongs neither to them nor to a pod. `patch` may be posted as `kubeletConfigurationPatch`. `notes` lists what was not measured.",
    parameters: [
      node,
      query(
        "since",
        `The beginning, only measurements of this time or later (absent: the last 7 days): ${AGO}`,
        TIME_OR_AGO,
      ),
      query("until", `The end, only measurements before this time: ${AGO}`, TIME_OR_AGO),
      query("percentile", "The percentile of the measurements to use", {
        type: "number",
        exclusiveMinimum: 0,
        maximum: 100,
        default: DEFAULT_PERCENTILE,
      }),
      query("margin", "The percentage to add to the measured amount", {
        type: "integer",
        minimum: 0,
        maximum: MAX_MARGIN_PERCENT,
        default: DEFAULT_MARGIN_PERCENT,
      }),
      query(
        "limit",
        "The number of measurements to read, evenly distributed over the time range; on Workers at most the default",
        {
          type: "integer",
          minimum: 1,
          maximum: MAX_LIMIT,
          default: DEFAULT_LIMIT,
        },
      ),
    ],
    answers: { 200: "ReservesAdvice" },
    problems: ["unknown_node", "unknown_snapshot", "invalid_query"],
  },
};

const bodies = Object.fromEntries(Object.entries(KIND_EXAMPLES).map(([kind, { body }]) => [kind, body]));

/** `METHOD path` of every route, as http/index.ts has it. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/decisions/:decision": {
    tag: "decide",
    summary: "Make a decision on a snapshot",
    description:
      "The answer is a pure function of the request and, for kinds that remember facts, of the facts that the history has of the node. The decision is recorded, and its id is the hash of the request. With `record=false` the answer is the same and nothing is written: no decision, no snapshot, no facts, no removals and no idempotency key, so that a hypothetical request never becomes the node's latest decision.",
    parameters: [
      path("decision", "The kind of decision", { type: "string", enum: KINDS }),
      query("record", "false: the server answers and records nothing", { type: "boolean", default: true }),
      idempotencyKey,
    ],
    body: { ...json(ref("DecisionRequest"), DECISION), examples: bodies },
    answers: { 200: "DecisionAnswer" },
    problems: [...BODY, ...REFUSALS, "unknown_kind", "unknown_snapshot", "idempotency_conflict", "bad_request"],
  },
  "GET /v1/decisions/:decision": {
    tag: "history",
    summary: "Get a recorded decision in full, with the results that the node reported",
    parameters: [decisionId],
    answers: { 200: "FullDecision" },
    problems: ["unknown_decision", "invalid_query"],
  },
  "POST /v1/decisions/:decision/replay": {
    tag: "decide",
    summary:
      "Decide again on the recorded snapshot, optionally with another configuration, and compare the two decisions",
    description:
      "`kubeletConfiguration` replaces the recorded configuration as a whole: a field that it leaves out has the kubelet's default. `kubeletConfigurationPatch` changes single fields of the recorded configuration. Nothing is recorded.",
    parameters: [decisionId],
    body: json(ref("ReplayRequest"), REPLAY, true),
    answers: { 200: "ReplayAnswer" },
    problems: [...BODY, ...REFUSALS, "unknown_decision", "unknown_policy_version", "snapshot_gone"],
  },
  ...REPLAY_OPERATIONS,
  ...LINT_OPERATIONS,
  ...UPGRADE_OPERATIONS,
  ...WHY_OPERATIONS,
  "POST /v1/batch": {
    tag: "decide",
    summary: "Make many decisions: one request per line, one answer per line",
    description:
      'Each line is the body of a decision request with its `kind`; with `"record": false` the line is answered and not recorded. The answers have the order of the lines and contain their numbers; a line with a fault is answered by a line with the problem, without the members that are the same for every line. Blank lines are skipped. The size limit of a body applies to each line. After 1,000 lines with faults the batch ends with a line of the problem `too_many_bad_lines`, and no further line is decided. Read the answers while sending: if more than 1 MiB of them is unread, no further line is read, and a connection without traffic for a minute is closed.',
    body: {
      type: "application/x-ndjson",
      schema: ref("BatchRequest"),
      example: BATCH,
    },
    answers: { 200: { type: "application/x-ndjson", of: "BatchLine" } },
    problems: ["invalid_query", "unsupported_media_type", "unsupported_encoding"],
  },
  "POST /v1/nodes/:node/turns": {
    tag: "decide",
    summary: "Post the changes of a node since its last snapshot, and make all requested decisions about it",
    description:
      "This route is for programs that post a node repeatedly. The first turn posts the whole snapshot; each later turn has the `snapshotId` of the last answer as `base`, and the changes since then. The stored snapshot and the decisions are those of a request with the whole snapshot. If the caller names the id of an earlier decision in `holds`, the answer is a patch of that decision. A decision that is the same as the last one is counted on that record and has its id. `unknown_base` (409): post the whole snapshot. After any other problem the stored state of the node is unchanged.",
    parameters: [node],
    body: json(ref("TurnRequest"), TURN),
    answers: { 200: "TurnAnswer" },
    problems: [...BODY, "unknown_base"],
  },
  "POST /v1/results": {
    tag: "history",
    summary: "Report the results of applying a decision on the node",
    body: json(ref("ResultsReport"), results("00000000000000000000000000000000")),
    answers: { 200: "ResultsStored", 201: "ResultsStored" },
    problems: [...BODY, "unknown_decision"],
  },
  ...FLEET_OPERATIONS,
  "GET /v1/nodes/:node": {
    tag: "history",
    summary: "Get a node and its newest decision of each kind",
    parameters: [node],
    answers: { 200: "NodeAnswer" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/nodes/:node/decisions": {
    tag: "history",
    summary: "List the decisions about a node, newest first",
    description: FILE,
    parameters: [node, ...DECISION_FILTERS],
    answers: { 200: "DecisionList" },
    problems: ["unknown_node", "invalid_query"],
    csv: true,
  },
  ...REMOVAL_OPERATIONS,
  ...AGREEMENT_OPERATIONS,
  ...ADVICE_OPERATIONS,
  "PUT /v1/nodes/:node/snapshot": {
    tag: "history",
    summary: "Store a snapshot, so that decisions can be requested by its id",
    parameters: [node],
    body: json(ref("SnapshotOfNode"), SNAPSHOT),
    answers: { 200: "SnapshotStored", 201: "SnapshotStored" },
    problems: BODY,
  },
  "POST /v1/nodes/:node/deletion": {
    tag: "history",
    summary: "Report that the cluster has deleted the node",
    description:
      "The history of the node stays. The node counts as deleted, not as silent, until it reports something again. The request has no body.",
    parameters: [node],
    answers: { 200: "NodeDeleted" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/history": {
    tag: "history",
    summary: "Export a page of rows for import into another history",
    description:
      "The answer is a page of the output of `nodewise history export --api`: `header` is the first line, and `rows` are the next lines, first the decisions, the oldest first, each row after the texts and snapshots that it needs. `header` and `rows` together are the body of POST /v1/history. A text or a snapshot may occur on several pages. Tokens are not exported.",
    parameters: [
      query("node", "Only entries of this node"),
      query("since", `The beginning, only decisions made at this time or later: ${AGO}`, TIME_OR_AGO),
      query("until", `The end, only decisions made before this time: ${AGO}`, TIME_OR_AGO),
      query(
        "limit",
        "The largest number of decisions and other entries, not counting the texts and snapshots that they need; a large page ends earlier",
        {
          type: "integer",
          minimum: 1,
          maximum: MAX_PAGE,
          default: DEFAULT_EXPORTED,
        },
      ),
      query("pageToken", "The nextPageToken of the previous page, with the same node"),
    ],
    answers: { 200: "HistoryExported" },
    untagged: true,
    problems: ["unknown_node", "invalid_query"],
  },
  "POST /v1/history": {
    tag: "history",
    summary: "Import rows from another history",
    description: `The body is what \`nodewise history import --api\` sends: the first line of an export, then up to ${MAX_IMPORT_ROWS} of its rows, each after the texts and snapshots that it needs. Either all rows are imported or none. Rows keep their ids and times. A row that the history already has is not changed, so sending it twice has no effect.`,
    body: { type: "application/x-ndjson", schema: ref("HistoryLine"), example: EXPORT_LINES },
    answers: { 200: "HistoryImported" },
    problems: BODY,
  },
  "GET /v1/snapshots/:id": {
    tag: "history",
    summary: "Get a stored snapshot",
    description: "Environment variables, commands and arguments are never stored.",
    parameters: [path("id", "A snapshot's id", ID)],
    answers: { 200: "StoredSnapshot" },
    problems: ["unknown_snapshot", "invalid_query"],
  },
  "GET /healthz": {
    tag: "operate",
    summary: "Check that the process answers",
    answers: { 200: "Health" },
    problems: [],
    untagged: true,
  },
  "GET /readyz": {
    tag: "operate",
    summary: "Check that the history accepts writes and has all migrations",
    answers: { 200: "Ready" },
    problems: ["history_unavailable"],
    untagged: true,
  },
  "GET /metrics": {
    tag: "operate",
    summary: "Get the metrics of the process and of the nodes, for Prometheus",
    description: "The metrics of the nodes are missing while the history cannot be read.",
    answers: { 200: { type: "text/plain" } },
    problems: [],
    untagged: true,
  },
  "GET /metrics/nodes": {
    tag: "operate",
    summary: "Get only the metrics of the nodes, for Prometheus",
    description:
      "The values are those of each node's newest decisions. With more nodes than `--metrics-nodes`, only the nodes in the worst state are listed.",
    answers: { 200: { type: "text/plain" } },
    problems: [],
    untagged: true,
  },
  "GET /openapi.json": {
    tag: "read about it",
    summary: "Get this OpenAPI document",
    answers: { 200: { type: "application/json" } },
    problems: [],
  },
};
