import * as z from "zod";
import { EXPLAIN, KINDS, VERDICTS } from "../model/decision.ts";
import { PROBLEMS } from "../routes/problem.ts";
import { admissionDecision, preemptionDecision } from "./admission-answers.ts";
import { devicesDecision } from "./device-answers.ts";
import { evictionDecision } from "./eviction-answers.ts";
import { containerGcDecision, imageGcDecision } from "./gc-answers.ts";
import { lintAnswer, lintFinding } from "./lint-answers.ts";
import { cpusDecision, memoryDecision, podRef, topologyDecision } from "./manager-answers.ts";
import { allocatableDecision, cgroupsDecision, cgroupValues } from "./node-answers.ts";
import { probesDecision } from "./probe-answers.ts";
import { probeGuardDecision } from "./probe-guard-answers.ts";
import { removalList, removalSummary } from "./removal-answers.ts";
import { changedDecision, historyReplay, replayCounts, unreadableDecision } from "./replay-answers.ts";

/** What the API answers, as schemas: for the document, and for tests that hold real answers to them. */
const id = z.string().regex(/^[0-9a-f]{32}$/);
const time = z.iso.datetime();
const integer = z.number();
const kind = z.enum(KINDS);

export const reason = z
  .strictObject({
    code: z.string(),
    field: z.string().describe("the value of the place"),
    numbers: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  })
  .describe("one step of the reasoning, with the numbers it used");
export const placeReasons = z
  .strictObject({
    at: z.string().describe("the cgroup's path or the resource's name"),
    because: z.array(reason),
  })
  .describe("why a place has the values it has");

const decisionOf = z.union([
  cgroupsDecision,
  allocatableDecision,
  cpusDecision,
  memoryDecision,
  topologyDecision,
  devicesDecision,
  admissionDecision,
  preemptionDecision,
  evictionDecision,
  imageGcDecision,
  containerGcDecision,
  probesDecision,
  probeGuardDecision,
]);
const explained = {
  reasons: z.array(placeReasons),
  needs: z.array(z.string()).describe("inputs that would have made the answer fuller"),
};
/** Of what was recorded; other versions may know other kinds. */
const recordedKind = z.string().describe("one of the kinds, unless another version wrote it");
const identity = { id, kind, node: z.string(), policyVersion: z.string(), snapshotId: id.nullable(), decidedAt: time };

export const decisionAnswer = z.strictObject({
  ...identity,
  recorded: z.boolean().describe("false: the history could not be written; the answer is the same"),
  verdict: z.enum(VERDICTS).describe("the decision in a word"),
  decision: decisionOf,
  ...explained,
  next: z.unknown().describe("the state to send back next time; null when the kind keeps none"),
});
export const decisionHead = z.strictObject({
  ...identity,
  kind: recordedKind,
  verdict: z.string(),
  explain: z.enum(EXPLAIN),
  pod: podRef.nullable(),
});
export const storedResult = z.looseObject({
  id,
  seq: integer,
  okCount: integer,
  failedCount: integer,
  reportedAt: time,
  at: z.string(),
  dryRun: z.boolean(),
  complete: z.boolean(),
  steps: z.array(z.looseObject({ status: z.string() })),
});
export const fullDecision = z.strictObject({
  ...decisionHead.shape,
  ask: z.unknown(),
  decision: decisionOf,
  ...explained,
  next: z.unknown(),
  results: z.array(storedResult),
});
export const decisionList = z.strictObject({ decisions: z.array(decisionHead), nextPageToken: z.string().nullable() });

const nodeFields = {
  name: z.string(),
  firstSeenAt: time,
  lastSeenAt: time,
  bootId: z.string().nullable(),
  lastSnapshotId: id.nullable(),
  lastSequence: integer.nullable(),
};
export const nodeAnswer = z.strictObject({ ...nodeFields, latest: z.record(kind, decisionHead.nullable()) });
export const nodeList = z.strictObject({ nodes: z.array(z.strictObject(nodeFields)) });
export const storedSnapshot = z.strictObject({
  id,
  node: z.string(),
  bootId: z.string().nullable(),
  sequence: integer.nullable(),
  observedAt: time.nullable(),
  storedAt: time,
  snapshot: z.looseObject({}).describe("in the canonical form, which may be posted again"),
});
export const snapshotStored = z.strictObject({
  id,
  node: z.string(),
  fresh: z.boolean().describe("false: it was there"),
});
export const resultsStored = z.strictObject({
  id,
  decisionId: z.string(),
  okCount: integer,
  failedCount: integer,
  fresh: z.boolean(),
});

const side = z.strictObject({ policyVersion: z.string(), decision: decisionOf, ...explained });
export const replayAnswer = z.strictObject({
  id,
  kind,
  node: z.string(),
  snapshotId: id.nullable(),
  recorded: side,
  replayed: side,
  differences: z.array(
    z.strictObject({ path: z.string(), recorded: z.unknown().optional(), replayed: z.unknown().optional() }),
  ),
  truncated: z.boolean().describe("true: there are more differences than are listed"),
  same: z.boolean(),
});

export const health = z.strictObject({ status: z.literal("ok"), policyVersion: z.string() });
export const ready = z.strictObject({ status: z.literal("ready"), migration: z.string(), policyVersion: z.string() });
export const problemAnswer = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: integer,
  detail: z.string(),
  code: z.enum(Object.keys(PROBLEMS) as [keyof typeof PROBLEMS]),
  advice: z.string(),
  issues: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
  needs: z.array(z.string()).optional(),
  near: z.array(z.string()).optional().describe("names that may have been meant"),
  requestId: z.string(),
});
const { code, detail, issues, needs } = problemAnswer.shape;
/** One line of a batch's answer. */
export const batchLine = z.union([
  z.strictObject({ line: integer, ...decisionAnswer.shape }),
  z.strictObject({ line: integer, problem: z.strictObject({ code, detail, issues, needs }) }),
]);

export const ANSWERS = {
  Reason: reason,
  PlaceReasons: placeReasons,
  CgroupValues: cgroupValues,
  CgroupsDecision: cgroupsDecision,
  AllocatableDecision: allocatableDecision,
  CpusDecision: cpusDecision,
  MemoryDecision: memoryDecision,
  TopologyDecision: topologyDecision,
  DevicesDecision: devicesDecision,
  AdmissionDecision: admissionDecision,
  PreemptionDecision: preemptionDecision,
  EvictionDecision: evictionDecision,
  ImageGcDecision: imageGcDecision,
  ContainerGcDecision: containerGcDecision,
  ProbesDecision: probesDecision,
  ProbeGuardDecision: probeGuardDecision,
  DecisionHead: decisionHead,
  DecisionAnswer: decisionAnswer,
  FullDecision: fullDecision,
  DecisionList: decisionList,
  RemovalList: removalList,
  RemovalSummary: removalSummary,
  NodeList: nodeList,
  NodeAnswer: nodeAnswer,
  StoredSnapshot: storedSnapshot,
  SnapshotStored: snapshotStored,
  ResultsStored: resultsStored,
  ReplayAnswer: replayAnswer,
  ReplayCounts: replayCounts,
  UnreadableDecision: unreadableDecision,
  ChangedDecision: changedDecision,
  HistoryReplay: historyReplay,
  LintFinding: lintFinding,
  LintAnswer: lintAnswer,
  BatchLine: batchLine,
  Health: health,
  Ready: ready,
  Problem: problemAnswer,
} as const satisfies Readonly<Record<string, z.ZodType>>;
export type AnswerName = keyof typeof ANSWERS;
