import type { ContainerDevices } from "../../../actuator/pods/devices/port.ts";
import { ok } from "../../../api/base/result.ts";
import type { DeviceOptions } from "../../../api/model/devices.ts";

export const NO_OPTIONS: DeviceOptions = {
  envs: [],
  mounts: [],
  devices: [],
  annotations: [],
  cdiDevices: [],
  conflicts: [],
};
export const options = (more: Partial<DeviceOptions>): DeviceOptions => ({ ...NO_OPTIONS, ...more });

/** Devices that answer as a test defines, and record their calls. */
export function fakeDevices(answers: Partial<ContainerDevices> = {}): ContainerDevices & { readonly asked: string[] } {
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
