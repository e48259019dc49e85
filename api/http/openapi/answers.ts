import * as z from "zod";
import { LINT_SEVERITIES } from "../../decide/lint/finding.ts";
import { reservesAdvice } from "../../model/advice.ts";
import { cgroupValues } from "../../model/cgroups.ts";
import { EXPORT_ROW_TYPES, exportHeaderForm, exportRowForm } from "../../model/export-row.ts";
import { podRef } from "../../model/forms.ts";
import { KIND_SPECS } from "../../model/kinds.ts";
import { comparison, OUTCOME_KINDS } from "../../model/outcome.ts";
import { podExplanationDecisionForm, podExplanationForm, podExplanationListForm } from "../../model/why.ts";
import { historyReplay } from "../../service/replay/replay-answer.ts";
import { changedDecision, replayCounts, unreadableDecision } from "../../service/replay/tally.ts";
import { upgradeReport } from "../../service/upgrade/report.ts";
import { whyAnswer } from "../../service/why/history.ts";
import { upgradeAnswer } from "../upgrade.ts";
import {
  batchLine,
  decisionAnswer,
  fullDecision,
  heldDecision,
  ofKinds,
  placeReasons,
  problemAnswer,
  profile,
  reason,
  reasonCodes,
  replayAnswer,
  turnAnswer,
} from "./decision-answers.ts";
import { componentName } from "./input-schemas.ts";
import {
  again,
  decisionHead,
  decisionList,
  id,
  integer,
  nodeAnswer,
  nodeDeleted,
  nodeList,
  removalList,
  removalSummary,
  time,
} from "./list-answers.ts";

/** The faults of a configuration, as the API answers them. */
const lintFinding = z.strictObject({
  code: z.string(),
  severity: z
    .enum(LINT_SEVERITIES)
    .describe("refuses-start: the kubelet does not start; error: the setting has no effect; warning: it does harm"),
  field: z.string().describe('a path in the KubeletConfiguration, such as evictionHard["memory.available"]'),
  message: z.string(),
  kubelet: z.boolean().describe("the message is the kubelet's own, byte for byte"),
  advice: z.string(),
  fix: z.unknown().describe("a merge patch (RFC 7396) of the configuration; null: a person must choose"),
  touched: z
    .strictObject({
      decisions: z
        .number()
        .describe(
          "recorded decisions that it touched: of those whose own configuration has the same finding (code and field), with a fix those that it would have changed; without one those whose answer names it or would be different without the field",
        ),
      of: z.number().describe("of so many that were tried, the newest"),
    })
    .nullable()
    .describe("null: the finding is of no field"),
});
export const lintAnswer = z.strictObject({
  profile,
  findings: z.array(lintFinding).describe("by severity, then field"),
});

/** The API's answers, as schemas: for the document, and for tests that check real answers against them. */

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
  okCount: integer.describe("steps that changed something, or with `dryRun` would"),
  failedCount: integer,
  fresh: z.boolean(),
});

const outcomeAnswered = z
  .looseObject({ kind: z.enum(OUTCOME_KINDS), at: z.string(), seenIn: z.array(z.string()) })
  .describe("as it was posted, all sightings of it together and without the pod's object");
export const outcomesRecorded = z.strictObject({
  outcomes: z
    .array(
      z.strictObject({
        id,
        node: z.string(),
        recordedAt: time,
        outcome: outcomeAnswered,
        comparison,
        state: z.enum(["new", "changed", "same"]).describe("beside what was recorded before"),
      }),
    )
    .describe("those that were posted, then others whose comparison they changed"),
});
export const agreementAnswer = z.strictObject({
  kinds: z
    .array(
      z.strictObject({
        kind: z.string(),
        agrees: integer,
        differs: integer,
        notComparable: integer,
        share: z.number().nullable().describe("that agrees, of those that could be compared; null: none could"),
      }),
    )
    .describe("all of the time, whatever the verdict that is asked for"),
  outcomes: z
    .array(
      z.strictObject({
        id,
        node: z.string(),
        kind: z.string(),
        verdict: z.string(),
        at: time,
        recordedAt: time,
        pod: podRef.nullable(),
        reason: z
          .string()
          .nullable()
          .describe(
            "the kubelet's reason: of a refusal such as OutOfcpu, Evicted, Preempting, of a resize Deferred or Infeasible, or the condition; null: none, or recorded before reasons were",
          ),
        outcome: outcomeAnswered.nullable().describe("null: another version wrote it"),
        comparison: comparison.nullable(),
      }),
    )
    .describe("newest first"),
  nextPageToken: z.string().nullable(),
});

const importCounts = z.partialRecord(z.enum(EXPORT_ROW_TYPES), integer);
export const historyImported = z.strictObject({
  added: importCounts.describe("rows by their type"),
  known: importCounts.describe("rows that were there before"),
});

export const historyExported = z.strictObject({
  header: exportHeaderForm.describe("the first line of the export, the same on each page"),
  rows: z.array(exportRowForm),
  leftOut: z.array(z.string()).describe("what is missing because it cannot be read, a line each"),
  reachedAt: time.nullable().describe("when the last decision of the page was made; null: it ends with something else"),
  progress: z.number().min(0).max(1),
  nextPageToken: z.string().nullable(),
});

const policies = {
  policyVersion: z.string().describe("of decisions about nodes that report no version"),
  policyVersions: z.array(z.string()).describe("one for each kubelet version, oldest first"),
};
export const health = z.strictObject({ status: z.literal("ok"), ...policies });
export const ready = z.strictObject({ status: z.literal("ready"), migration: z.string(), ...policies });
const ENVELOPES = {
  Reason: reason,
  PlaceReasons: placeReasons,
  CgroupValues: cgroupValues,
  Profile: profile,
  Again: again,
  DecisionHead: decisionHead,
  DecisionAnswer: decisionAnswer,
  HeldDecision: heldDecision,
  TurnAnswer: turnAnswer,
  FullDecision: fullDecision,
  DecisionList: decisionList,
  RemovalList: removalList,
  RemovalSummary: removalSummary,
  NodeList: nodeList,
  NodeAnswer: nodeAnswer,
  StoredSnapshot: storedSnapshot,
  NodeDeleted: nodeDeleted,
  SnapshotStored: snapshotStored,
  ResultsStored: resultsStored,
  HistoryImported: historyImported,
  HistoryExported: historyExported,
  Comparison: comparison,
  OutcomesRecorded: outcomesRecorded,
  AgreementAnswer: agreementAnswer,
  ReplayAnswer: replayAnswer,
  ReplayCounts: replayCounts,
  UnreadableDecision: unreadableDecision,
  ChangedDecision: changedDecision,
  HistoryReplay: historyReplay,
  LintFinding: lintFinding,
  LintAnswer: lintAnswer,
  UpgradeReport: upgradeReport,
  UpgradeAnswer: upgradeAnswer,
  StoryDecision: podExplanationDecisionForm,
  Story: podExplanationForm,
  StoryList: podExplanationListForm,
  WhyAnswer: whyAnswer,
  ReservesAdvice: reservesAdvice,
  BatchLine: batchLine,
  Health: health,
  Ready: ready,
  Problem: problemAnswer,
} as const satisfies Readonly<Record<string, z.ZodType>>;
export type AnswerName = keyof typeof ENVELOPES;

/** The schemas that have a name in the document: of each kind's decision and codes, and of what the API puts around them. */
export const ANSWERS: Readonly<Record<AnswerName, z.ZodType>> = {
  ...Object.fromEntries(
    Object.entries(KIND_SPECS).map(([kind, { decision }]) => [`${componentName(kind)}Decision`, decision]),
  ),
  ...Object.fromEntries(reasonCodes),
  ...ofKinds,
  ...ENVELOPES,
};
