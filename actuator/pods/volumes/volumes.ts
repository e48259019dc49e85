import {
  chmodSync,
  closeSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../../../api/model/result.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import type { HostPathType, PodVolume, RunnablePod } from "../../lifecycle/pod.ts";
import type { PodPlaces } from "../pod-clock.ts";
import { type Mounter, mountAt } from "./mounter.ts";
import { emptyDirAt } from "./places.ts";
import { makeMarked } from "./pod-mark.ts";

interface EmptyDir {
  /** Its place; those above it are made as well. */
  readonly at: string;
  readonly medium: "" | "Memory";
  /** The size of a tmpfs; null: the kernel's half of the memory. */
  readonly sizeBytes: number | null;
  readonly fsGroup: number | null;
}

/** Read, write and enter for all; with a group of its own, what is made in it belongs to that group. */
const OPEN_TO_ALL = 0o777;
const SETGID = 0o2000;
/** The bit that a tmpfs has unless told otherwise; the kubelet leaves it. */
const STICKY = 0o1000;

/**
 * Makes a pod's empty directory, or finds it again: what lies in it stays, and who owns it by now is not looked at.
 * Error: what the system refused. kubelet 1.36: emptyDir.SetUpAt.
 */
async function makeEmptyDir(dir: EmptyDir, mounter: Mounter): Promise<Result<null, string>> {
  const made = makeDirectory(dir.at, dir.medium === "" ? dir.fsGroup : null);
  if (!made.ok || dir.medium === "") return made;
  const mounted = mountAt(dir.at, mounter);
  if (!mounted.ok) return mounted;
  return mounted.value?.type === "tmpfs" ? ok(null) : mountTmpfs(dir, mounter);
}

/** Under another name first, so that it is never there with the wrong owner or mode, whenever this process dies. */
function makeDirectory(at: string, group: number | null): Result<null, string> {
  try {
    if (isDirectory(at)) return ok(null);
    const unfinished = join(dirname(at), `.${basename(at)}.new`);
    mkdirSync(dirname(at), { recursive: true, mode: 0o750 });
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished);
    if (group !== null) lchownSync(unfinished, -1, group);
    chmodSync(unfinished, group === null ? OPEN_TO_ALL : OPEN_TO_ALL | SETGID);
    renameSync(unfinished, at);
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

function isDirectory(at: string): boolean {
  try {
    if (lstatSync(at).isDirectory()) return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
  throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${at}'`), {
    code: "ENOTDIR",
    syscall: "mkdir",
    path: at,
  });
}

/** The kernel sets owner and mode as it mounts, so there is no moment without them. */
async function mountTmpfs({ at, sizeBytes, fsGroup }: EmptyDir, mounter: Mounter): Promise<Result<null, string>> {
  const mode = OPEN_TO_ALL | STICKY | (fsGroup === null ? 0 : SETGID);
  const options = [
    ...(sizeBytes !== null && sizeBytes > 0 ? [`size=${sizeBytes}`] : []),
    `mode=${mode.toString(8)}`,
    ...(fsGroup === null ? [] : [`gid=${fsGroup}`]),
  ];
  // kernels before 6.4 know no `noswap`
  const first = await mounter.tmpfs(at, [...options, "noswap"]);
  return first.ok ? first : mounter.tmpfs(at, options);
}

interface Expected {
  readonly is: (stats: Stats) => boolean;
  readonly noun: string;
}
const DIRECTORY: Expected = { is: (s) => s.isDirectory(), noun: "directory" };
const FILE: Expected = { is: (s) => s.isFile(), noun: "file" };
const EXPECTED: Readonly<Record<Exclude<HostPathType, "">, Expected>> = {
  DirectoryOrCreate: DIRECTORY,
  Directory: DIRECTORY,
  FileOrCreate: FILE,
  File: FILE,
  Socket: { is: (s) => s.isSocket(), noun: "socket file" },
  CharDevice: { is: (s) => s.isCharacterDevice(), noun: "character device" },
  BlockDevice: { is: (s) => s.isBlockDevice(), noun: "block device" },
};

/**
 * Checks that a path of the machine is what a pod takes it for, links followed, and makes it where the type says so
 * (directories 0755 with those above, files 0644 without). Error: the kubelet's words. kubelet 1.36: hostPathMounter.SetUp.
 */
export function checkHostPath(path: string, type: HostPathType): Result<null, string> {
  if (path.split("/").includes("..")) return err(`invalid HostPath \`${path}\`: must not contain '..'`);
  if (type === "") return ok(null);
  const found = statsOf(path);
  if (found === null && type === "DirectoryOrCreate")
    return made(() => mkdirSync(path, { recursive: true, mode: 0o755 }));
  if (found === null && type === "FileOrCreate") return made(() => closeSync(openSync(path, "a", 0o644)));
  const { is, noun } = EXPECTED[type];
  return found !== null && is(found) ? ok(null) : err(`hostPath type check failed: ${path} is not a ${noun}`);
}

/** Null: not there, or nobody may know. */
function statsOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    codeOf(error);
    return null;
  }
}

/** Makes an entry. One that is there already is as good: the kubelet does not look at it again either. */
function made(make: () => unknown): Result<null, string> {
  try {
    make();
  } catch (error) {
    if (codeOf(error) !== "EEXIST") return err(goErrorText(error));
  }
  return ok(null);
}

interface VolumeFault {
  readonly volume: string;
  readonly message: string;
}

/**
 * The pod's directory, with its maker's mark, and what the kubelet has in it. Error: what the system refused.
 * kubelet 1.36: makePodDataDirs.
 */
export function makePodDirectory({ podDirectory }: PodPlaces, owner: string): Result<null, string> {
  const made = makeMarked(podDirectory, owner);
  if (!made.ok) return made;
  try {
    for (const part of ["volumes", "containers"]) mkdirSync(join(podDirectory, part), { recursive: true, mode: 0o750 });
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

/**
 * Makes all volumes of a pod, or finds them again; one that cannot be made keeps no other from being made.
 * @param memoryBytes the pod's memory, which no volume in memory may exceed; null: as its own limit says.
 */
export async function makeVolumes(
  pod: RunnablePod,
  places: PodPlaces,
  memoryBytes: number | null,
  mounter: Mounter,
): Promise<readonly VolumeFault[]> {
  const faults: VolumeFault[] = [];
  for (const volume of pod.spec.volumes) {
    const made = await makeVolume(volume, pod, places, memoryBytes, mounter);
    if (!made.ok) faults.push({ volume: volume.name, message: made.error });
  }
  return faults;
}

async function makeVolume(
  volume: PodVolume,
  pod: RunnablePod,
  places: PodPlaces,
  memoryBytes: number | null,
  mounter: Mounter,
): Promise<Result<null, string>> {
  if ("hostPath" in volume) return checkHostPath(volume.hostPath.path, volume.hostPath.type);
  const { medium, sizeLimitBytes } = volume.emptyDir;
  const at = emptyDirAt(places, volume.name);
  if (!at.ok) return at;
  const sizeBytes = smaller(sizeLimitBytes, memoryBytes);
  return makeEmptyDir({ at: at.value, medium, sizeBytes, fsGroup: pod.spec.securityContext.fsGroup }, mounter);
}
const smaller = (one: number | null, other: number | null): number | null =>
  one === null || one === 0 ? other : other === null ? one : Math.min(one, other);

/** Where a volume is on the machine. Error: a sentence. */
export const volumeAt = (volume: PodVolume, places: PodPlaces): Result<string, string> =>
  "hostPath" in volume ? ok(volume.hostPath.path) : emptyDirAt(places, volume.name);
