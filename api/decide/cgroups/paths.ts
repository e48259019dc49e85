/**
 * A cgroup's name: its components below the cgroup root, for either driver. A component must not contain `_` (the
 * systemd form uses it) or `/`.
 */
type CgroupName = readonly string[];

const SLICE = ".slice";

/** kubelet 1.36: CgroupName.ToCgroupfs. */
export const toCgroupfs = (name: CgroupName): string => `/${name.join("/")}`;

/** `kubepods-burstable-pod<uid with _>.slice`, below its parents' slices. kubelet 1.36: CgroupName.ToSystemd. */
export function toSystemd(name: CgroupName): string {
  if (name.length === 0 || (name.length === 1 && name[0] === "")) return "/";
  let path = "";
  let slice = "";
  for (const part of name) {
    const escaped = part.includes("-") ? part.replaceAll("-", "_") : part;
    slice = slice === "" ? escaped : `${slice}-${escaped}`;
    path += `/${slice}${SLICE}`;
  }
  return path;
}

/** kubelet 1.36: ParseSystemdToCgroupName. */
export function parseSystemd(path: string): CgroupName {
  let end = path.length;
  while (end > 0 && path[end - 1] === "/") end--;
  const from = path.lastIndexOf("/", end - 1) + 1;
  const bare = path.startsWith(SLICE, Math.max(from, end - SLICE.length)) ? end - SLICE.length : end;
  const parts = path.slice(from, bare).split("-");
  return path.includes("_", from) ? parts.map((part) => part.replaceAll("_", "-")) : parts;
}
/** kubelet 1.36: ParseCgroupfsToCgroupName. */
export const parseCgroupfs = (path: string): CgroupName => path.split("/").filter((part) => part !== "");

/** The name of a container's cgroup below its pod's: the container's id, or containerd's scope under systemd. */
export const containerLeaf = (driver: "cgroupfs" | "systemd", id: string): string =>
  driver === "systemd" ? `cri-containerd-${id}.scope` : id;

export type Driver = "cgroupfs" | "systemd";
const NODE_ALLOCATABLE_ROOT = "kubepods";

/** The cgroup paths of one node, for its driver. */
export interface Paths {
  readonly kubepods: string;
  readonly burstable: string;
  readonly besteffort: string;
  pod(qos: "Guaranteed" | "Burstable" | "BestEffort", uid: string): string;
  container(podPath: string, leaf: string): string;
  /** The path of a cgroup that the configuration names. */
  configured(name: string): string;
}

/**
 * Builds the paths. `cgroupRoot`: the kubelet's setting, the parent of kubepods. kubelet 1.36: NewContainerManager,
 * GetPodContainerName.
 */
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
