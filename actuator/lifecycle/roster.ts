import { isStopped } from "./finished.ts";
import type { RunnablePod } from "./pod.ts";
import type { PodEnd } from "./pod-end.ts";
import type { PodRecord } from "./record.ts";
import type { RuntimePods } from "./runtime-pod.ts";

/** What became of the pods of a node since the last look, in the order in which it is to be noted. */
export type RosterChange =
  /** A pod that was never seen. */
  | { readonly kind: "comes"; readonly pod: RunnablePod }
  /** It runs already, and its record is lost: it is taken as it is. */
  | { readonly kind: "adopts"; readonly pod: RunnablePod }
  /** The same pod with another spec, labels or annotations. */
  | { readonly kind: "changes"; readonly uid: string; readonly pod: RunnablePod }
  | { readonly kind: "ends"; readonly uid: string; readonly end: PodEnd }
  /** Nothing of it runs, and nobody asks for it: its record goes. */
  | { readonly kind: "leaves"; readonly uid: string }
  /** It runs under the daemon's name, and neither a record nor a source knows it. */
  | { readonly kind: "orphan"; readonly uid: string };

export interface Roster {
  readonly desired: ReadonlyMap<string, RunnablePod>;
  /** False: a pod that is missing need not be gone. */
  readonly whole: boolean;
  /** `NAMESPACE/NAME` of pods whose present form cannot be run: what runs of them goes on. */
  readonly refused: ReadonlySet<string>;
  readonly records: Iterable<readonly [string, PodRecord]>;
  /** Of the daemon's own; null: the runtime does not answer. */
  readonly seen: RuntimePods | null;
  readonly nowMs: number;
}

/**
 * Compares what should run with what is known and what runs. Pure. INVARIANT: doubt ends nothing: a list that may lack
 * pods, a form that cannot be run, a runtime that does not answer.
 */
export function rosterChanges({ desired, whole, refused, records, seen, nowMs }: Roster): readonly RosterChange[] {
  const changes: RosterChange[] = [];
  const known = new Set<string>();
  for (const [uid, record] of records) {
    known.add(uid);
    const pod = desired.get(uid);
    const change = pod === undefined ? missing(uid, record, whole, refused, nowMs) : listed(uid, record, pod, nowMs);
    if (change !== null) changes.push(change);
  }
  for (const pod of desired.values()) {
    if (known.has(pod.uid)) continue;
    const left = seen?.get(pod.uid);
    if (pod.deletion !== null && left === undefined) continue;
    // what has stopped holds nothing, so that its room may be another's by now
    if (left !== undefined && (pod.deletion !== null || !isStopped(left))) changes.push({ kind: "adopts", pod });
    // without the runtime's word it may run already
    else if (seen !== null) changes.push({ kind: "comes", pod });
  }
  for (const uid of seen?.keys() ?? []) {
    if (whole && !known.has(uid) && !desired.has(uid)) changes.push({ kind: "orphan", uid });
  }
  return changes;
}

function listed(uid: string, record: PodRecord, pod: RunnablePod, nowMs: number): RosterChange | null {
  if (record.state === "ends" || (record.state === "ended" && pod.deletion === null)) return null;
  if (pod.deletion !== null) return ending(uid, record, deleted(nowMs, pod.deletion.graceSeconds));
  return sameSpec(record.pod, pod.object) ? null : { kind: "changes", uid, pod };
}

function missing(
  uid: string,
  record: PodRecord,
  whole: boolean,
  refused: ReadonlySet<string>,
  nowMs: number,
): RosterChange | null {
  if (!whole || refused.has(nameOf(record))) return null;
  if (record.state === "ends") return null;
  return ending(uid, record, deleted(nowMs, null));
}

/** A pod that never started, or has ended, has nothing to stop. */
const ending = (uid: string, { state }: PodRecord, end: PodEnd): RosterChange =>
  state === "waits" || state === "ended" ? { kind: "leaves", uid } : { kind: "ends", uid, end };

const deleted = (sinceMs: number, graceSeconds: number | null): PodEnd => ({
  cause: "deleted",
  reason: "",
  message: "",
  sinceMs,
  graceSeconds,
  decisionId: null,
});

function nameOf({ pod }: PodRecord): string {
  const { namespace = "default", name } = pod["metadata"] as { namespace?: string; name: string };
  return `${namespace}/${name}`;
}

/** Whether the same is asked for; `status` and the rest of `metadata` are not asked for. */
export const sameSpec = (one: object, other: object): boolean => one === other || specText(one) === specText(other);
/** Asked each second about the same objects. */
const specTexts = new WeakMap<object, string>();
function specText(pod: object): string {
  const known = specTexts.get(pod);
  if (known !== undefined) return known;
  const { spec, metadata } = pod as { spec?: unknown; metadata?: { labels?: unknown; annotations?: unknown } };
  const text = JSON.stringify([spec, metadata?.labels, metadata?.annotations]);
  specTexts.set(pod, text);
  return text;
}
