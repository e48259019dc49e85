import * as z from "zod";
import { jsonPatch } from "../../base/json-patch.ts";
import { type Kind, VERDICTS } from "../../model/decision.ts";
import { placeDifference, placeReasonsForm, reasonForm, recordedReason } from "../../model/forms.ts";
import { KIND_SPECS } from "../../model/kinds.ts";
import { PROBLEM_CODES } from "../../service/problem.ts";
import { NOT_RECORDED } from "../../service/recording.ts";
import { componentName } from "./input-schemas.ts";
import { again, decisionHead, id, identity, integer, kind, time } from "./list-answers.ts";

/** Schemas of answers with a decision, whose form depends on its kind. */

const specs = Object.entries(KIND_SPECS);
export const reasonCodes = specs.map(
  ([kind, { reasons }]) => [`${componentName(kind)}ReasonCode`, z.enum(reasons)] as const,
);
export const reason = reasonForm(z.union(reasonCodes.map(([, codes]) => codes)).describe("one of its kind's codes"));
export const placeReasons = placeReasonsForm(reason);

export const profile = z
  .strictObject({ version: z.string(), exact: z.boolean(), why: z.string().nullable() })
  .describe(
    "the kubelet version whose rules answered; exact: it is the one that the node or the request names. why: which version answered instead, or that the node's own took precedence over the one that the request named; null: neither",
  );

type DecisionForm = (typeof specs)[number][1]["decision"];
/** The forms that `ofEachKind` made, by their names in the document. */
export const ofKinds: Record<string, z.ZodType> = {};
/** The schemas of an answer, one per kind, each named in the document: `kind` determines the form of `decision`. */
function ofEachKind<S extends z.ZodRawShape>(name: string, shapeOf: (decision: DecisionForm) => S) {
  const forms = specs.map(([kind, { decision }]) => {
    const form = z.strictObject({ ...shapeOf(decision), kind: z.literal(kind as Kind) });
    ofKinds[`${componentName(kind)}${name}`] = form;
    return form;
  });
  return z.discriminatedUnion("kind", forms as [(typeof forms)[number]]);
}
const needed = z.array(z.string()).describe("inputs that would have made the answer more complete");
const explained = { reasons: z.array(placeReasons), needs: needed };
const explainedRecorded = { reasons: z.array(placeReasonsForm(recordedReason)), needs: needed };

const namedVersion = z.string().optional().describe("as the request named it; absent: it named none");

const issue = z.strictObject({
  path: z.string(),
  message: z.string(),
  near: z.string().optional().describe("the name that may have been meant"),
});
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
  verdict: z.enum(VERDICTS).describe("the verdict of the decision"),
  assumed: z
    .array(z.strictObject({ path: z.string(), value: z.string() }))
    .optional()
    .describe("what was not posted and was filled in as the API server does: requests from limits; absent: nothing"),
  leftOut: z
    .array(issue)
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
/** A decision of which the caller has an earlier form, with a patch of the changes. */
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
  okCount: integer.describe("steps that changed something, or with `dryRun` would"),
  failedCount: integer,
  reportedAt: time,
  at: z.string(),
  dryRun: z.boolean(),
  complete: z.boolean(),
  steps: z.array(z.looseObject({ status: z.string() })),
});
/** A record of a kind that only another version knows has that version's form. */
export const fullDecision = ofEachKind("Record", (decision) => ({
  ...decisionHead.shape,
  profile: profile.describe(
    "the kubelet version whose rules decided; exact: it is the one that its snapshot or its request names. why: as in the answer, or that no snapshot of it is stored",
  ),
  kubeletVersion: namedVersion,
  ask: z.unknown(),
  decision,
  ...explainedRecorded,
  next: z.unknown(),
  results: z.array(storedResult),
}));
export const replayAnswer = ofEachKind("Replay", (decision) => ({
  id,
  node: z.string(),
  snapshotId: id.nullable(),
  recorded: z.strictObject({ policyVersion: z.string(), decision, ...explainedRecorded }),
  replayed: z.strictObject({ policyVersion: z.string(), decision, ...explained }),
  differences: z.array(placeDifference),
  truncated: z.boolean().describe("true: there are more differences than are listed"),
  same: z.boolean(),
}));

export const problemAnswer = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: integer,
  detail: z.string(),
  code: z.enum(PROBLEM_CODES),
  advice: z.string(),
  issues: z.array(issue).optional(),
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
