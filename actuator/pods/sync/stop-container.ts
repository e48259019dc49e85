import type { RuntimeFault, RuntimeSandbox } from "../../containerd/cri.ts";
import { kubeletText } from "../../containerd/fault.ts";
import { remainingGracePeriod, type StopContainer } from "../../lifecycle/container-termination.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { runHook } from "./hooks.ts";
import type { OwnedRuntime } from "./owned-runtime.ts";
import { type SyncContext, waitFor } from "./worker-deps.ts";

/** The runtime calls needed to end a pod. */
export type StopRuntime = Pick<OwnedRuntime, "stopContainer" | "stopSandbox" | "exec">;
/** The context of a stop; `pod` is null if only the pod's containers are known; then no hook is run. */
type StopContext = Omit<SyncContext, "pod" | "places" | "runtime"> & {
  readonly pod: RunnablePod | null;
  readonly runtime: StopRuntime;
  readonly podIps: readonly string[];
};

/**
 * Stops containers in parallel, each after the containers that it waits for, within the grace period; then all sandboxes.
 * Errors: the kubelet's words, one for each container or sandbox that was not stopped. kubelet 1.36: killPodWithSyncResult.
 */
export async function stopPod(
  context: StopContext,
  stops: readonly StopContainer[],
  sandboxes: readonly Pick<RuntimeSandbox, "id">[],
  graceSeconds: number,
): Promise<readonly string[]> {
  const ends = new Map(stops.map(({ name }) => [name, openEnd()]));
  const errors: string[] = [];
  const stopOne = async (stop: StopContainer): Promise<void> => {
    const before = stop.waitsFor.flatMap((name) => ends.get(name)?.promise ?? []);
    const fault = await stopContainer(context, stop, graceSeconds, before);
    // as in the kubelet, containers that wait for one that cannot be stopped wait for their whole grace period
    if (fault === null) ends.get(stop.name)?.resolve();
    else errors.push(`failed to "KillContainer" for "${stop.name}" with KillContainerError: "${kubeletText(fault)}"`);
  };
  await Promise.all(stops.map(stopOne));
  for (const { id } of sandboxes) {
    if (context.signal.aborted) break;
    const stopped = await context.runtime.stopSandbox(id);
    if (!stopped.ok && stopped.error.code !== "NOT_FOUND")
      errors.push(`failed to "KillPodSandbox" for "${id}" with KillPodSandboxError: "${kubeletText(stopped.error)}"`);
  }
  return errors;
}

interface OpenEnd {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}
function openEnd(): OpenEnd {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/**
 * Stops one container: runs its preStop hook, waits for the containers `before` it, then stops it with what is left of the
 * grace period. An aborted call stops nothing more. Null: it has stopped, or is gone. kubelet 1.36: killContainer.
 */
export async function stopContainer(
  context: StopContext,
  stop: StopContainer,
  graceSeconds: number,
  before: readonly Promise<void>[] = [],
): Promise<RuntimeFault | null> {
  const { runtime, events, clock, signal } = context;
  const cut: RuntimeFault = { call: "StopContainer", code: "CANCELLED", message: "the daemon is being stopped" };
  if (signal.aborted) return cut;
  events.normal("Killing", stop.message, stop.name);
  const hookMs = await runPreStop(context, stop, graceSeconds);
  const leftMs = (graceSeconds - Math.trunc(hookMs / 1000)) * 1000;
  const waitedMs = before.length > 0 && leftMs > 0 ? await waitFor(Promise.all(before), leftMs, clock, signal) : 0;
  if (signal.aborted) return cut;
  const stopped = await runtime.stopContainer(stop.containerId, remainingGracePeriod(graceSeconds, hookMs, waitedMs));
  return stopped.ok || stopped.error.code === "NOT_FOUND" ? null : stopped.error;
}

/** Returns the milliseconds that the hook took, at most the grace period. kubelet 1.36: executePreStopHook. */
async function runPreStop(context: StopContext, stop: StopContainer, graceSeconds: number): Promise<number> {
  const { pod, podIps, runtime, events, clock, profile, signal } = context;
  if (stop.preStop === null || pod === null || graceSeconds <= 0) return 0;
  const container = { id: stop.containerId, name: stop.name };
  const overdue = new AbortController();
  const asked = { handler: stop.preStop, pod, container, podIps, timeoutSeconds: graceSeconds, profile };
  const run = async (): Promise<void> => {
    const ran = await runHook(asked, runtime, clock, AbortSignal.any([signal, overdue.signal]));
    if (!ran.ok && !overdue.signal.aborted) events.warning("FailedPreStopHook", "PreStopHook failed", stop.name);
  };
  const tookMs = await waitFor(run(), graceSeconds * 1000, clock, signal);
  overdue.abort();
  return tookMs;
}
