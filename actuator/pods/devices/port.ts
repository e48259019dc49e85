import type { PreferredQuestion } from "../../../api/decide/devices/preferred.ts";
import type { DeviceOptions } from "../../../api/model/device-decision.ts";
import type { Device, DevicePlugin } from "../../../api/model/devices.ts";
import type { Result } from "../../../api/model/result.ts";
import type { ResourceAmount } from "../../deviceplugin/plugin-views.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import type { Problem } from "../../ports.ts";
import type { LivingPod } from "./running.ts";
import type { Vanished } from "./vanished.ts";

/** Why a pod does not come in, or a container does not start, for want of its devices. */
export interface DeviceFault {
  readonly reason: string;
  readonly message: string;
  /** The pod keeps its devices and is tried again; absent: it holds none of them any more. */
  readonly keeps?: true;
}
/** Of a snapshot. */
export interface DeviceParts {
  readonly devices: readonly Device[];
  readonly devicePlugins: readonly DevicePlugin[];
  readonly kubelet: { readonly startedAt: string };
}

/** The node's devices, as whoever lets pods in sees them. */
export interface DeviceDesk {
  /** Grows whenever plugins or their devices may have changed. */
  readonly version: number;
  /** `podUid`: with what plugins have answered to the questions about that pod. */
  parts(podUid?: string): DeviceParts;
  /** For the node's status, by resource. */
  amounts(): ReadonlyMap<string, ResourceAmount>;
  /**
   * Why a pod that wants devices is not asked about: a plugin has not come (back) since the daemon started. Null: it may be.
   * `isTold`: it was waited for long enough, and that it is missing is told as a refusal.
   */
  whyWaits(pod: RunnablePod): (DeviceFault & { readonly isTold: boolean }) | null;
  /** A plugin of one of its resources offers to choose. */
  isChosenByPlugin(pod: RunnablePod): boolean;
  /** What plugins were asked last about the pod met an error. */
  hasFailed(podUid: string): boolean;
  /** Another text once a plugin of its resources has registered anew. */
  registrationOf(pod: RunnablePod): string;
  /** To be told before anything is decided: books again what containers that run hold, where it was lost. */
  recover(living: readonly LivingPod[]): void;
  /** By uid: containers of living pods that hold nothing and are about to start. */
  lacking(): ReadonlyMap<string, ReadonlySet<string>>;
  /** `why`: they still do not get any; null: they hold what they want, or the pod is gone. */
  decidedAnew(podUid: string, why: string | null): void;
  /** By uid: the calls to plugins that a pod has waited for longer than a moment. */
  slowCalls(): ReadonlyMap<string, DeviceFault>;
  /** Devices that are held, and that their plugins do not list any more. */
  vanished(): readonly Vanished[];
  /** Asks plugins in the background; `version` grows when they have answered. False: there is nothing more to ask, so go on. */
  ask(podUid: string, questions: readonly PreferredQuestion[]): boolean;
  /** The pod is in, or gone: what was asked about it is over. */
  forget(podUid: string): void;
  /** `next` of a decision, with what plugins have answered since it was asked. */
  merged(next: unknown): unknown;
  /** What stands now: faults of plugins, devices that two pods hold, or nobody knows who, or that are listed no more. */
  problems(): readonly Problem[];
  /** To be told once a turn: which pods are on the node. Keeps registered resources in the checkpoint, and the history. */
  look(living: ReadonlySet<string>): void;
}

/** The node's devices, as whoever starts containers sees them. */
export interface DeviceHands {
  /**
   * Before anything of a pod is made: asks the plugins, each resource of each container once, what its devices bring, and
   * keeps it. An error gives the pod's devices back, unless it `keeps` them: it is to come in anew. `starting`: for these
   * containers only; absent: for all. kubelet 1.36: devicemanager.Allocate.
   */
  prepare(pod: RunnablePod, signal: AbortSignal, starting?: ReadonlySet<string>): Promise<Result<null, DeviceFault>>;
  /**
   * Right before a container is made: the calls that plugins want then, and what the container gets; null: it holds none.
   * kubelet 1.36: GetDeviceRunContainerOptions.
   */
  startOf(pod: RunnablePod, container: PodContainer): Promise<Result<DeviceOptions | null, DeviceFault>>;
}
