import * as z from "zod";
import { issuesOf } from "./decode.ts";
import { count, text, wholeNumber } from "./fields.ts";
import type { Form } from "./forms.ts";
import type { InputIssue } from "./input-issue.ts";
import { COUNT, type JsonSchema, type JsonSchemas, strictObject, TEXT } from "./json-schema.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";
import { LIMITS } from "./limits.ts";
import { withoutNulls } from "./nulls.ts";
import { err, ok, type Result } from "./result.ts";

/** When failed liveness probes are taken for one trouble of the node, not for many of its containers. */
export interface GuardSettings {
  /** Failures so far apart, or closer, belong together. */
  readonly windowSeconds: number;
  /**
   * So many unrelated groups of pods, or this share (0 to 1) of all groups with liveness probes. Of either, at least 2:
   * one group has nobody to be related to.
   */
  readonly least: { readonly groups: number } | { readonly share: number };
  /** No kill is held longer. */
  readonly holdSeconds: number;
}

/** A container whose liveness probe has reached its failure threshold. */
export interface FailedContainer {
  readonly containerId: string;
  /** For people: `NAMESPACE/POD/CONTAINER`. */
  readonly container: string;
  /** Pods of one owner are one group: what they have in common is no storm. */
  readonly group: string;
}
/**
 * One that failed before, as it stands at the moment of the question; one whose last attempt failed too, though it has not
 * reached its threshold yet: who begins to fail belongs to a storm before anything is killed.
 */
export interface KnownFailure extends FailedContainer {
  /** Since its last failed attempt. */
  readonly failedAgoMs: number;
  /** Null: its kill was not held, or is not due. */
  readonly heldForMs: number | null;
}
/** Which kills are to wait, of all that failed together. What was known before is posted: nothing is remembered. */
export interface ProbeGuardAsk {
  /** Null: nothing is asked. */
  readonly guard: GuardSettings | null;
  /** Groups of pods that have a liveness probe. */
  readonly groups: number;
  /** `known` of the answer before, as much later as it is, and what has begun to fail since then. */
  readonly known: readonly KnownFailure[];
  /** Since then; once more at each attempt that fails while the kill is held. */
  readonly failed: readonly FailedContainer[];
  /** Ids of containers that answer again. */
  readonly recovered: readonly string[];
  /** Ids of containers that nobody probes any more. */
  readonly gone: readonly string[];
}

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
    message: z.string().describe("what a person is told of it"),
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
      .describe("what the next question is to be told"),
  }),
);
export type ProbeGuardDecision = Form<typeof probeGuardDecision>;

const MAX_SECONDS = 86_400;
const list = <S extends z.ZodType>(of: S) => z.array(of).max(LIMITS.runtimeContainers).default([]);
const failed = z.strictObject({ containerId: text.min(1), container: text, group: text });
const guard = z.strictObject({
  windowSeconds: z.number().positive().max(MAX_SECONDS),
  least: z.union([
    z.strictObject({ groups: wholeNumber(1, LIMITS.runtimeContainers) }),
    z.strictObject({ share: z.number().min(0).max(1) }),
  ]),
  holdSeconds: z.number().positive().max(MAX_SECONDS),
});
const schema = z.strictObject({
  guard: guard.nullable().default(null),
  groups: count.default(0),
  known: list(failed.extend({ failedAgoMs: ms, heldForMs: ms.nullable().default(null) })),
  failed: list(failed),
  recovered: list(text),
  gone: list(text),
});

/** Checks a posted ask and parses it once. Errors: every issue with its path. */
export function decodeProbeGuardAsk(input: unknown, at = "ask"): Result<ProbeGuardAsk, readonly InputIssue[]> {
  const given = withoutNulls(input ?? {});
  const parsed = schema.safeParse(given);
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, given, at));
}

const SECONDS: JsonSchema = { type: "number", exclusiveMinimum: 0, maximum: MAX_SECONDS };
const GUARD = strictObject(
  {
    windowSeconds: { ...SECONDS, description: "failures so far apart, or closer, belong together" },
    least: {
      description: "so many unrelated groups, or this share of all groups: a storm; of either at least 2",
      anyOf: [
        strictObject({ groups: { type: "integer", minimum: 1, maximum: LIMITS.runtimeContainers } }, ["groups"]),
        strictObject({ share: { type: "number", minimum: 0, maximum: 1 } }, ["share"]),
      ],
    },
    holdSeconds: { ...SECONDS, description: "no kill is held longer" },
  },
  ["windowSeconds", "least", "holdSeconds"],
);
const FAILED = {
  containerId: { ...TEXT, minLength: 1 },
  container: { ...TEXT, description: "NAMESPACE/POD/CONTAINER, for people" },
  group: { ...TEXT, description: "pods of one owner are one group: what they have in common is no storm" },
};
const AGO: JsonSchema = { type: "number", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const listSchema = (description: string, items: JsonSchema): JsonSchema => ({
  type: "array",
  maxItems: LIMITS.runtimeContainers,
  description,
  items,
});
const ASK_MEMBERS: JsonSchemas = {
  guard: { ...GUARD, description: "when kills are held" },
  groups: { ...COUNT, default: 0, description: "groups of pods that have a liveness probe" },
  known: listSchema(
    "`known` of the answer before, as much later as it is, and containers whose attempts have begun to fail since then",
    strictObject({ ...FAILED, failedAgoMs: AGO, heldForMs: AGO }, [...Object.keys(FAILED), "failedAgoMs"]),
  ),
  failed: listSchema(
    "containers whose liveness probe has failed since then",
    strictObject(FAILED, Object.keys(FAILED)),
  ),
  recovered: listSchema("ids of containers that answer again", TEXT),
  gone: listSchema("ids of containers that nobody probes any more", TEXT),
};

export const probeGuard = {
  decides: "which liveness kills wait because many unrelated pods fail together, which go ahead, and why",
  ask: { decode: decodeProbeGuardAsk, schema: { name: "ProbeGuardAsk", members: ASK_MEMBERS }, pod: "none" },
  decision: probeGuardDecision,
  reasons: PROBE_GUARD_REASONS,
  facts: null,
  traits: { ...PLAIN, pods: "nothing", needsSnapshot: false },
} as const satisfies KindSpec;
