import * as z from "zod";
import type { InputIssue } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import type { Result } from "../base/result.ts";
import { decodeForm } from "./decode.ts";
import { count, optionalOr, text, wholeNumber } from "./fields.ts";
import type { Form } from "./forms.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";

const GUARD_RELEASES = ["recovered", "gone", "calm", "held long enough"] as const;
export type GuardRelease = (typeof GUARD_RELEASES)[number];

const PROBE_GUARD_REASONS = [
  "kill_held",
  "kill_held_on",
  "kill_not_held",
  "no_probe_storm",
  "probe_storm",
  "released_calm",
  "released_gone",
  "released_held_long_enough",
  "released_recovered",
] as const;

const ms = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
const named = () => ({ containerId: z.string(), container: z.string().describe("NAMESPACE/POD/CONTAINER") });
/** The decision of the kind `probe-guard`: which liveness kills wait. */
const probeGuardDecision = z.lazy(() =>
  z.strictObject({
    storm: z.boolean().describe("so many unrelated groups failed within the window that kills are held"),
    groups: count,
    failingGroups: count,
    leastGroups: count.describe("from so many on it is a storm"),
    message: z.string().describe("a sentence about it, for people"),
    kill: z.array(z.strictObject(named())).describe("of those that failed: whose kill goes ahead"),
    hold: z
      .array(z.strictObject({ ...named(), heldForMs: ms.describe("0: from now on") }))
      .describe("of those that failed: whose kill waits"),
    released: z
      .array(z.strictObject({ ...named(), why: z.enum(GUARD_RELEASES) }))
      .describe("kills that were held and are not any more; after `calm` and `held long enough` they go ahead"),
    holding: count.describe("all that are held now"),
    known: z
      .array(
        z.strictObject({
          ...named(),
          group: z.string().describe("pods of one owner"),
          failedAgoMs: ms,
          heldForMs: ms.nullable(),
        }),
      )
      .describe("what has to be posted with the next question"),
  }),
);
export type ProbeGuardDecision = Form<typeof probeGuardDecision>;

const MAX_SECONDS = 86_400;
const seconds = z.number().positive().max(MAX_SECONDS);
const guard = z.strictObject({
  windowSeconds: seconds.describe("failures so far apart, or closer, belong together"),
  // a storm needs at least two groups
  least: z
    .union([
      z.strictObject({ groups: wholeNumber(1, LIMITS.runtimeContainers) }),
      z.strictObject({ share: z.number().min(0).max(1) }),
    ])
    .describe("so many unrelated groups, or this share of all groups: a storm; of either at least 2"),
  holdSeconds: seconds.describe("no kill is held longer"),
});
/** When failed liveness probes are taken for one trouble of the node, not for many of its containers. */
export type GuardSettings = Form<typeof guard>;

const failed = z.strictObject({
  containerId: text.min(1),
  container: text.describe("NAMESPACE/POD/CONTAINER, for people"),
  group: text.describe("pods of one owner are one group: what they have in common is no storm"),
});
/** A container whose liveness probe has reached its failure threshold. */
export type FailedContainer = Form<typeof failed>;
const known = failed.extend({
  failedAgoMs: ms.describe("since its last failed attempt"),
  heldForMs: optionalOr(ms, null).describe("absent: its kill was not held, or is not due"),
});
/**
 * A container that failed earlier, as of the time of the question. This includes a container whose last attempt
 * failed and that has not reached its threshold yet, so that a storm is recognised before anything is killed.
 */
export type KnownFailure = Form<typeof known>;

const list = <S extends z.ZodType>(of: S) => optionalOr(z.array(of).max(LIMITS.runtimeContainers), []);
const ask = z.strictObject({
  guard: optionalOr(guard, null).describe("when kills are held"),
  groups: count.default(0).describe("groups of pods that have a liveness probe"),
  known: list(known).describe(
    "`known` of the answer before, as much later as it is, and containers whose attempts have begun to fail since then",
  ),
  failed: list(failed).describe(
    "containers whose liveness probe has failed since then; once more at each attempt that fails while the kill is held",
  ),
  recovered: list(text).describe("ids of containers that answer again"),
  gone: list(text).describe("ids of containers that nobody probes any more"),
});
/** Which kills are to wait, of all that failed together. What was known before is posted: nothing is remembered. */
export type ProbeGuardAsk = Form<typeof ask>;

/** Checks a posted ask and parses it once. Errors: every issue with its path. */
export const decodeProbeGuardAsk = (input: unknown, at = "ask"): Result<ProbeGuardAsk, readonly InputIssue[]> =>
  decodeForm(ask, input ?? {}, at);

export const probeGuard = {
  decides:
    "which kills by liveness probes are held back because many unrelated pods fail together, which go ahead, and why",
  ask: { decode: decodeProbeGuardAsk, schema: { name: "ProbeGuardAsk", form: ask }, pod: "none" },
  decision: probeGuardDecision,
  reasons: PROBE_GUARD_REASONS,
  facts: null,
  traits: {
    ...PLAIN,
    pods: "nothing",
    needsSnapshot: false,
    whatIf: "not-asked",
    nodePage: "not-drawn",
    up: "not-asked",
    collected: null,
  },
} as const satisfies KindSpec;
