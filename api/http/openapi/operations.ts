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
    summary: "Report what the node's kubelet did, and compare it with what would have been decided",
    description: `Each is compared on the last snapshot that was observed before it and stored before it was reported, under the profile of the node's kubelet. Of a pod's outcome post the v1.Pod as \`object\`: a snapshot seldom has a pod that was just created. The same outcome, seen in a status and in an event, is one; the same twice changes nothing. Outcomes that were recorded within two minutes of these are compared again. At most ${MAX_OUTCOMES_POSTED} at a time.`,
    parameters: [node],
    body: json(ref("OutcomesPosted"), OUTCOMES),
    answers: { 200: "OutcomesRecorded", 201: "OutcomesRecorded" },
    problems: [...BODY, "too_large"],
  },
  "GET /v1/agreement": {
    tag: "history",
    summary: "How often the decisions here agree with what kubelets did, and the outcomes, newest first",
    description: `\`/v1/agreement?reason=OutOfcpu&since=12h&format=csv\` is every pod that a kubelet refused for lack of CPU last night. ${FILE}`,
    parameters: [
      query("since", `Of then or later: ${AGO}`, TIME_OR_AGO),
      query("until", `Of earlier: ${AGO}`, TIME_OR_AGO),
      query("kind", "Only of this kind", { type: "string", enum: OUTCOME_KINDS }),
      query("node", "Only of this node"),
      ofReason("of a refusal such as OutOfcpu, Evicted, Preempting, Deferred, Infeasible, or the condition"),
      query("pod", "Only of this pod: a uid, a name, or namespace/name"),
      query("namespace", "Only of pods of this namespace"),
      query("verdict", "Only with this verdict; the counts are of all", { type: "string", enum: AGREEMENT_VERDICTS }),
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
    summary:
      "Decide the history again, with another configuration if one is given, and count the decisions that would have been different",
    description:
      "Oldest first, a page at a time: continue with `nextPageToken` until it is null, and add up the counts. Decisions that use facts get the same facts as then. What cannot be decided again, since its snapshot is gone or a record is damaged, is counted apart and passed. Nothing is recorded.",
    body: json(ref("HistoryReplayRequest"), REPLAY_HISTORY),
    answers: { 200: "HistoryReplay" },
    problems: [...BODY, "unknown_node"],
  },
};

const LINT_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/lint": {
    tag: "decide",
    summary: "What is wrong with a KubeletConfiguration, or likely to be",
    description: `What keeps the kubelet from starting, with its own messages; defaults that are lost because a field was set; settings that conflict, or do nothing. With a snapshot the node's sizes, machine and state files are checked too. \`touched\` says how many of the node's newest ${MAX_TOUCHED} decisions (of all nodes without one) each finding touched; fewer were tried where that takes long. Nothing is recorded.`,
    body: json(ref("LintRequest"), LINT),
    answers: { 200: "LintAnswer" },
    problems: [...BODY, "unknown_node", "unknown_snapshot"],
  },
};

const UPGRADE_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/upgrade": {
    tag: "decide",
    summary: "What another version of the kubelet changes on a node, and what to do before",
    description:
      "What keeps the kubelet from starting with the configuration, with its own messages; gates and defaults that change; static pods that restart; which decisions change on the snapshot; flags, files, events and metrics; and the steps, in order. With `since` (or `until`) a page of the history as well, decided again with each decision's own recorded configuration as a kubelet of `to`, and compared with what was recorded: continue with `nextPageToken` until it is null, and add up the counts. A version older than `from`, a downgrade, is answered too. Nothing is recorded.",
    body: json(ref("UpgradeRequest"), UPGRADE),
    answers: { 200: "UpgradeAnswer" },
    problems: [...BODY, "needs_input", "unknown_node", "unknown_snapshot"],
  },
};

const WHY_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/why": {
    tag: "decide",
    summary:
      "Why a pod is in its state: the findings, the decision behind them, what would change it, which pod is next",
    description:
      "Documents of any kind and order, recognised by their content: pods, nodes, events and lists of them, /configz, /stats/summary, the text of a cpu.stat, what crictl prints, NodeSnapshots, decisions. Without documents (or with `node`) the history is asked. Without `pod` the answer lists the pods that have findings, the worst first. Nothing is recorded.",
    body: json(ref("WhyRequest"), WHY),
    answers: { 200: "WhyAnswer" },
    problems: [...BODY, "no_such_pod", "unknown_node"],
  },
  "GET /v1/nodes/:node/pods/:namespace/:name/why": {
    tag: "history",
    summary: "Why a pod is in its state, from the history",
    parameters: [node, path("namespace", "The pod's namespace"), path("name", "The pod's name")],
    answers: { 200: "WhyAnswer" },
    problems: ["unknown_node", "no_such_pod", "invalid_input", "invalid_query"],
  },
};

const ADVICE_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes/:node/advice/reserves": {
    tag: "history",
    summary: "What to reserve for a node's own daemons: kubeReserved and systemReserved, from what was measured",
    description:
      "Measured are the system containers of the /stats/summary in the node's recorded snapshots: the kubelet and the runtime for kubeReserved, and for systemReserved what is neither theirs nor of a pod. `patch` may be posted as `kubeletConfigurationPatch`. `notes` lists what was not measured.",
    parameters: [
      node,
      query("since", `Measured then or later; without it, in the last 7 days: ${AGO}`, TIME_OR_AGO),
      query("until", `Measured earlier: ${AGO}`, TIME_OR_AGO),
      query("percentile", "The percentile of the measurements to use", {
        type: "number",
        exclusiveMinimum: 0,
        maximum: 100,
        default: DEFAULT_PERCENTILE,
      }),
      query("margin", "Percent to add to it", {
        type: "integer",
        minimum: 0,
        maximum: MAX_MARGIN_PERCENT,
        default: DEFAULT_MARGIN_PERCENT,
      }),
      query("limit", "Measurements that are read, evenly over the time; on Workers no more than the default", {
        type: "integer",
        minimum: 1,
        maximum: MAX_LIMIT,
        default: DEFAULT_LIMIT,
      }),
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
    summary: "Decide on a snapshot",
    description:
      "The answer is a pure function of the request and, for kinds that remember, of what the history remembers of the node. It is recorded, and its id is the hash of what was asked. With `record=false` it is the same and nothing is written: no decision, no snapshot, no facts, no removals and no idempotency key, so that a hypothetical question never becomes the node's latest decision.",
    parameters: [
      path("decision", "The kind of decision", { type: "string", enum: KINDS }),
      query("record", "False: answer, and record nothing", { type: "boolean", default: true }),
      idempotencyKey,
    ],
    body: { ...json(ref("DecisionRequest"), DECISION), examples: bodies },
    answers: { 200: "DecisionAnswer" },
    problems: [...BODY, ...REFUSALS, "unknown_kind", "unknown_snapshot", "idempotency_conflict", "bad_request"],
  },
  "GET /v1/decisions/:decision": {
    tag: "history",
    summary: "A recorded decision in full, with what the node did about it",
    parameters: [decisionId],
    answers: { 200: "FullDecision" },
    problems: ["unknown_decision", "invalid_query"],
  },
  "POST /v1/decisions/:decision/replay": {
    tag: "decide",
    summary: "Decide again on the recorded snapshot, with another configuration if one is given, and compare",
    description:
      "`kubeletConfiguration` replaces the whole recorded one, so that whatever it leaves out has the kubelet's default; `kubeletConfigurationPatch` changes single fields of it. Nothing is recorded.",
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
    summary: "Many decisions: one request per line in, one answer per line out",
    description:
      'Each line is the body of a decision with its `kind`; with `"record": false` it is answered and not recorded. The answers keep the order of the lines and name their number; what is wrong with a line is answered on a line, with as much of the problem as differs from line to line. Blank lines are skipped. The limit of a body holds for each line. After 1,000 such lines the batch ends with a line of the problem `too_many_bad_lines`, and nothing from that line on is decided. Read the answers while sending: with more than 1 MiB of them unread no further line is read, and a connection on which nothing moves for a minute is cut.',
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
    summary: "Post a node again: what changed since its last snapshot, and all that is to be decided about it",
    description:
      "For programs that post a node again and again. The first turn posts the snapshot; each later one names the `snapshotId` of the last as `base`, and what changed since. What it stores and decides is what a post of the whole would. A decision whose id the caller names in `holds` is answered as a patch of what the caller has. The same decision again is a count on the first one, whose id it keeps. `unknown_base` (409): post the whole. Any other problem leaves what is known of the node as it was.",
    parameters: [node],
    body: json(ref("TurnRequest"), TURN),
    answers: { 200: "TurnAnswer" },
    problems: [...BODY, "unknown_base"],
  },
  "POST /v1/results": {
    tag: "history",
    summary: "Report what the node really did with a decision",
    body: json(ref("ResultsReport"), results("00000000000000000000000000000000")),
    answers: { 200: "ResultsStored", 201: "ResultsStored" },
    problems: [...BODY, "unknown_decision"],
  },
  ...FLEET_OPERATIONS,
  "GET /v1/nodes/:node": {
    tag: "history",
    summary: "A node and its newest decision of each kind",
    parameters: [node],
    answers: { 200: "NodeAnswer" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/nodes/:node/decisions": {
    tag: "history",
    summary: "A node's decisions, newest first",
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
    summary: "Store a snapshot, to decide on it by its id",
    parameters: [node],
    body: json(ref("SnapshotOfNode"), SNAPSHOT),
    answers: { 200: "SnapshotStored", 201: "SnapshotStored" },
    problems: BODY,
  },
  "POST /v1/nodes/:node/deletion": {
    tag: "history",
    summary: "Report that its cluster has deleted the node",
    description:
      "Its history stays. It counts as gone, and not as silent, until it reports something again. Without a body.",
    parameters: [node],
    answers: { 200: "NodeDeleted" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/history": {
    tag: "history",
    summary: "Export rows for another history",
    description:
      "A page of what `nodewise history export --api` writes: `header` is the first line, and `rows` are the next ones, decisions first and oldest first, each row after the texts and snapshots that it needs. Together they are the body of POST /v1/history. A text or a snapshot that is on a page may be on a later one again. Tokens are not exported.",
    parameters: [
      query("node", "Only of this node"),
      query("since", `Only decided then or later: ${AGO}`, TIME_OR_AGO),
      query("until", `Only decided earlier: ${AGO}`, TIME_OR_AGO),
      query("limit", "Decisions and other entries at most, with what they need; a page may end before, by its size", {
        type: "integer",
        minimum: 1,
        maximum: MAX_PAGE,
        default: DEFAULT_EXPORTED,
      }),
      query("pageToken", "The nextPageToken of the page before, with the same node"),
    ],
    answers: { 200: "HistoryExported" },
    untagged: true,
    problems: ["unknown_node", "invalid_query"],
  },
  "POST /v1/history": {
    tag: "history",
    summary: "Import rows of another history",
    description: `What \`nodewise history import --api\` sends: the first line of an export, then up to ${MAX_IMPORT_ROWS} of its rows, each after the texts and snapshots that it needs. All of them are imported, or none. Rows keep their ids and times, and one that is there stays as it is: sent twice, it is one.`,
    body: { type: "application/x-ndjson", schema: ref("HistoryLine"), example: EXPORT_LINES },
    answers: { 200: "HistoryImported" },
    problems: BODY,
  },
  "GET /v1/snapshots/:id": {
    tag: "history",
    summary: "A stored snapshot",
    description: "Environment variables, commands and arguments are never stored.",
    parameters: [path("id", "A snapshot's id", ID)],
    answers: { 200: "StoredSnapshot" },
    problems: ["unknown_snapshot", "invalid_query"],
  },
  "GET /healthz": {
    tag: "operate",
    summary: "The process answers",
    answers: { 200: "Health" },
    problems: [],
    untagged: true,
  },
  "GET /readyz": {
    tag: "operate",
    summary: "The history takes writes and has its migrations",
    answers: { 200: "Ready" },
    problems: ["history_unavailable"],
    untagged: true,
  },
  "GET /metrics": {
    tag: "operate",
    summary: "Metrics of the process and of the nodes, for Prometheus",
    description: "Without those of the nodes while the history cannot be read.",
    answers: { 200: { type: "text/plain" } },
    problems: [],
    untagged: true,
  },
  "GET /metrics/nodes": {
    tag: "operate",
    summary: "The metrics of the nodes alone",
    description:
      "As of each node's newest decisions; beyond a number of nodes (`--metrics-nodes`) only those in the worst state.",
    answers: { 200: { type: "text/plain" } },
    problems: [],
    untagged: true,
  },
  "GET /openapi.json": {
    tag: "read about it",
    summary: "This document",
    answers: { 200: { type: "application/json" } },
    problems: [],
  },
};
