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
export const reason = reasonForm(
  z.union(reasonCodes.map(([, codes]) => codes)).describe("one of the reason codes of the decision's kind"),
);
export const placeReasons = placeReasonsForm(reason);

export const profile = z
  .strictObject({ version: z.string(), exact: z.boolean(), why: z.string().nullable() })
  .describe(
    "`version`: the kubelet version whose rules made the decision; `exact`: true if the node or the request names this version; `why`: which version was used instead, or that the node's own version took precedence over the version in the request; null: neither is the case",
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
const needed = z
  .array(z.string())
  .describe("the inputs that the request does not have and without which a part of the answer is not known");
const explained = { reasons: z.array(placeReasons), needs: needed };
const explainedRecorded = { reasons: z.array(placeReasonsForm(recordedReason)), needs: needed };

const namedVersion = z
  .string()
  .optional()
  .describe("the kubelet version that the request named; absent: the request named none");

const issue = z.strictObject({
  path: z.string(),
  message: z.string(),
  near: z.string().optional().describe("the known name that is most similar to the unknown one"),
});
const answered = {
  ...identity,
  profile,
  kubeletVersion: namedVersion,
  recorded: z
    .boolean()
    .describe("true: the history contains the decision; false: the answer is the same, and nothing is recorded"),
  notRecorded: z
    .enum(NOT_RECORDED)
    .optional()
    .describe(
      "why the decision is not recorded: the request asked for no record, this server records nothing, or the history could not be written; absent: the decision is recorded",
    ),
  again: again.optional(),
  verdict: z.enum(VERDICTS).describe("the verdict of the decision"),
  assumed: z
    .array(z.strictObject({ path: z.string(), value: z.string() }))
    .optional()
    .describe(
      "the values that were not posted and were filled in as the API server does, such as requests from limits; absent: none",
    ),
  leftOut: z
    .array(issue)
    .optional()
    .describe(
      "the fields of the posted kubeletConfiguration that a kubelet does not know and ignores, at most 20; absent: none",
    ),
};
const decided = (decision: DecisionForm) => ({
  ...answered,
  decision,
  ...explained,
  next: z
    .unknown()
    .describe(
      "the facts that the kind remembers about the node, to post with the node's next decision of this kind as `ask.facts`; null: the kind remembers nothing",
    ),
});
export const decisionAnswer = ofEachKind("Answer", decided);
/** A decision of which the caller has an earlier form, with a patch of the changes. */
export const heldDecision = z.strictObject({
  ...answered,
  holds: id.describe("the id of the caller's decision that the request named"),
  patch: jsonPatch.describe(
    "a JSON patch (RFC 6902) that turns {decision, reasons, needs, next} of the caller's decision into those of this decision; []: they are the same",
  ),
});
const storedResult = z.looseObject({
  id,
  seq: integer,
  okCount: integer.describe("the number of steps that changed something, or with `dryRun` would change something"),
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
    "`version`: the kubelet version whose rules made the decision; `exact`: true if its snapshot or its request names this version; `why`: as in the answer, or that no snapshot of the decision is stored",
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
  near: z.array(z.string()).optional().describe("known names that are similar to the unknown one"),
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
  snapshotId: id.describe("the id of the node's snapshot after this turn, which is the `base` of the next turn"),
  decisions: z
    .array(
      z.union([
        decisionAnswer,
        heldDecision,
        z.strictObject({ kind, problem: z.strictObject({ code, detail, issues, needs }) }),
      ]),
    )
    .describe("one answer for each requested decision, in the order of the request"),
});
