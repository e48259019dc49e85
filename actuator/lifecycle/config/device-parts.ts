import type { DeviceOptions } from "../../../api/model/managers.ts";
import type { ContainerConfig, MountConfig } from "../../containerd/messages.ts";
import type { EnvPair } from "../env.ts";

/** The parts of a container's configuration that its devices bring. */
type DeviceParts = Pick<ContainerConfig, "devices" | "CDIDevices"> & { readonly mounts: readonly MountConfig[] };

/** `options` null: it holds none. kubelet 1.36: deviceRunContainerOptions, makeMounts, makeDevices, makeCDIDevices. */
export function deviceParts(options: DeviceOptions | null): DeviceParts {
  if (options === null) return { mounts: [] };
  return {
    mounts: options.mounts.map(({ containerPath, hostPath, readOnly }) => ({
      containerPath,
      hostPath,
      readonly: readOnly,
      propagation: "PROPAGATION_PRIVATE",
    })),
    devices: options.devices.map(({ pathInContainer, pathOnHost, permissions }) => ({
      containerPath: pathInContainer,
      hostPath: pathOnHost,
      permissions,
    })),
    CDIDevices: options.cdiDevices.map((name) => ({ name })),
  };
}

/**
 * The variables of its devices, then the container's own, which win: the kubelet tells both, and the last of a name counts.
 * A command and a `subPathExpr` may refer to all of them, the container's own variables only to each other. kubelet 1.36:
 * GenerateRunContainerOptions, ExpandContainerCommandAndArgs.
 */
export function withDeviceEnv(options: DeviceOptions | null, own: readonly EnvPair[]): readonly EnvPair[] {
  if (options === null) return own;
  const all = [...options.envs.map(({ name, value }) => [name, value] as const), ...own.map(pairOf)];
  return [...new Map(all)].map(([key, value]) => ({ key, value }));
}
const pairOf = ({ key, value }: EnvPair) => [key, value] as const;
