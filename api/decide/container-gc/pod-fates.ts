import type { ReasonCode } from "../../model/decision.ts";
import { BY_KUBELET } from "../../model/eviction.ts";
import { isTerminal, isTerminating, type Pod, podUid } from "../../model/pod.ts";
import type { RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { isAfter, nanosOf } from "./unix-nanos.ts";

const UID_LABEL = "io.kubernetes.pod.uid";
/** Empty where the runtime knows of no pod, as the kubelet has it. */
export const uidOf = (c: RuntimeContainer): string => c.labels?.[UID_LABEL] ?? "";

/** `unsynced`: not posted, and not every source of pods has been heard, so that nothing can be said. */
type PodFate = "exists" | "terminated" | "removed" | "unsynced";
export interface PodState {
  readonly fate: PodFate;
  /** Code of the reason. */
  readonly because: ReasonCode<"container-gc">;
}
const NOT_POSTED: PodState = { fate: "removed", because: "pod_not_posted" };
const UNSYNCED: PodState = { fate: "unsynced", because: "sources_not_ready" };
const STILL_RUNS: PodState = { fate: "exists", because: "pod_not_posted_still_runs" };
const POSTED: PodState = { fate: "exists", because: "pod_exists" };
const EVICTED: PodState = { fate: "removed", because: "pod_evicted" };
const DELETED: PodState = { fate: "removed", because: "pod_ended_and_deleted" };
const ENDED: PodState = { fate: "terminated", because: "pod_ended" };

/**
 * What has become of the pod with a uid. A kubelet asks its pod workers; a snapshot shows as much of them:
 * - A posted uid is known, a mirror pod's also by the uid of its static pod. So is one that is not posted but runs (it has
 *   a ready sandbox or a running container): the kubelet still tears it down, or it is newer than the list of pods.
 * - Any other is gone once all sources of pods are ready. Containers without a uid are of the pod "", which is never known.
 * - Terminated: the phase says ended, or deletion has begun, and nothing of it runs any more.
 * - Evicted, to make room too: the kubelet's own condition DisruptionTarget. A kubelet forgets it when it restarts (and a
 *   shutdown sets it as well), so with `kubelet.startedAt` it counts only where a part of the pod was made since.
 * Whether a pod with a finaliser ended before its deletion, when the kubelet keeps its containers, cannot be told.
 * kubelet 1.36: ShouldPodContentBeRemoved, ShouldPodRuntimeBeRemoved.
 */
export function podFates(
  { pods = [], kubelet }: Snapshot,
  containers: readonly RuntimeContainer[],
  sandboxes: readonly RuntimeSandbox[],
): (uid: string) => PodState {
  const startedAt = kubelet?.startedAt === undefined ? null : nanosOf(kubelet.startedAt).toString();
  const parts = partsOf(containers, sandboxes, startedAt);
  const isOfThisKubelet = (uid: string): boolean => startedAt === null || parts.ofThisKubelet.has(uid);
  const known = new Map<string, PodState>();
  for (const pod of pods) {
    const uid = podUid(pod) ?? "";
    const evicted = kubelet?.shuttingDown !== true && isDisrupted(pod) && isOfThisKubelet(uid);
    const state = evicted ? EVICTED : stateOf(pod, parts.running.has(uid));
    const { uid: own, annotations } = pod.metadata;
    for (const name of [uid, own, annotations?.[HASH_ANNOTATION]]) if (name !== undefined) known.set(name, state);
  }
  const unknown = kubelet?.sourcesReady === false ? UNSYNCED : NOT_POSTED;
  return (uid) => known.get(uid) ?? (parts.running.has(uid) ? STILL_RUNS : unknown);
}
/** Annotation of a static pod, and of its mirror, with the uid that the runtime knows. */
const HASH_ANNOTATION = "kubernetes.io/config.hash";

const isDisrupted = ({ status }: Pod): boolean =>
  status?.conditions?.some((c) => c.type === "DisruptionTarget" && c.status === "True" && c.reason === BY_KUBELET) ??
  false;

function stateOf(pod: Pod, runs: boolean): PodState {
  const isDeleted = isTerminating(pod);
  if (runs || !(isDeleted || isTerminal(pod))) return POSTED;
  return isDeleted ? DELETED : ENDED;
}

interface Parts {
  /** Uids of which a container runs or a sandbox is ready. */
  readonly running: ReadonlySet<string>;
  /** Uids of which a container or sandbox was made since the kubelet started; empty if that is not told. */
  readonly ofThisKubelet: ReadonlySet<string>;
}
function partsOf(
  containers: readonly RuntimeContainer[],
  sandboxes: readonly RuntimeSandbox[],
  startedAt: string | null,
): Parts {
  const running = new Set<string>();
  const ofThisKubelet = new Set<string>();
  const isNew = (createdAt: string): boolean => startedAt !== null && !isAfter(startedAt, createdAt);
  for (const c of containers) {
    if (c.state === "CONTAINER_RUNNING") running.add(uidOf(c));
    if (isNew(c.createdAt)) ofThisKubelet.add(uidOf(c));
  }
  for (const { state, metadata, createdAt } of sandboxes) {
    if (state === "SANDBOX_READY") running.add(metadata.uid);
    if (isNew(createdAt)) ofThisKubelet.add(metadata.uid);
  }
  return { running, ofThisKubelet };
}

/** Why all of a pod may go, or null. kubelet 1.36: evictNonDeletedPods is `underPressure`. */
export function goneBecause({ fate, because: code }: PodState, underPressure: boolean) {
  if (fate === "removed") return { why: "pod-removed", code } as const;
  return underPressure && fate === "terminated" ? ({ why: "pod-terminated", code } as const) : null;
}
