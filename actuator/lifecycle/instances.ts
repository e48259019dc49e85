import type { RuntimeContainer, RuntimePod, RuntimeSandbox } from "../containerd/port.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";

/** The runtime's view of a pod of which it holds nothing. */
export const emptyRuntimePod = ({ namespace, name, uid }: RunnablePod): RuntimePod => ({
  namespace,
  name,
  uid,
  sandboxes: [],
  containers: [],
});

/** The newest instance of a container, whatever its sandbox. */
export const latestOf = (runtimePod: RuntimePod, name: string): RuntimeContainer | undefined =>
  runtimePod.containers.find((c) => c.name === name);

/** The newest instance that has ended: its end is what the back-off counts from. */
export const latestExitedOf = (runtimePod: RuntimePod, name: string): RuntimeContainer | undefined =>
  runtimePod.containers.find((c) => c.name === name && c.state === "exited");

/** The sandbox that containers live in; undefined: the newest one is not ready. */
export const activeSandboxOf = (runtimePod: RuntimePod): RuntimeSandbox | undefined =>
  runtimePod.sandboxes[0]?.isReady === true ? runtimePod.sandboxes[0] : undefined;

/** Something of it may still run: a container that does or of which nobody knows, or a sandbox that is ready. */
export const mayRun = (runtimePod: RuntimePod): boolean =>
  runtimePod.containers.some((c) => c.state === "running" || c.state === "unknown") ||
  runtimePod.sandboxes.some((s) => s.isReady);

/** One of the pod's own containers was started or made. kubelet 1.36: HasAnyRegularContainerCreated. */
export const hasRegularContainer = (pod: RunnablePod, runtimePod: RuntimePod): boolean =>
  pod.spec.containers.some((c) => {
    const latest = latestOf(runtimePod, c.name);
    return latest !== undefined && latest.state !== "unknown";
  });

/** After an end with that code it is started again. kubelet 1.36: ContainerShouldRestart. */
export function restartsAfter(pod: RunnablePod, container: PodContainer, exitCode: number): boolean {
  if (container.isSidecar) return true;
  const { restartPolicy } = pod.spec;
  return restartPolicy === "Always" || (restartPolicy === "OnFailure" && exitCode !== 0);
}

/**
 * It is to be started, given its newest instance: never one of a pod that is being deleted; always one that never was,
 * that got stuck before its start, or of which nobody knows. kubelet 1.36: ShouldContainerBeRestarted.
 */
export function shouldStart(pod: RunnablePod, container: PodContainer, latest: RuntimeContainer | undefined): boolean {
  if (pod.deletion !== null) return false;
  if (latest === undefined) return true;
  if (latest.state === "running") return false;
  return latest.state !== "exited" || restartsAfter(pod, container, latest.exitCode);
}

/** An init container that did not do its work; out of memory counts even with exit code 0. kubelet 1.36: isInitContainerFailed. */
export const initFailed = (c: RuntimeContainer): boolean =>
  c.reason === "OOMKilled" || c.state === "unknown" || (c.state === "exited" && c.exitCode !== 0);
