import type { Result } from "../../../api/base/result.ts";
import { decideEviction } from "../../../api/decide/kinds/eviction.ts";
import type { Decided, Explain, Refusal } from "../../../api/model/decision.ts";
import {
  decodeEvictionAsk,
  type EvictionDecision,
  type EvictionFacts,
  type FileSystems,
} from "../../../api/model/eviction.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";
import { SimClock } from "../../sim/clock.ts";

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;
export const START = Date.parse("2026-01-31T12:00:00Z");
export type Answer = Decided<EvictionDecision>;

export function attempt(
  snapshot: unknown,
  facts: unknown,
  ask: unknown = undefined,
  explain: Explain = "full",
): Result<Answer, Refusal> {
  const read = decodeEvictionAsk(ask);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return decideEviction({
    snapshot: effectiveSnapshot(decoded(snapshot)),
    facts: { eviction: facts },
    ask: read.value,
    explain,
  });
}
/** The decision; a refusal throws its message. */
export function answer(snapshot: unknown, facts?: unknown, ask?: unknown): Answer {
  const result = attempt(snapshot, facts, ask);
  if (!result.ok) throw new Error(`refused: ${result.error.message}`);
  return result.value;
}

export const iso = (ms: number): string => new Date(ms).toISOString();
/** The memory stats of a node with 10 GiB. */
export const memory = (availableBytes: number, atMs: number): Json => ({
  time: iso(atMs),
  availableBytes,
  workingSetBytes: 10 * Gi - availableBytes,
});
export const disk = (availableBytes: number, atMs: number, more: Json = {}): Json => ({
  time: iso(atMs),
  availableBytes,
  capacityBytes: 100 * Gi,
  inodesFree: 900_000,
  inodes: 1_000_000,
  ...more,
});
export const podStats = (name: string, workingSetBytes: number, more: Json = {}): Json => ({
  podRef: { name, uid: `uid-${name}` },
  containers: [{ name: "c", memory: { workingSetBytes } }],
  memory: { workingSetBytes },
  ...more,
});
export type Disk = "nodefs" | "imagefs" | "containerfs";
/** The stats of a node with one file system that is low on space. */
export const lowOn = (layout: FileSystems, low: Disk, atMs = START): Json => {
  const of = (name: Disk): Json => disk(name === low ? Gi : 50 * Gi, atMs);
  return { fs: of("nodefs"), runtime: { imageFs: of("imagefs"), containerFs: of("containerfs") }, fileSystems: layout };
};
/** A snapshot that contains only what a memory threshold needs. */
export const underMemory = (
  config: Json,
  available: number,
  atMs = START,
  pods: readonly (readonly [Json, Json])[] = [],
): Json => ({
  observedAt: iso(atMs),
  kubeletConfiguration: { enforceNodeAllocatable: ["none"], ...config },
  pods: pods.map(([p]) => p),
  stats: { node: { memory: memory(available, atMs) }, pods: pods.map(([, s]) => s) },
});
export const underDisk = (config: Json, node: Json, pods: readonly (readonly [Json, Json])[] = []): Json => ({
  observedAt: iso(START),
  kubeletConfiguration: { enforceNodeAllocatable: ["none"], ...config },
  pods: pods.map(([p]) => p),
  stats: { node, pods: pods.map(([, s]) => s) },
});

/**
 * Passes of one kubelet on a simulated clock. Each pass gets the facts of the previous one, converted to JSON and back
 * as the history stores them.
 */
export class Passes {
  readonly clock = new SimClock(START);
  facts: EvictionFacts | undefined;
  after(ms: number, snapshotAt: (nowMs: number) => Json): Answer {
    this.clock.nowMs += ms;
    const decided = answer(snapshotAt(this.clock.nowMs), this.facts);
    this.facts = JSON.parse(JSON.stringify(decided.next)) as EvictionFacts;
    return decided;
  }
}
export const victims = ({ decision }: Answer): readonly string[] => decision.evicted.map((e) => e.pod.name);
export const types = ({ decision }: Answer): readonly string[] => decision.conditions.map((c) => c.type);
export const codes = ({ reasons }: Answer): readonly string[] => reasons.flatMap((r) => r.because.map((b) => b.code));
