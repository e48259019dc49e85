import { MAX_PAGE } from "../../db/store.ts";
import { KINDS, VERDICTS } from "../model/decision.ts";
import { BATCH, DECISION, REPLAY, results, SNAPSHOT } from "./examples.ts";
import { ref } from "./input-schemas.ts";
import { LINT_OPERATIONS } from "./lint-operations.ts";
import {
  BODY,
  decisionId,
  decisionRequest,
  idempotencyKey,
  json,
  node,
  type Operation,
  path,
  query,
  REFUSALS,
  REPLAY_REQUEST,
  time,
} from "./operation.ts";
import { REMOVAL_OPERATIONS } from "./removal-operations.ts";
import { REPLAY_OPERATIONS } from "./replay-operations.ts";

/** `METHOD path` of every route, as routes/index.ts has it. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/decisions/:decision": {
    tag: "decide",
    summary: "Decide on a snapshot",
    description:
      "The answer is a pure function of the request. It is recorded, and its id is the hash of what was asked.",
    parameters: [path("decision", "The kind of decision", { type: "string", enum: KINDS }), idempotencyKey],
    body: json(decisionRequest([], {}), DECISION),
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
      "`kubeletConfiguration` takes the place of the whole recorded one, so that whatever it leaves out falls to the kubelet's default; `kubeletConfigurationPatch` changes single fields of it. Nothing is recorded.",
    parameters: [decisionId],
    body: json(REPLAY_REQUEST, REPLAY, true),
    answers: { 200: "ReplayAnswer" },
    problems: [...BODY, ...REFUSALS, "unknown_decision", "unknown_policy_version", "snapshot_gone"],
  },
  ...REPLAY_OPERATIONS,
  ...LINT_OPERATIONS,
  "POST /v1/batch": {
    tag: "decide",
    summary: "Many decisions: a request a line in, an answer a line out",
    description:
      "Each line is the body of a decision with its `kind`. The answers keep the order of the lines and name their number; what is wrong with a line is answered on a line, with as much of the problem as differs from line to line. Blank lines are passed over. The limit of a body holds for each line. After 1,000 such lines the batch ends with a line of the problem `too_many_bad_lines`, and nothing from that line on is decided. Read the answers while sending.",
    body: {
      type: "application/x-ndjson",
      schema: decisionRequest(["kind"], { kind: { type: "string", enum: KINDS } }),
      example: BATCH,
    },
    answers: { 200: { type: "application/x-ndjson", of: "BatchLine" } },
    problems: ["invalid_query", "unsupported_media_type", "unsupported_encoding"],
  },
  "POST /v1/results": {
    tag: "history",
    summary: "Report what the node really did with a decision",
    body: json(ref("ResultsReport"), results("00000000000000000000000000000000")),
    answers: { 200: "ResultsStored", 201: "ResultsStored" },
    problems: [...BODY, "unknown_decision"],
  },
  "GET /v1/nodes": {
    tag: "history",
    summary: "The nodes that the history knows",
    answers: { 200: "NodeList" },
    problems: ["invalid_query"],
  },
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
    parameters: [
      node,
      query("kind", "Only of this kind", { type: "string", enum: KINDS }),
      query("verdict", "Only with this verdict", { type: "string", enum: VERDICTS }),
      query("pod", "Only about this pod: a uid, a name, or namespace/name"),
      query("since", "Decided then or later", time),
      query("until", "Decided earlier", time),
      query("limit", "At most so many", { type: "integer", minimum: 1, maximum: MAX_PAGE, default: 50 }),
      query("pageToken", "The nextPageToken of the page before"),
    ],
    answers: { 200: "DecisionList" },
    problems: ["unknown_node", "invalid_query"],
  },
  ...REMOVAL_OPERATIONS,
  "PUT /v1/nodes/:node/snapshot": {
    tag: "history",
    summary: "Store a snapshot, to decide on it by its id",
    parameters: [node],
    body: json(ref("NodeSnapshot"), SNAPSHOT),
    answers: { 200: "SnapshotStored", 201: "SnapshotStored" },
    problems: BODY,
  },
  "GET /v1/snapshots/:id": {
    tag: "history",
    summary: "A stored snapshot",
    description: "Environment variables, commands and arguments are never stored.",
    parameters: [path("id", "A snapshot's id", { type: "string", pattern: "^[0-9a-f]{32}$" })],
    answers: { 200: "StoredSnapshot" },
    problems: ["unknown_snapshot", "invalid_query"],
  },
  "GET /healthz": { tag: "operate", summary: "The process answers", answers: { 200: "Health" }, problems: [] },
  "GET /readyz": {
    tag: "operate",
    summary: "The history takes writes and has its migrations",
    answers: { 200: "Ready" },
    problems: ["history_unavailable"],
  },
  "GET /metrics": {
    tag: "operate",
    summary: "Counters for Prometheus",
    answers: { 200: { type: "text/plain" } },
    problems: [],
  },
  "GET /openapi.json": {
    tag: "read about it",
    summary: "This document",
    answers: { 200: { type: "application/json" } },
    problems: [],
  },
};
