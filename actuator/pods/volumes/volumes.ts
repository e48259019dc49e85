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
import { err, ok, type Result } from "../../../api/base/result.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import type { HostPathType, PodVolume, RunnablePod } from "../../lifecycle/pod.ts";
import type { PodPlaces } from "../pod-clock.ts";
import { type Mounter, mountAt } from "./mounter.ts";
import { emptyDirAt } from "./places.ts";
import { makeMarked } from "./pod-mark.ts";

interface EmptyDir {
  /** The directory's path; its parents are made as well. */
  readonly at: string;
  readonly medium: "" | "Memory";
  /** The size of a tmpfs; null: the kernel's default, half of the memory. */
  readonly sizeBytes: number | null;
  readonly fsGroup: number | null;
}

/** Read, write and enter for all; with SETGID, new files in it get the directory's group. */
const OPEN_TO_ALL = 0o777;
const SETGID = 0o2000;
/** The bit that a tmpfs has by default; the kubelet leaves it. */
const STICKY = 0o1000;

/**
 * Makes a pod's empty directory, or keeps an existing one: its content stays, and its owner is not checked.
 * Error: the system's error. kubelet 1.36: emptyDir.SetUpAt.
 */
async function makeEmptyDir(dir: EmptyDir, mounter: Mounter): Promise<Result<null, string>> {
  const made = makeDirectory(dir.at, dir.medium === "" ? dir.fsGroup : null);
  if (!made.ok || dir.medium === "") return made;
  const mounted = mountAt(dir.at, mounter);
  if (!mounted.ok) return mounted;
  return mounted.value?.type === "tmpfs" ? ok(null) : mountTmpfs(dir, mounter);
}

/** Makes the directory under another name first, so that a crash never leaves it with the wrong owner or mode. */
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

/** The kernel sets owner and mode as part of the mount, so the directory is never without them. */
async function mountTmpfs({ at, sizeBytes, fsGroup }: EmptyDir, mounter: Mounter): Promise<Result<null, string>> {
  const mode = OPEN_TO_ALL | STICKY | (fsGroup === null ? 0 : SETGID);
  const options = [
    ...(sizeBytes !== null && sizeBytes > 0 ? [`size=${sizeBytes}`] : []),
    `mode=${mode.toString(8)}`,
    ...(fsGroup === null ? [] : [`gid=${fsGroup}`]),
  ];
  // kernels before 6.4 do not know `noswap`
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
 * Checks that a host path has the type that the pod expects, following links, and makes it if the type says so
 * (directories 0755 with parents, files 0644 without). Error: the kubelet's words. kubelet 1.36: hostPathMounter.SetUp.
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

/** Null: the path does not exist, or cannot be read. */
function statsOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    codeOf(error);
    return null;
  }
}

/** Makes an entry. An existing entry is accepted: the kubelet does not check it again either. */
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
 * Makes the pod's directory with its mark, and the kubelet's subdirectories. Error: the system's error.
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
 * Makes all volumes of a pod, or keeps existing ones; a volume that cannot be made does not prevent the others.
 * @param memoryBytes the pod's memory, which caps memory-backed volumes; null: only the volume's own limit counts.
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

/** The path of a volume on the machine. Error: a sentence. */
export const volumeAt = (volume: PodVolume, places: PodPlaces): Result<string, string> =>
  "hostPath" in volume ? ok(volume.hostPath.path) : emptyDirAt(places, volume.name);
