import * as z from "zod";
import { issuesOf } from "./decode.ts";
import { EVICTION_SIGNALS, FILE_SYSTEMS, PRESSURE_CONDITIONS } from "./eviction.ts";
import { optional, text, wholeNumber } from "./fields.ts";
import { type ImageGcFacts, imageGcFacts } from "./image-gc-facts.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { withoutNulls } from "./nulls.ts";
import { err, ok, type Result } from "./result.ts";
import { type Stats, stats } from "./stats.ts";

/** Of one signal: enough for a slope, few enough to pair them all. */
export const SAMPLES_PER_SIGNAL = 32;
const THRESHOLDS = 64;

const signal = z.enum(EVICTION_SIGNALS);
const atMs = wholeNumber(0, 8.64e15);
const threshold = z.object({
  signal,
  value: text,
  graceMs: z.number().min(0).max(Number.MAX_SAFE_INTEGER),
  minReclaim: optional(text),
});

/** What a kubelet remembers from pass to pass; it loses it when it restarts, history does not. Times in epoch ms. */
export const evictionFacts = z.object({
  /** Of the last pass. */
  atMs,
  /** Looked at once in a kubelet's life. */
  fileSystems: z.enum(FILE_SYSTEMS),
  thresholdsFirstObservedAt: z.array(z.object({ threshold, atMs })).max(THRESHOLDS),
  thresholdsMet: z.array(threshold).max(THRESHOLDS),
  nodeConditionsLastObservedAt: z
    .array(z.object({ condition: z.enum(PRESSURE_CONDITIONS), atMs }))
    .max(PRESSURE_CONDITIONS.length),
  /** `atMs` null: the stats had no time. */
  lastObservations: z.array(z.object({ signal, atMs: z.nullable(atMs) })).max(EVICTION_SIGNALS.length),
  /** What was available at earlier passes, for the forecast; any order. */
  samples: z
    .array(z.object({ atMs, signal, available: wholeNumber(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) }))
    .max(SAMPLES_PER_SIGNAL * EVICTION_SIGNALS.length),
});
export type EvictionFacts = Readonly<z.output<typeof evictionFacts>>;

/** Checks what history remembers of the kind (`facts.eviction`); absent: a kubelet's first pass. Errors: every issue with its path. */
export function decodeEvictionFacts(
  input: unknown,
  at = "facts.eviction",
): Result<EvictionFacts | undefined, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok(undefined);
  const parsed = evictionFacts.safeParse(input);
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, input, at));
}

/** What an eviction pass is asked beside the snapshot. */
export interface EvictionAsk {
  /** `NAMESPACE/NAME` of a pod whose counterfactuals are wanted beside those of the next victim. */
  readonly pod: string | null;
  /** The Summary after the node-level reclaim functions ran; null: they have not. */
  readonly statsAfterReclaim: Stats | null;
  /** The `next` of the node's last image-gc: what is old enough to be reclaimed; null: every image is first seen now. */
  readonly images: ImageGcFacts | null;
}
const NOTHING_ASKED: EvictionAsk = { pod: null, statsAfterReclaim: null, images: null };
const ask = z.strictObject({ pod: optional(text), statsAfterReclaim: optional(stats), images: optional(imageGcFacts) });

/** Checks a posted ask. Errors: every issue with its path. */
export function decodeEvictionAsk(input: unknown, at = "ask"): Result<EvictionAsk, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok(NOTHING_ASKED);
  const first = ask.safeParse(input);
  const parsed = first.success ? first : ask.safeParse(withoutNulls(input));
  if (!parsed.success) return err(issuesOf(parsed.error, input, at));
  const { pod, statsAfterReclaim, images } = parsed.data;
  if (pod !== undefined && !/^[^/]+\/[^/]+$/.test(pod)) {
    return err([{ path: joinPath(at, ["pod"]), message: "must be NAMESPACE/NAME of a pod of the snapshot" }]);
  }
  return ok({ pod: pod ?? null, statsAfterReclaim: statsAfterReclaim ?? null, images: images ?? null });
}
