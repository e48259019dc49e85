import type { ReasonCode } from "../../model/decision.ts";
import { BY_KUBELET } from "../../model/eviction.ts";
import { isTerminal, isTerminating, type Pod, podUid } from "../../model/pod.ts";
import type { RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { isAfter, nanosOf } from "./unix-nanos.ts";

const UID_LABEL = "io.kubernetes.pod.uid";
/** The pod uid of a container; empty if the runtime has no label for it, as in the kubelet. */
export const uidOf = (c: RuntimeContainer): string => c.labels?.[UID_LABEL] ?? "";

/**
 * What became of a pod. `unsynced`: it was not posted, but some source of pods has not been heard yet, so nothing is
 * certain.
 */
type PodPresence = "exists" | "terminated" | "removed" | "unsynced";
export interface PodState {
  readonly presence: PodPresence;
  /** The reason's code. */
  readonly because: ReasonCode<"container-gc">;
}
const NOT_POSTED: PodState = { presence: "removed", because: "pod_not_posted" };
const UNSYNCED: PodState = { presence: "unsynced", because: "sources_not_ready" };
const STILL_RUNS: PodState = { presence: "exists", because: "pod_not_posted_still_runs" };
const POSTED: PodState = { presence: "exists", because: "pod_exists" };
const EVICTED: PodState = { presence: "removed", because: "pod_evicted" };
const DELETED: PodState = { presence: "removed", because: "pod_ended_and_deleted" };
const ENDED: PodState = { presence: "terminated", because: "pod_ended" };

/**
 * Determines what became of the pod with a uid. The kubelet asks its pod workers; a snapshot shows part of their
 * state:
 * - A posted uid is known; a mirror pod is also known by its static pod's uid. A uid that is not posted but runs (it
 * has a ready sandbox or a running container) is known too: the kubelet is still stopping it, or it is newer than the
 * pod list.
 * - Any other uid is removed once all sources of pods are ready. Containers without a uid belong to the pod "", which
 * is never known.
 * - Terminated: the phase is terminal, or deletion has begun, and nothing of the pod runs any more.
 * - Evicted or preempted: the kubelet's own condition DisruptionTarget. The kubelet forgets it when it restarts (and a
 * shutdown sets it too), so with `kubelet.startedAt` it counts only if a part of the pod was created since.
 *
 * Not known: whether a pod with a finaliser ended before its deletion, in which case the kubelet keeps its containers.
 * kubelet 1.36: ShouldPodContentBeRemoved, ShouldPodRuntimeBeRemoved.
 */
export function podStates(
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
/** The annotation on a static pod and its mirror pod that holds the uid known to the runtime. */
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
  /** Uids of pods with a running container or a ready sandbox. */
  readonly running: ReadonlySet<string>;
  /** Uids of pods with a container or sandbox created since the kubelet started; empty: the start time is not known. */
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

/** Why all containers of a pod may be removed, or null. `underPressure`: evictNonDeletedPods of kubelet 1.36. */
export function podRemovalReason({ presence, because: code }: PodState, underPressure: boolean) {
  if (presence === "removed") return { why: "pod-removed", code } as const;
  return underPressure && presence === "terminated" ? ({ why: "pod-terminated", code } as const) : null;
}
