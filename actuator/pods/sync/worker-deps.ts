import type { SandboxValues } from "../../../api/decide/cgroups/container-config.ts";
import type { CgroupValues } from "../../../api/model/cgroups.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { PodRuntime, RuntimePod } from "../../containerd/cri.ts";
import type { PodActions } from "../../lifecycle/actions.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { ContainerClaims } from "../devices/pod-claims.ts";
import type { ContainerDevices, DeviceFault } from "../devices/port.ts";
import type { PodNode } from "../networking/node-addresses.ts";
import type { OnPodEvent, PodClock, PodPlaces } from "../pod-clock.ts";
import type { PodEvents } from "../records/records.ts";
import type { Mounter } from "../volumes/mounter.ts";
import type { PodRoots } from "../volumes/places.ts";
import type { ContainerFault, Images } from "./images.ts";
import type { LogLinks } from "./log-link.ts";
import type { OwnedRuntime } from "./owned-runtime.ts";

export interface WorkerDeps {
  readonly runtime: PodRuntime;
  /** One instance for all workers of a runtime. */
  readonly images: Images;
  readonly mounter: Mounter;
  /** Absent: this daemon serves no device plugins. */
  readonly devices?: ContainerDevices;
  /** Absent: this daemon serves no DRA drivers. */
  readonly claims?: ContainerClaims;
  /** The links for log collectors; absent: logs are not linked. */
  readonly logLinks?: LogLinks;
  readonly clock: PodClock;
  /** The kubelet version that is reimplemented. */
  readonly profile: Profile;
  readonly onEvent: OnPodEvent;
  /** This daemon's name: label OWNER. */
  readonly owner: string;
  readonly roots: PodRoots;
  /** Read for each sync, since it changes. */
  readonly node: () => PodNode;
  /** The absolute path of the pod's cgroup. */
  readonly cgroupParentOf: (pod: RunnablePod) => string;
  /** The pod's own resources and its overhead, as sent to the runtime; undefined: not decided yet. */
  readonly sandboxValuesOf: (pod: RunnablePod) => SandboxValues | undefined;
  /** The limit of memory-backed volumes: the pod's, or the node's allocatable; null: none. */
  readonly memoryBytes: (pod: RunnablePod) => number | null;
}

export interface SyncPodRequest {
  readonly pod: RunnablePod;
  /** The pod in the runtime from which the actions were computed; null: the runtime has nothing of it. */
  readonly runtimePod: RuntimePod | null;
  readonly actions: PodActions;
  /** Null: not decided yet; the container is not started. */
  readonly valuesOf: (container: string) => CgroupValues | null;
  readonly signal: AbortSignal;
}

/** The result of one syncPod. */
export interface SyncPodResult {
  readonly sandboxId: string | null;
  readonly started: readonly string[];
  /** Container name -> why this sync did not start it. */
  readonly faults: Readonly<Record<string, ContainerFault>>;
  /** Containers not started because their values are not decided. */
  readonly undecided: readonly string[];
  /** The error that ended the sync for the whole pod; null: none. */
  readonly error: string | null;
  /** The pod did not get its devices and has none any more, so it is admitted anew; null: no refusal. */
  readonly refusal: DeviceFault | null;
  /** True: the sync was aborted by its signal. */
  readonly isCut: boolean;
  /** True: the pod's claims could not be prepared. */
  readonly isUnprepared?: boolean;
}

export interface TerminatingPodRequest {
  /** Null: the pod is known only from the runtime; then no hook is run. */
  readonly pod: RunnablePod | null;
  readonly runtimePod: RuntimePod;
  readonly graceSeconds: number;
  readonly signal: AbortSignal;
}

export interface TerminatingPodResult {
  /** True: nothing of the pod that this daemon owns runs any more. */
  readonly isEnded: boolean;
  readonly error: string | null;
}

/** The context that all steps of the work on one pod need. */
export interface SyncContext {
  readonly pod: RunnablePod;
  readonly places: PodPlaces;
  readonly runtime: OwnedRuntime;
  readonly events: PodEvents;
  readonly clock: PodClock;
  readonly profile: Profile;
  readonly signal: AbortSignal;
}

/**
 * Waits for the work, at most `ms` and at most until the signal aborts. The work itself continues.
 * @returns the milliseconds that passed
 */
export async function waitFor(
  work: Promise<unknown>,
  ms: number,
  clock: PodClock,
  signal: AbortSignal,
): Promise<number> {
  const done = new AbortController();
  const from = clock.monotonicMs();
  await Promise.race([work, clock.sleep(ms, AbortSignal.any([signal, done.signal]))]);
  done.abort();
  return clock.monotonicMs() - from;
}
