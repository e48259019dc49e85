import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodRecord, Refusal } from "../lifecycle/record.ts";
import { isCritical } from "./decoded-pod.ts";
import type { KnownPod } from "./pod-set.ts";

/** Why a pod waits that nobody has asked about yet. */
export const FORMER_VERSION = "FormerVersionEnding";
export const WAITS_FOR_VICTIMS = "WaitingForVictims";

/** Pods that wait, in the order in which they are asked about: critical ones, then by priority, then as they came. */
export function inTurn(pods: readonly KnownPod[]): readonly KnownPod[] {
  const rank = ({ pod }: KnownPod): number => Number(isCritical(pod));
  const priority = ({ pod }: KnownPod): number => pod.spec.priority ?? 0;
  return pods.toSorted(
    (a, b) =>
      rank(b) - rank(a) ||
      priority(b) - priority(a) ||
      a.record.seenAtMs - b.record.seenAtMs ||
      (a.uid < b.uid ? -1 : 1),
  );
}

/** A record of a pod that has just come; `file`: where it was read. */
export const arrival = (pod: RunnablePod, nowMs: number, file?: string): PodRecord => ({
  version: 1,
  pod: pod.object,
  ...(file !== undefined && { file }),
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
