import type { RunnablePod } from "./pod.ts";
import type { RuntimeContainer, RuntimePod, RuntimeSandbox } from "./runtime-pod.ts";

/** What is known of a pod that the runtime holds nothing of. */
export const nothingSeen = ({ namespace, name, uid }: RunnablePod): RuntimePod => ({
  namespace,
  name,
  uid,
  sandboxes: [],
  containers: [],
});

/** The newest instance of a container, whatever its sandbox. */
export const latestOf = (seen: RuntimePod, name: string): RuntimeContainer | undefined =>
  seen.containers.find((c) => c.name === name);

/** The newest instance that has ended: its end is what the back-off counts from. */
export const latestExitedOf = (seen: RuntimePod, name: string): RuntimeContainer | undefined =>
  seen.containers.find((c) => c.name === name && c.state === "exited");

/** The sandbox that containers live in; undefined: the newest one is not ready. */
export const activeSandboxOf = (seen: RuntimePod): RuntimeSandbox | undefined =>
  seen.sandboxes[0]?.isReady === true ? seen.sandboxes[0] : undefined;

/** Something of it may still run: a container that does or of which nobody knows, or a sandbox that is ready. */
export const mayRun = (seen: RuntimePod): boolean =>
  seen.containers.some((c) => c.state === "running" || c.state === "unknown") || seen.sandboxes.some((s) => s.isReady);

/** One of the pod's own containers was started or made. kubelet 1.36: HasAnyRegularContainerCreated. */
export const hasRegularContainer = (pod: RunnablePod, seen: RuntimePod): boolean =>
  pod.spec.containers.some((c) => {
    const latest = latestOf(seen, c.name);
    return latest !== undefined && latest.state !== "unknown";
  });
