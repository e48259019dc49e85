import type { RuntimeContainer, RuntimePod, RuntimeSandbox } from "../containerd/cri.ts";
import type { PodContainer, RunnablePod } from "./pod.ts";

/** The state of a pod of which the runtime has nothing. */
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

/** Whether something of the pod may still run: a container that runs or has an unknown state, or a ready sandbox. */
export const mayRun = (runtimePod: RuntimePod): boolean =>
  runtimePod.containers.some((c) => c.state === "running" || c.state === "unknown") ||
  runtimePod.sandboxes.some((s) => s.isReady);

/** Whether one of the pod's regular containers was created. kubelet 1.36: HasAnyRegularContainerCreated. */
export const hasRegularContainer = (pod: RunnablePod, runtimePod: RuntimePod): boolean =>
  pod.spec.containers.some((c) => {
    const latest = latestOf(runtimePod, c.name);
    return latest !== undefined && latest.state !== "unknown";
  });

/** Whether the container restarts after it ended with that code. kubelet 1.36: ContainerShouldRestart. */
export function restartsAfter(pod: RunnablePod, container: PodContainer, exitCode: number): boolean {
  if (container.isSidecar) return true;
  const { restartPolicy } = pod.spec;
  return restartPolicy === "Always" || (restartPolicy === "OnFailure" && exitCode !== 0);
}

/**
 * Whether the container must be started, given its newest instance: never in a pod that is being deleted; always if it
 * was never created, was created but not started, or has an unknown state. kubelet 1.36: ShouldContainerBeRestarted.
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
