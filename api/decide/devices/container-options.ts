import type { DeviceConflict, DeviceOptions, NameValue } from "../../model/managers.ts";
import type { AllocateResponse, Mount } from "./allocate-response.ts";

export interface ResourceResponse {
  readonly resource: string;
  readonly response: AllocateResponse;
}

/**
 * Puts the answers of several plugins together: of two under one name the first stays, and they are in conflict when their
 * values differ (of mounts and devices: their paths on the host). The kubelet takes resources, environment and annotations in
 * the order of Go maps; here they go by name. kubelet 1.36: deviceRunContainerOptions.
 */
export function containerOptions(responses: readonly ResourceResponse[]): DeviceOptions {
  const conflicts: DeviceConflict[] = [];
  const envs = merging("env", conflicts);
  const mounts = merging("mount", conflicts);
  const devices = merging("device", conflicts);
  const annotations = merging("annotation", conflicts);
  const options = {
    envs: [] as NameValue[],
    mounts: [] as Mount[],
    devices: [] as DeviceOptions["devices"][number][],
    annotations: [] as NameValue[],
    cdiDevices: new Set<string>(),
  };
  for (const { resource, response } of [...responses].sort((a, b) => (a.resource < b.resource ? -1 : 1))) {
    for (const [name, value] of byName(response.envs)) {
      if (envs(name, value, resource)) options.envs.push({ name, value });
    }
    for (const { containerPath, hostPath, permissions } of response.devices) {
      if (!devices(containerPath, hostPath, resource)) continue;
      options.devices.push({ pathOnHost: hostPath, pathInContainer: containerPath, permissions });
    }
    for (const mount of response.mounts) {
      if (mounts(mount.containerPath, mount.hostPath, resource)) options.mounts.push(mount);
    }
    for (const [name, value] of byName(response.annotations)) {
      if (annotations(name, value, resource)) options.annotations.push({ name, value });
    }
    for (const name of response.cdiDevices) options.cdiDevices.add(name);
  }
  return { ...options, cdiDevices: [...options.cdiDevices], conflicts };
}
const byName = (map: ReadonlyMap<string, string>): [string, string][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

/** Remembers what each name got; true for the first. */
function merging(kind: DeviceConflict["kind"], conflicts: DeviceConflict[]) {
  const first = new Map<string, { readonly resource: string; readonly value: string }>();
  return (name: string, value: string, resource: string): boolean => {
    const kept = first.get(name);
    if (kept === undefined) {
      first.set(name, { resource, value });
      return true;
    }
    if (kept.value !== value) conflicts.push({ kind, name, kept, dropped: { resource, value } });
    return false;
  };
}
