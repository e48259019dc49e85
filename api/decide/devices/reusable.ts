import { type Container, isSidecar, type Pod, podUid } from "../../model/pod.ts";
import type { DeviceState } from "./device-state.ts";

const NONE: ReadonlySet<string> = new Set();

/** What the init containers of the pod in hand leave to those that start after them. kubelet 1.36: PodReusableDevices. */
export interface Reusable {
  /** Of another pod than the one in hand: nothing. */
  of(podUid: string, resource: string): ReadonlySet<string>;
  /** Takes a pod in hand, before any container of it is served. */
  begin(podUid: string): void;
  /**
   * To be told of each container that got what it asked for: an init container leaves all that it holds, any other one (a sidecar
   * too) takes what it holds away. What is left after the last container stays with the pod. kubelet 1.36: Allocate.
   */
  settle(pod: Pod, container: Container, state: DeviceState): void;
}

export function reusableDevices(): Reusable {
  let inHand: string | undefined;
  let left = new Map<string, ReadonlySet<string>>();
  return {
    of: (podUid, resource) => (podUid === inHand ? left.get(resource) : undefined) ?? NONE,
    begin: (podUid) => {
      if (podUid !== inHand) left = new Map();
      inHand = podUid;
    },
    settle: (pod, container, state) => {
      const init = pod.spec.initContainers?.find((c) => c.name === container.name);
      const leaves = init !== undefined && !isSidecar(init);
      for (const [resource, { ids }] of state.pods.get(podUid(pod) as string)?.get(container.name) ?? []) {
        const before = [...(left.get(resource) ?? NONE)];
        left.set(resource, new Set(leaves ? [...before, ...ids] : before.filter((id) => !ids.has(id))));
      }
    },
  };
}
