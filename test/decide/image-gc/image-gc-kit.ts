import type { Result } from "../../../api/base/result.ts";
import { decideImageGc } from "../../../api/decide/kinds/image-gc.ts";
import type { Decided, Explain, Refusal } from "../../../api/model/decision.ts";
import { decodeImageGcAsk, type ImageGcDecision, type ImageGcFacts } from "../../../api/model/image-gc.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { runtimeContainer } from "../../kit/runtime.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";

export { runtimeImage as image } from "../../kit/runtime.ts";

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const START = Date.parse("2026-01-31T12:00:00Z");
export const iso = (ms: number): string => new Date(ms).toISOString();
export type Answer = Decided<ImageGcDecision>;

export function attempt(
  input: unknown,
  facts?: unknown,
  ask?: unknown,
  explain: Explain = "full",
): Result<Answer, Refusal> {
  const read = decodeImageGcAsk(ask);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return decideImageGc({
    snapshot: effectiveSnapshot(decoded(input)),
    facts: { "image-gc": facts },
    ask: read.value,
    explain,
  });
}
/** The decision; a refusal throws its message. */
export function answer(input: unknown, facts?: unknown, ask?: unknown): Answer {
  const result = attempt(input, facts, ask);
  if (!result.ok) throw new Error(`refused: ${result.error.message}`);
  return result.value;
}
export function refusal(input: unknown, facts?: unknown, ask?: unknown): Refusal {
  const result = attempt(input, facts, ask);
  if (result.ok) throw new Error("answered");
  return result.error;
}

/** A running container `app` from the image. */
export const containerFrom = (imageId: string, more: Json = {}): Json =>
  runtimeContainer(`c-${imageId}`, {
    metadata: { name: "app" },
    imageId,
    state: "CONTAINER_RUNNING",
    mounts: [],
    ...more,
  });
/** A disk of 10 GiB, by default 95 % used, so that 1.5 GiB must be freed. The minimum age of images is 0. */
export const gcNode = (images: readonly Json[], more: Json = {}, runtime: Json = {}): Json => ({
  observedAt: iso(START),
  pods: [],
  kubeletConfiguration: { imageMinimumGCAge: "0s" },
  stats: disk(Gi / 2),
  runtime: { images, containers: [], ...runtime },
  ...more,
});
export const disk = (availableBytes: number, capacityBytes = 10 * Gi): Json => ({
  node: { runtime: { imageFs: { availableBytes, capacityBytes } } },
});

type Record = readonly [id: string, firstDetectedMs: number, lastUsedMs: number | null, handler?: string];
/** Facts whose times are relative to START. */
export const facts = (records: readonly Record[], more: Partial<ImageGcFacts> = {}): ImageGcFacts => ({
  atMs: START - 5 * MINUTE,
  beganAtMs: START - 24 * HOUR,
  failed: false,
  records: records.map(([id, first, last, ...handler]) => [
    id,
    START + first,
    last === null ? null : START + last,
    ...handler,
  ]) as ImageGcFacts["records"],
  removed: [],
  ...more,
});

export const removedIds = (a: Answer): readonly string[] => a.decision.remove.map((r) => r.id);
/** Why each image stays, by id. */
export const kept = (a: Answer): Readonly<{ [id: string]: string }> =>
  Object.fromEntries(a.decision.keep.map((k) => [k.id, k.why]));
/** `CODE AT` of every reason. */
export const reasons = (a: Answer): readonly string[] =>
  a.reasons.flatMap(({ at, because }) => because.map(({ code }) => `${code} ${at}`));
export const next = (a: Answer): ImageGcFacts => a.next as ImageGcFacts;
