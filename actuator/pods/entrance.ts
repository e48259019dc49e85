import { isCriticalPod } from "../../api/decide/resources/critical.ts";
import { pod as podSchema } from "../../api/model/pod.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodRecord, Refusal } from "../lifecycle/record.ts";
import type { KnownPod } from "./pod-set.ts";

/** Why a pod waits that nobody has asked about yet. */
export const FORMER_VERSION = "FormerVersionEnding";
export const WAITS_FOR_VICTIMS = "WaitingForVictims";

/** Pods that wait, in the order in which they are asked about: critical ones, then by priority, then as they came. */
export function inTurn(pods: readonly KnownPod[]): readonly KnownPod[] {
  const rank = ({ pod }: KnownPod): number => (isCritical(pod) ? Number.MAX_SAFE_INTEGER : (pod.spec.priority ?? 0));
  return pods.toSorted(
    (a, b) => rank(b) - rank(a) || a.record.seenAtMs - b.record.seenAtMs || (a.uid < b.uid ? -1 : 1),
  );
}

const critical = new WeakMap<object, boolean>();
export function isCritical(pod: RunnablePod): boolean {
  const known = critical.get(pod.object);
  if (known !== undefined) return known;
  const { status: _status, ...object } = pod.object;
  const parsed = podSchema.safeParse(object);
  const found = parsed.success && isCriticalPod(parsed.data);
  critical.set(pod.object, found);
  return found;
}

/** A record of a pod that has just come. */
export const arrival = (pod: RunnablePod, nowMs: number): PodRecord => ({
  version: 1,
  pod: pod.object,
  state: "waits",
  seenAtMs: nowMs,
  admittedAtMs: null,
  refusal: null,
  end: null,
  backOff: {},
  resize: null,
});
export const admitted = (record: PodRecord, nowMs: number): PodRecord => ({
  ...record,
  state: "lives",
  admittedAtMs: record.admittedAtMs ?? nowMs,
  refusal: null,
  end: null,
});
/** It waits for something; `isTry`: it was refused, which the kubelet does for good, and is tried again here. */
export function refused(record: PodRecord, reason: string, message: string, nowMs: number, isTry: boolean): PodRecord {
  const before = record.refusal;
  const isSame = before !== null && before.reason === reason;
  const sinceMs = isSame ? before.sinceMs : nowMs;
  const refusal: Refusal = { reason, message, sinceMs, tries: isTry ? (before?.tries ?? 0) + 1 : 0 };
  return { ...record, state: "waits", refusal };
}

/** Another pod of its name that still holds what it needs: the former version of a manifest. Null: there is none. */
export const formerOf = ({ uid, pod }: KnownPod, living: readonly KnownPod[]): KnownPod | null =>
  living.find((other) => other.uid !== uid && other.pod.name === pod.name && other.pod.namespace === pod.namespace) ??
  null;
