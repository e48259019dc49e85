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
    .describe(
      "refuses-start: the kubelet does not start; error: the setting has no effect; warning: the setting does harm",
    ),
  field: z.string().describe('a path in the KubeletConfiguration, such as evictionHard["memory.available"]'),
  message: z.string(),
  kubelet: z.boolean().describe("true: the message is the kubelet's own, byte for byte"),
  advice: z.string(),
  fix: z
    .unknown()
    .describe(
      "a merge patch (RFC 7396) of the configuration that corrects the fault; null: a person must choose the value",
    ),
  touched: z
    .strictObject({
      decisions: z
        .number()
        .describe(
          "the number of tried decisions that the finding touched: their own recorded configuration has the same finding (code and field), and the finding's `fix` changes their answer. For a finding without a `fix`: their answer names the field, or differs without the field",
        ),
      of: z.number().describe("the number of recorded decisions that were tried, the newest first"),
    })
    .nullable()
    .describe("the recorded decisions that the finding touched; null: the finding is not about a field"),
});
export const lintAnswer = z.strictObject({
  profile,
  findings: z.array(lintFinding).describe("the findings by severity, then by field"),
});

/** The API's answers, as schemas: for the document, and for tests that check real answers against them. */

export const storedSnapshot = z.strictObject({
  id,
  node: z.string(),
  bootId: z.string().nullable(),
  sequence: integer.nullable(),
  observedAt: time.nullable(),
  storedAt: time,
  snapshot: z.looseObject({}).describe("the snapshot in its canonical form, which may be posted again"),
});
export const snapshotStored = z.strictObject({
  id,
  node: z.string(),
  fresh: z.boolean().describe("false: the snapshot was already stored"),
});
export const resultsStored = z.strictObject({
  id,
  decisionId: z.string(),
  okCount: integer.describe("the number of steps that changed something, or with `dryRun` would change something"),
  failedCount: integer,
  fresh: z.boolean(),
});

const outcomeAnswered = z
  .looseObject({ kind: z.enum(OUTCOME_KINDS), at: z.string(), seenIn: z.array(z.string()) })
  .describe("the outcome as it was posted, merged from all its sightings, without the pod's object");
export const outcomesRecorded = z.strictObject({
  outcomes: z
    .array(
      z.strictObject({
        id,
        node: z.string(),
        recordedAt: time,
        outcome: outcomeAnswered,
        comparison,
        state: z
          .enum(["new", "changed", "same"])
          .describe(
            "new: the outcome was not recorded before; changed: the record changed; same: the record stays the same",
          ),
      }),
    )
    .describe("the posted outcomes, then other outcomes whose comparison they changed"),
});
export const agreementAnswer = z.strictObject({
  kinds: z
    .array(
      z.strictObject({
        kind: z.string(),
        agrees: integer,
        differs: integer,
        notComparable: integer,
        share: z
          .number()
          .nullable()
          .describe("the share of the comparable outcomes that agree, from 0 to 1; null: no outcome is comparable"),
      }),
    )
    .describe("the counts by kind over all outcomes of the time range, whatever `verdict` the request has"),
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
            "the kubelet's reason: for a refusal its reason such as OutOfcpu; Evicted; Preempting; for a resize Deferred or Infeasible; or the pressure condition. null: there is none, or a version that recorded no reasons wrote the outcome",
          ),
        outcome: outcomeAnswered
          .nullable()
          .describe(
            "the outcome; null: another version of Nodewise wrote it in a form that this version does not know",
          ),
        comparison: comparison.nullable(),
      }),
    )
    .describe("the outcomes, newest first"),
  nextPageToken: z.string().nullable(),
});

const importCounts = z.partialRecord(z.enum(EXPORT_ROW_TYPES), integer);
export const historyImported = z.strictObject({
  added: importCounts.describe("the number of imported rows by type"),
  known: importCounts.describe("the number of rows that the history already had, by type"),
});

export const historyExported = z.strictObject({
  header: exportHeaderForm.describe("the first line of the export, which is the same on each page"),
  rows: z.array(exportRowForm),
  leftOut: z
    .array(z.string())
    .describe("one line for each entry that is missing in the export because it cannot be read"),
  reachedAt: time
    .nullable()
    .describe("the time of the last decision of the page; null: the page ends with another entry"),
  progress: z.number().min(0).max(1),
  nextPageToken: z.string().nullable(),
});

const policies = {
  policyVersion: z.string().describe("the policy version of decisions about nodes that report no kubelet version"),
  policyVersions: z.array(z.string()).describe("the policy versions, one for each kubelet version, the oldest first"),
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
