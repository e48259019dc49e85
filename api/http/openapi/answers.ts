import * as z from "zod";
import { LINT_SEVERITIES } from "../../decide/lint/finding.ts";
import { reservesAdvice } from "../../model/advice.ts";
import { cgroupValues } from "../../model/cgroups.ts";
import { type Kind, VERDICTS } from "../../model/decision.ts";
import { placeReasonsForm, podRef, reasonForm } from "../../model/forms.ts";
import { jsonPatch } from "../../model/json-patch.ts";
import { KIND_SPECS } from "../../model/kinds.ts";
import { comparison, OUTCOME_KINDS } from "../../model/outcome.ts";
import { storyDecisionForm, storyForm, storyListForm } from "../../model/why.ts";
import { NOT_RECORDED } from "../../service/recording.ts";
import { upgradeReport } from "../../service/upgrade/report.ts";
import { PROBLEMS } from "../problem.ts";
import { componentName } from "./ask-schemas.ts";
import {
  again,
  decisionHead,
  decisionList,
  id,
  identity,
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
const profile = z
  .strictObject({ version: z.string(), exact: z.boolean(), why: z.string().nullable() })
  .describe(
    "as which kubelet it was answered; exact: it is the one that the node or the request names. why: what answered in its place, or that the node's own counted before another one that the request named; null: neither",
  );
export const lintAnswer = z.strictObject({
  profile,
  findings: z.array(lintFinding).describe("by severity, then field"),
});

/** The API's answers, as schemas: for the document, and for tests that check real answers against them. */

const specs = Object.entries(KIND_SPECS);
const reasonCodes = specs.map(([kind, { reasons }]) => [`${componentName(kind)}ReasonCode`, z.enum(reasons)] as const);
const reason = reasonForm(z.union(reasonCodes.map(([, codes]) => codes)).describe("one of its kind's codes"));
const placeReasons = placeReasonsForm(reason);

type DecisionForm = (typeof specs)[number][1]["decision"];
const ofKinds: Record<string, z.ZodType> = {};
/** The forms of an answer whose decision goes by its kind, each with a name in the document: who looks at `kind` knows what `decision` is. */
function ofEachKind<S extends z.ZodRawShape>(name: string, shapeOf: (decision: DecisionForm) => S) {
  const forms = specs.map(([kind, { decision }]) => {
    const form = z.strictObject({ ...shapeOf(decision), kind: z.literal(kind as Kind) });
    ofKinds[`${componentName(kind)}${name}`] = form;
    return form;
  });
  return z.discriminatedUnion("kind", forms as [(typeof forms)[number]]);
}
const needed = z.array(z.string()).describe("inputs that would have made the answer fuller");
const explained = { reasons: z.array(placeReasons), needs: needed };
const recordedReason = reasonForm(z.string().describe("one of the kind's codes, unless another version wrote it"));
const explainedThen = { reasons: z.array(placeReasonsForm(recordedReason)), needs: needed };

const namedVersion = z.string().optional().describe("as the request named it; absent: it named none");

const answered = {
  ...identity,
  profile,
  kubeletVersion: namedVersion,
  recorded: z.boolean().describe("false: the answer is the same, and nothing of it is in the history"),
  notRecorded: z
    .enum(NOT_RECORDED)
    .optional()
    .describe(
      "why it is not recorded: the request did not want it, this server records nothing, or the history could not be written; absent: it is recorded",
    ),
  again: again.optional(),
  verdict: z.enum(VERDICTS).describe("the decision in a word"),
  assumed: z
    .array(z.strictObject({ path: z.string(), value: z.string() }))
    .optional()
    .describe("what was not posted and was filled in as the API server does: requests from limits; absent: nothing"),
  leftOut: z
    .array(z.strictObject({ path: z.string(), message: z.string() }))
    .optional()
    .describe(
      "fields of the posted kubeletConfiguration that a kubelet does not know and leaves out, at most 20; absent: none",
    ),
};
const decided = (decision: DecisionForm) => ({
  ...answered,
  decision,
  ...explained,
  next: z.unknown().describe("the state to send back next time; null when the kind keeps none"),
});
export const decisionAnswer = ofEachKind("Answer", decided);
/** A decision that its caller holds already, but for what the patch changes. */
export const heldDecision = z.strictObject({
  ...answered,
  holds: id.describe("the id that the caller named"),
  patch: jsonPatch.describe(
    "a JSON patch (RFC 6902) of {decision, reasons, needs, next} as the caller holds them; []: they are the same",
  ),
});
const storedResult = z.looseObject({
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
export const fullDecision = ofEachKind("Record", (decision) => ({
  ...decisionHead.shape,
  profile: profile.describe(
    "as which kubelet it was decided; exact: it is the one that its snapshot or its request names. why: as in the answer, or that no snapshot of it is stored",
  ),
  kubeletVersion: namedVersion,
  ask: z.unknown(),
  decision,
  ...explainedThen,
  next: z.unknown(),
  results: z.array(storedResult),
}));
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

export const replayAnswer = ofEachKind("Replay", (decision) => ({
  id,
  node: z.string(),
  snapshotId: id.nullable(),
  recorded: z.strictObject({ policyVersion: z.string(), decision, ...explainedThen }),
  replayed: z.strictObject({ policyVersion: z.string(), decision, ...explained }),
  differences: z.array(
    z.strictObject({ path: z.string(), recorded: z.unknown().optional(), replayed: z.unknown().optional() }),
  ),
  truncated: z.boolean().describe("true: there are more differences than are listed"),
  same: z.boolean(),
}));

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

export const changedDecision = z.strictObject({
  id: z.string().describe("POST /v1/decisions/ID/replay tells all of it"),
  kind,
  node: z.string(),
  decidedAt: time,
  pod: podRef.nullable(),
  ...versions,
  recordedVerdict: z.string(),
  verdict: z.string().nullable().describe("null: it is refused"),
  differences: z
    .array(
      z.strictObject({
        path: z.string(),
        recorded: z.unknown().optional(),
        replayed: z.unknown().optional(),
        omitted: z
          .array(z.enum(["recorded", "replayed"]))
          .optional()
          .describe("what is too long to be listed"),
      }),
    )
    .describe("the first few"),
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

export const unreadableDecision = z.strictObject({
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
  ofEachKind("Line", (decision) => ({ line: integer, ...decided(decision) })),
  z.strictObject({ line: integer, problem: z.strictObject({ code, detail, issues, needs }) }),
]);
/** One node's turn. */
export const turnAnswer = z.strictObject({
  node: z.string(),
  snapshotId: id.describe("of the node's snapshot as it is now: the base of the next turn"),
  decisions: z
    .array(
      z.union([
        decisionAnswer,
        heldDecision,
        z.strictObject({ kind, problem: z.strictObject({ code, detail, issues, needs }) }),
      ]),
    )
    .describe("one for each that was asked for, in that order"),
});

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
  ...Object.fromEntries(specs.map(([kind, { decision }]) => [`${componentName(kind)}Decision`, decision])),
  ...Object.fromEntries(reasonCodes),
  ...ofKinds,
  ...ENVELOPES,
};
