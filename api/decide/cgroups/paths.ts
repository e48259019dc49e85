import { type CgroupName, containerLeaf, parseCgroupfs, parseSystemd, toCgroupfs, toSystemd } from "./names.ts";

export type Driver = "cgroupfs" | "systemd";
const NODE_ALLOCATABLE_ROOT = "kubepods";

/** Where the cgroups of one node lie, for its driver. */
export interface Paths {
  readonly kubepods: string;
  readonly burstable: string;
  readonly besteffort: string;
  pod(qos: "Guaranteed" | "Burstable" | "BestEffort", uid: string): string;
  container(podPath: string, leaf: string): string;
  /** A cgroup named in the configuration. */
  configured(name: string): string;
}

/** `cgroupRoot` is the kubelet's setting: kubepods lies below it. kubelet 1.36: NewContainerManager, GetPodContainerName. */
export function pathsOf(driver: Driver, cgroupRoot: string): Paths {
  const path = driver === "systemd" ? toSystemd : toCgroupfs;
  const parse = driver === "systemd" ? parseSystemd : parseCgroupfs;
  const root: CgroupName = [
    ...(cgroupRoot === "" || cgroupRoot === "/" ? [] : parseCgroupfs(cgroupRoot)),
    NODE_ALLOCATABLE_ROOT,
  ];
  const tier = { Guaranteed: root, Burstable: [...root, "burstable"], BestEffort: [...root, "besteffort"] };
  return {
    kubepods: path(root),
    burstable: path(tier.Burstable),
    besteffort: path(tier.BestEffort),
    pod: (qos, uid) => path([...tier[qos], `pod${uid}`]),
    container: (podPath, leaf) => `${podPath}/${leaf}`,
    configured: (name) => path(parse(name)),
  };
}

const CONTAINER_ID = /^(?:[a-z0-9+.-]+:\/\/)?([A-Za-z0-9][A-Za-z0-9_.-]{0,127})$/;
/** `containerd://3cab58...` -> `3cab58...`. */
export function containerIdOf(containerID: string | null | undefined): string | undefined {
  return CONTAINER_ID.exec(containerID ?? "")?.[1];
}
export { containerLeaf };
