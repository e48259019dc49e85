import type { AllocateResponse, Mount } from "./allocate-response.ts";

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}
/** A device node as CRI has it. */
export interface DeviceInfo {
  readonly pathOnHost: string;
  readonly pathInContainer: string;
  readonly permissions: string;
}
/** Two plugins want different things under one name; the first is what the container gets. */
export interface Conflict {
  readonly kind: "env" | "mount" | "device" | "annotation";
  /** The variable, the path in the container, or the annotation. */
  readonly name: string;
  readonly kept: { readonly resource: string; readonly value: string };
  readonly dropped: { readonly resource: string; readonly value: string };
}
/** What a container gets for its devices. kubelet 1.36: DeviceRunContainerOptions. */
export interface ContainerOptions {
  readonly envs: readonly NamedValue[];
  readonly mounts: readonly Mount[];
  readonly devices: readonly DeviceInfo[];
  readonly annotations: readonly NamedValue[];
  readonly cdiDevices: readonly string[];
  readonly conflicts: readonly Conflict[];
}
export interface ResourceResponse {
  readonly resource: string;
  readonly response: AllocateResponse;
}

/**
 * Puts the answers of several plugins together: of two under one name the first stays, and they are in conflict when their
 * values differ (of mounts and devices: their paths on the host). The kubelet takes resources, environment and annotations in
 * the order of Go maps; here they go by name. kubelet 1.36: deviceRunContainerOptions.
 */
export function containerOptions(responses: readonly ResourceResponse[]): ContainerOptions {
  const conflicts: Conflict[] = [];
  const envs = merging("env", conflicts);
  const mounts = merging("mount", conflicts);
  const devices = merging("device", conflicts);
  const annotations = merging("annotation", conflicts);
  const options = {
    envs: [] as NamedValue[],
    mounts: [] as Mount[],
    devices: [] as DeviceInfo[],
    annotations: [] as NamedValue[],
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
function merging(kind: Conflict["kind"], conflicts: Conflict[]) {
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
