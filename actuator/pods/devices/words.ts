import { kubeletText } from "../../containerd/fault.ts";
import type { PluginFault } from "../../deviceplugin/fault.ts";
import type { DeviceFault } from "./port.ts";

/** Of a pod, or of a container, whose plugin has not come (back) yet. */
export const WAITING = "WaitingForDevicePlugin";
/** Of a container whose devices were lost while its pod lives: kubelet 1.36: needsReAllocate. */
export const DECIDING = "DecidingDevices";
/** Of a pod that waits since nobody knows what is free. */
export const NOT_KNOWN = "DevicesNotKnown";
/** Of a pod, or of a container: that it holds its devices cannot be written down. */
export const NOT_KEPT = "DeviceCheckpointNotWritten";
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

export function waitsFor(resources: readonly string[], waitMs: number): DeviceFault & { readonly keeps: true } {
  const plugins = resources.length === 1 ? "the device plugin" : "the device plugins";
  const have = resources.length === 1 ? "has" : "have";
  const message = `deferred until ${plugins} of ${resources.join(", ")} ${have} registered, at most ${Math.round(waitMs / 1000)} s`;
  return { reason: WAITING, message, keeps: true };
}

export const notKept = (message: string): DeviceFault & { readonly keeps: true } => ({
  reason: NOT_KEPT,
  message: `who holds which devices cannot be written down: ${message}`,
  keeps: true,
});

/** Of a pod that a kubelet would run without its devices. */
export const notRegistered = (resources: readonly string[]): DeviceFault => ({
  reason: "DevicePluginNotRegistered",
  message: `no device plugin has registered ${resources.join(", ")}: start the plugin, or take the resource out of the pod's limits`,
});

/** Of a container. kubelet 1.36: callPreStartContainerIfNeeded. */
export const nothingAllocated = (podUid: string, container: string, resource: string): string =>
  `no devices found allocated in local cache for pod ${podUid}, container ${container}, resource ${resource}`;

/** Faults that a plugin's own words say nothing of: those that this side made. */
const OWN_CODES: ReadonlySet<string> = new Set(["STOPPED", "NOT_REGISTERED"]);

/**
 * A call's fault as Go prints the error: what gRPC ended in its form, what this side says as it is. An answer that is of
 * no use names its plugin, since the kubelet has no words for it.
 */
export function goText(fault: PluginFault): string {
  const { resource, endpoint, code, message } = fault;
  if (OWN_CODES.has(code)) return message;
  if (code === "INVALID_ANSWER") return `${message} (device plugin of ${resource} at ${endpoint})`;
  return kubeletText(fault).replace(/code = CODE_(\d+) /, "code = Code($1) ");
}
