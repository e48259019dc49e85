import type { ContainerDevices } from "../../../actuator/pods/devices/port.ts";
import type { DeviceOptions } from "../../../api/model/managers.ts";
import { ok } from "../../../api/model/result.ts";

export const NO_OPTIONS: DeviceOptions = {
  envs: [],
  mounts: [],
  devices: [],
  annotations: [],
  cdiDevices: [],
  conflicts: [],
};
export const options = (more: Partial<DeviceOptions>): DeviceOptions => ({ ...NO_OPTIONS, ...more });

/** Of a RunnablePod: as its manifest would have it, each of these containers with limits of its own. */
export const wanting = (limits: Readonly<Record<string, Readonly<Record<string, string>>>>, init: string[] = []) => {
  const containers = Object.entries(limits).map(([name, one]) => ({
    name,
    image: "busybox",
    resources: { limits: one },
  }));
  return {
    object: {
      metadata: { name: "web", namespace: "default", uid: "uid-1" },
      spec: {
        containers: containers.filter(({ name }) => !init.includes(name)),
        initContainers: containers.filter(({ name }) => init.includes(name)),
      },
    },
  };
};

/** Devices as a test has them, and what was asked of them. */
export function hands(answers: Partial<ContainerDevices> = {}): ContainerDevices & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    allocate: async (pod, signal) => {
      asked.push(`prepare ${pod.uid}`);
      return (await answers.allocate?.(pod, signal)) ?? ok(null);
    },
    runContainerOptions: async (pod, container) => {
      asked.push(`startOf ${pod.uid} ${container.name}`);
      return (await answers.runContainerOptions?.(pod, container)) ?? ok(NO_OPTIONS);
    },
  };
}
