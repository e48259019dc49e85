import * as z from "zod";
import { LINT_SEVERITIES } from "../../decide/lint/finding.ts";
import { reservesAdvice } from "../../model/advice.ts";
import { cgroupValues } from "../../model/cgroups.ts";
import { placeReasonsForm, podRef, shortDifference } from "../../model/forms.ts";
import { KIND_SPECS } from "../../model/kinds.ts";
import { MOVED_TYPES, movedHeader, movedRow } from "../../model/moved-row.ts";
import { comparison, OUTCOME_KINDS } from "../../model/outcome.ts";
import { storyDecisionForm, storyForm, storyListForm } from "../../model/why.ts";
import { upgradeReport } from "../../service/upgrade/report.ts";
import { PROBLEMS } from "../problem.ts";
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
  recordedReason,
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
  kind,
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
    .describe("refuses-start: the kubelet does not start; error: it does not do what is written; warning: it harms"),
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
          "recorded decisions that it touched: of those whose own configuration has the same finding (code and field), with a fix those that would have been others with it; without one those whose answer names it or would be another without the field",
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

/** A page of the history decided again. */
const replayCounts = z
  .strictObject({
    replayed: integer.describe("`same`, `differs` and `refused` together: what could be decided again"),
    same: integer,
    differs: integer,
    refused: integer.describe("cannot be decided with what is asked about"),
    gone: integer.describe("not replayed: their snapshot is no longer stored"),
    unreadable: integer.describe("not replayed: they, or what they were decided on, are damaged"),
    decisions: integer.describe(
      "how many decisions all of these records stand for: each as many as it was made `times`",
    ),
  })
  .describe("decisions");

const versions = {
  recordedUnder: z.string().describe("the kubelet version as which it was decided when it was recorded"),
  replayedUnder: z.string().describe("the one as which it is decided again"),
};

const changedDecision = z.strictObject({
  id: z.string().describe("POST /v1/decisions/ID/replay tells all of it"),
  kind,
  node: z.string(),
  decidedAt: time,
  pod: podRef.nullable(),
  ...versions,
  recordedVerdict: z.string(),
  verdict: z.string().nullable().describe("null: it is refused"),
  recordedReason: z.string().nullable().describe("the kubelet's word for why; null: none"),
  reason: z.string().nullable().describe("the same of the new answer"),
  differences: z.array(shortDifference).describe("the first few"),
  differenceCount: integer.describe("1000: or more"),
  pods: z
    .array(z.string())
    .describe(
      "NAMESPACE/NAME of the first few pods of which it decides otherwise: the one that was asked about, and those of the node that are evicted, ranked, preempted, throttled or the like otherwise",
    ),
  podCount: integer,
  problem: z
    .strictObject({ code: z.enum(Object.keys(PROBLEMS) as [keyof typeof PROBLEMS]), detail: z.string() })
    .nullable()
    .describe("why it is refused"),
});

const unreadableDecision = z.strictObject({
  id: z.string(),
  kind: z.string().describe("may be one that this version does not know"),
  node: z.string(),
  decidedAt: time,
  unreadable: z.string().describe("what cannot be read, and what to do about it"),
});

export const historyReplay = z.strictObject({
  counts: replayCounts,
  byKind: z.record(z.string(), replayCounts),
  byNode: z.record(z.string(), replayCounts),
  byVersion: z
    .array(z.strictObject({ ...versions, ...replayCounts.shape }))
    .describe(
      "by the kubelet version under which they were recorded and made again; without those that are unreadable",
    ),
  verdicts: z
    .array(
      z.strictObject({
        kind,
        recorded: z.string(),
        replayed: z.string().nullable().describe("as `recorded`: it differs below the verdict; null: it is refused"),
        count: integer,
      }),
    )
    .describe("of those that differ or are refused, the most frequent first"),
  changed: z.array(changedDecision).describe("all that differ or are refused, oldest first"),
  unreadable: z.array(unreadableDecision).describe("all that were passed because they are damaged, oldest first"),
  until: time.describe("the end, which stays the same from page to page"),
  reachedAt: time.nullable().describe("when the last decision that was looked at was decided"),
  progress: z.number().describe("0 to 1, by the time between the oldest decision and the newest"),
  nextPageToken: z.string().nullable().describe("null: this was the last page"),
});

export const upgradeAnswer = z.strictObject({
  report: upgradeReport
    .nullable()
    .describe(
      "of the configuration and the snapshot; null: there is neither, a page after the first was asked for, or `unreported` tells why",
    ),
  unreported: z
    .string()
    .nullable()
    .describe("why nothing can be said of a stored node beside its history; null: something is, or nobody asked"),
  history: z
    .strictObject({
      ...historyReplay.shape,
      kernelDefaults: integer.describe("of `same`: they differ only in writing what the kernel has by itself"),
      pods: z
        .array(
          z.strictObject({
            node: z.string(),
            pod: z.string().describe("NAMESPACE/NAME"),
            count: integer,
            byKind: z.record(z.string(), integer),
          }),
        )
        .describe("all pods of which decisions of this page are others, with how many; the most first"),
      examples: z
        .array(
          z.strictObject({
            ...changedDecision.shape,
            reasons: z
              .array(placeReasonsForm(recordedReason))
              .describe("the first few that the recorded answer does not have"),
          }),
        )
        .describe("the first changed decisions of each kind, with why"),
    })
    .nullable()
    .describe("a page, oldest first; null: neither since, until nor pageToken is given"),
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
            "the kubelet's word for why: of a refusal such as OutOfcpu, Evicted, Preempting, of a resize Deferred or Infeasible, or the condition; null: none, or recorded before reasons were",
          ),
        outcome: outcomeAnswered.nullable().describe("null: another version wrote it"),
        comparison: comparison.nullable(),
      }),
    )
    .describe("newest first"),
  nextPageToken: z.string().nullable(),
});

const moved = z.partialRecord(z.enum(MOVED_TYPES), integer);
export const historyImported = z.strictObject({
  added: moved.describe("rows by their type"),
  known: moved.describe("rows that were there before"),
});

export const historyExported = z.strictObject({
  header: movedHeader.describe("the first line of the export, the same on each page"),
  rows: z.array(movedRow),
  leftOut: z.array(z.string()).describe("what is missing because it cannot be read, a line each"),
  reachedAt: time.nullable().describe("when the last decision of the page was made; null: it ends with something else"),
  progress: z.number().min(0).max(1),
  nextPageToken: z.string().nullable(),
});

export const whyAnswer = z.strictObject({
  story: storyForm.nullable().describe("null: no pod was named"),
  list: storyListForm.nullable().describe("null: a pod was named"),
});

const policies = {
  policyVersion: z.string().describe("of decisions about nodes that tell no version"),
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
  StoryDecision: storyDecisionForm,
  Story: storyForm,
  StoryList: storyListForm,
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
