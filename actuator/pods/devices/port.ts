import type { Result } from "../../../api/base/result.ts";
import type { PreferredAllocationRequest } from "../../../api/decide/devices/preferred.ts";
import type { DeviceOptions } from "../../../api/model/devices.ts";
import type { Device, DevicePlugin } from "../../../api/model/machine.ts";
import type { RuntimePod } from "../../containerd/cri.ts";
import { kubeletText } from "../../containerd/fault.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { PluginFault } from "../../deviceplugin/fault.ts";
import type { ResourceAmount } from "../../deviceplugin/plugins.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";

export interface VanishedDevices {
  readonly podUid: string;
  readonly container: string;
  /** A sentence, without the pod's name. */
  readonly message: string;
}

/** A pod that is on the node. */
export interface LivingPod {
  readonly uid: string;
  readonly pod: RunnablePod;
  /** Null: the runtime has nothing of the pod. */
  readonly runtimePod: RuntimePod | null;
}

/** Reason of a pod or container whose plugin has not registered (again) yet. */
export const WAITING_FOR_PLUGIN = "WaitingForDevicePlugin";
/** Reason of a container whose devices were lost while its pod is active: kubelet 1.36: needsReAllocate. */
export const REALLOCATING = "DecidingDevices";
/** The reason of a pod that waits because the free devices are not known. */
export const DEVICES_NOT_KNOWN = "DevicesNotKnown";
/** Reason of a pod, or of a container, whose allocation cannot be stored. */
export const CHECKPOINT_NOT_WRITTEN = "DeviceCheckpointNotWritten";
/** kubelet 1.36: admission.ErrorReasonUnexpected. */
const UNEXPECTED = "UnexpectedAdmissionError";
/** kubelet 1.36: kuberuntime.ErrCreateContainerConfig. */
const NOT_CONFIGURED = "CreateContainerConfigError";

/** kubelet 1.36: unexpectedAdmissionError. */
export const allocateFailed = (why: string): DeviceFault => ({
  reason: UNEXPECTED,
  message: `Allocate failed due to ${why}, which is unexpected`,
});
export const notStarted = (message: string): DeviceFault => ({ reason: NOT_CONFIGURED, message, keeps: true });

export function waitingForPlugins(
  resources: readonly string[],
  waitMs: number,
): DeviceFault & { readonly keeps: true } {
  const plugins = resources.length === 1 ? "the device plugin" : "the device plugins";
  const have = resources.length === 1 ? "has" : "have";
  const message = `deferred until ${plugins} of ${resources.join(", ")} ${have} registered, at most ${Math.round(waitMs / 1000)} s`;
  return { reason: WAITING_FOR_PLUGIN, message, keeps: true };
}

export const checkpointNotWritten = (message: string): DeviceFault & { readonly keeps: true } => ({
  reason: CHECKPOINT_NOT_WRITTEN,
  message: `who holds which devices cannot be written down: ${message}`,
  keeps: true,
});

/** Fault of a pod that a kubelet would run without its devices. */
export const notRegistered = (resources: readonly string[]): DeviceFault => ({
  reason: "DevicePluginNotRegistered",
  message: `no device plugin has registered ${resources.join(", ")}: start the plugin, or take the resource out of the pod's limits`,
});

/** The message for a container without devices. kubelet 1.36: callPreStartContainerIfNeeded. */
export const nothingAllocated = (podUid: string, container: string, resource: string): string =>
  `no devices found allocated in local cache for pod ${podUid}, container ${container}, resource ${resource}`;

/** Fault codes that this daemon sets itself, without a plugin's message. */
const OWN_CODES: ReadonlySet<string> = new Set(["STOPPED", "NOT_REGISTERED"]);

/**
 * A call's fault as Go prints the error: gRPC errors in gRPC's form, own faults as they are. An unusable response names its
 * plugin, since the kubelet has no words for it.
 */
export function goText(fault: PluginFault): string {
  const { resource, endpoint, code, message } = fault;
  if (OWN_CODES.has(code)) return message;
  if (code === "INVALID_ANSWER") return `${message} (device plugin of ${resource} at ${endpoint})`;
  return kubeletText(fault).replace(/code = CODE_(\d+) /, "code = Code($1) ");
}

/** Why a pod is not admitted, or a container does not start, because of its devices. */
export interface DeviceFault {
  readonly reason: string;
  readonly message: string;
  /** The pod keeps its devices and is tried again; absent: it no longer holds any. */
  readonly keeps?: true;
}
/** The devices' part of a snapshot. */
export interface DeviceSnapshot {
  readonly devices: readonly Device[];
  readonly devicePlugins: readonly DevicePlugin[];
  readonly kubelet: { readonly startedAt: string };
}

/** The interface to the node's devices for admission. */
export interface NodeDevices {
  /** Increases whenever plugins or their devices may have changed. */
  readonly version: number;
  /** `podUid`: include the plugins' answers to questions about that pod. */
  snapshot(podUid?: string): DeviceSnapshot;
  /** The amounts by resource, for the node's status. */
  amounts(): ReadonlyMap<string, ResourceAmount>;
  /**
   * Why a pod that requests devices is not tried: a plugin has not registered since the daemon started. Null: it may be tried.
   * `isReported`: it has waited long enough, and the missing plugin is reported as a refusal.
   */
  whyPending(pod: RunnablePod): (DeviceFault & { readonly isReported: boolean }) | null;
  /** True if a plugin of the pod's resources offers GetPreferredAllocation. */
  isChosenByPlugin(pod: RunnablePod): boolean;
  /** Whether the last question to plugins about the pod failed. */
  hasFailed(podUid: string): boolean;
  /** A text that changes when a plugin of the pod's resources registers again. */
  registrationOf(pod: RunnablePod): string;
  /** Called before any decision: records lost allocations of running containers again. */
  recover(living: readonly LivingPod[]): void;
  /** Containers of living pods that hold no devices and are about to start, by pod uid. */
  toReallocate(): ReadonlyMap<string, ReadonlySet<string>>;
  /** Reports the result. `why`: the containers still get no devices; null: they have them, or the pod is gone. */
  reallocated(podUid: string, why: string | null): void;
  /** The calls to plugins that a pod has waited for longer than a moment, by uid. */
  slowCalls(): ReadonlyMap<string, DeviceFault>;
  /** Held devices that their plugins no longer list. */
  vanished(): readonly VanishedDevices[];
  /** Asks plugins in the background; `version` increases when they have answered. False: nothing more to ask. */
  askPreferred(podUid: string, questions: readonly PreferredAllocationRequest[]): boolean;
  /** Drops the questions about a pod that is admitted or gone. */
  forget(podUid: string): void;
  /** A decision's `next` with the plugins' answers since its snapshot. */
  withResponses(next: unknown): unknown;
  /**
   * Current problems: faults of plugins, devices that two pods hold, that have no known holder, or that are no longer listed.
   */
  problems(): readonly Problem[];
  /** Called once per sync with the node's pods. Updates the registered resources in the checkpoint, and the history. */
  update(living: ReadonlySet<string>): void;
}

/** The interface to the node's devices for starting containers. */
export interface ContainerDevices {
  /**
   * Calls plugins' Allocate, once per resource and container, before anything of a pod is made, and stores the answers. An
   * error releases the pod's devices, unless it `keeps` them, and the pod is admitted anew. `starting`: only these
   * containers; absent: all. kubelet 1.36: devicemanager.Allocate.
   */
  allocate(pod: RunnablePod, signal: AbortSignal, starting?: ReadonlySet<string>): Promise<Result<null, DeviceFault>>;
  /**
   * Makes the calls that plugins require right before a container is created, and returns its options; null: it has no devices.
   * kubelet 1.36: GetDeviceRunContainerOptions.
   */
  runContainerOptions(pod: RunnablePod, container: PodContainer): Promise<Result<DeviceOptions | null, DeviceFault>>;
}
