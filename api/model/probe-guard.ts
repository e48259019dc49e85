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
    storm: z
      .boolean()
      .describe(
        "true: at least `leastGroups` unrelated groups of pods failed within `windowSeconds`, so kills are held",
      ),
    groups: count,
    failingGroups: count,
    leastGroups: count.describe("the number of failing groups from which on kills are held"),
    message: z.string().describe("a sentence about the decision, for people"),
    kill: z.array(z.strictObject(named())).describe("the failed containers that are killed now"),
    hold: z
      .array(
        z.strictObject({
          ...named(),
          heldForMs: ms.describe("the milliseconds for which the kill has been held; 0: it is held from now on"),
        }),
      )
      .describe("the failed containers whose kill is held"),
    released: z
      .array(z.strictObject({ ...named(), why: z.enum(GUARD_RELEASES) }))
      .describe("the containers whose kill is no longer held; with `calm` and `held long enough` they are killed now"),
    holding: count.describe("the number of kills that are held now"),
    known: z
      .array(
        z.strictObject({
          ...named(),
          group: z.string().describe("the owner of the container's pod: the pods of one owner are one group"),
          failedAgoMs: ms,
          heldForMs: ms.nullable(),
        }),
      )
      .describe("the failures to post as `known` with the next request"),
  }),
);
export type ProbeGuardDecision = Form<typeof probeGuardDecision>;

const MAX_SECONDS = 86_400;
const seconds = z.number().positive().max(MAX_SECONDS);
const guard = z.strictObject({
  windowSeconds: seconds.describe(
    "the window in seconds: a failure counts for this time, and as long as its kill is held",
  ),
  // a storm needs at least two groups
  least: z
    .union([
      z.strictObject({ groups: wholeNumber(1, LIMITS.runtimeContainers) }),
      z.strictObject({ share: z.number().min(0).max(1) }),
    ])
    .describe(
      "the number of unrelated failing groups, or their share of all groups from 0 to 1, from which on kills are held; at least 2 groups in either case",
    ),
  holdSeconds: seconds.describe("the longest time in seconds for which a kill is held"),
});
/** When failed liveness probes are taken for one trouble of the node, not for many of its containers. */
export type GuardSettings = Form<typeof guard>;

const failed = z.strictObject({
  containerId: text.min(1),
  container: text.describe("NAMESPACE/POD/CONTAINER, which messages contain"),
  group: text.describe("the owner of the container's pod; the pods of one owner are one group and count once"),
});
/** A container whose liveness probe has reached its failure threshold. */
export type FailedContainer = Form<typeof failed>;
const known = failed.extend({
  failedAgoMs: ms.describe("the milliseconds since the last failed attempt"),
  heldForMs: optionalOr(ms, null).describe(
    "the milliseconds for which the kill has been held; absent: the kill is not held, or is not due",
  ),
});
/**
 * A container that failed earlier, as of the time of the question. This includes a container whose last attempt
 * failed and that has not reached its threshold yet, so that a storm is recognised before anything is killed.
 */
export type KnownFailure = Form<typeof known>;

const list = <S extends z.ZodType>(of: S) => optionalOr(z.array(of).max(LIMITS.runtimeContainers), []);
const ask = z.strictObject({
  guard: optionalOr(guard, null).describe("the settings that determine when kills are held"),
  groups: count.default(0).describe("the number of groups of pods that have a liveness probe"),
  known: list(known).describe(
    "`known` of the last answer, with the time since that answer added to its milliseconds, and containers whose attempts have begun to fail since then",
  ),
  failed: list(failed).describe(
    "the containers whose liveness probe has reached its failure threshold since the last answer; a container whose kill is held is listed again after each failed attempt",
  ),
  recovered: list(text).describe("the ids of containers whose liveness probe succeeds again"),
  gone: list(text).describe("the ids of containers that are no longer probed"),
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
