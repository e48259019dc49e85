import type { PodContainer, RunnablePod } from "./pod.ts";
import type { RuntimeContainer } from "./runtime-pod.ts";

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
