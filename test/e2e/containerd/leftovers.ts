import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { RAM_DISK } from "../../kit/ram-disk.ts";

const CGROUPS = "/sys/fs/cgroup";

/**
 * A temporary directory of this process, `nodewise-KIND-PID-XXXXXX`. First removes the directories of this kind that
 * killed processes left, with their mounts, the cgroups of their name, and the processes that have a path of such a
 * directory in their arguments.
 */
export function ownDirectory(kind: string): string {
  const prefix = `nodewise-${kind}-`;
  for (const name of readdirSync(RAM_DISK)) {
    const owner = name.startsWith(prefix) ? /^(\d+)-\w+$/.exec(name.slice(prefix.length))?.[1] : undefined;
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) removeLeftover(join(RAM_DISK, name));
  }
  return mkdtempSync(join(RAM_DISK, `${prefix}${process.pid}-`));
}
function removeLeftover(dir: string): void {
  const isInside = (argument: string): boolean => argument.includes(`${dir}/`);
  for (const pid of processes().filter((pid) => argumentsOf(pid).some(isInside))) killTree(pid);
  unmountBelow(dir);
  removeCgroups(basename(dir));
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}

/** Kills the shims of this socket, and with each shim the processes of its container. */
export function killShims(socketPath: string): void {
  for (const shim of processes().filter((pid) => isShimOf(pid, socketPath))) killTree(shim);
}
const processes = (): string[] => readdirSync("/proc").filter((name) => /^\d+$/.test(name));
/** Kills a process and its descendants, the youngest generation first. */
function killTree(root: string): void {
  const children = Map.groupBy(processes(), parentOf);
  const withDescendants = (pid: string): string[] => [pid, ...(children.get(pid) ?? []).flatMap(withDescendants)];
  for (const pid of withDescendants(root).toReversed()) kill(Number(pid));
}
const procFile = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
};
const parentOf = (pid: string): string => /^PPid:\s*(\d+)$/m.exec(procFile(pid, "status"))?.[1] ?? "";
const argumentsOf = (pid: string): string[] => procFile(pid, "cmdline").split("\0");
function isShimOf(pid: string, socketPath: string): boolean {
  const [program = "", ...args] = argumentsOf(pid);
  return program.includes("containerd-shim") && args.includes(socketPath);
}
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The mount points below `dir`, `dir` included, the deepest first. */
export const mountsBelow = (dir: string): string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) =>
      (line.split(" ")[4] ?? "").replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8))),
    )
    .filter((path) => path === dir || path.startsWith(`${dir}/`))
    .toReversed();

export function unmountBelow(dir: string): void {
  for (const path of mountsBelow(dir)) {
    if (spawnSync("umount", [path]).status !== 0) spawnSync("umount", ["--lazy", path]);
  }
}

/** Removes a cgroup and its children in every hierarchy of either version; its processes must have exited. */
export function removeCgroups(name: string): void {
  for (const root of rootsOf(name)) removeTree(root);
}
/** Every cgroup with this name in any hierarchy, including hierarchies without a controller. */
export function cgroupsBelow(name: string): readonly string[] {
  const below = (dir: string): readonly string[] => directoriesIn(dir).flatMap((found) => [found, ...below(found)]);
  return rootsOf(name).flatMap(below);
}
/** The subdirectories; empty if the directory has been removed meanwhile. */
function directoriesIn(dir: string): readonly string[] {
  try {
    const entries = readdirSync(dir, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(dir, name));
  } catch {
    return [];
  }
}
const rootsOf = (name: string): readonly string[] =>
  [CGROUPS, ...readdirSync(CGROUPS).map((hierarchy) => join(CGROUPS, hierarchy))]
    .map((hierarchy) => join(hierarchy, name))
    .filter((root) => existsSync(root));
function removeTree(dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(dir, entry.name));
  }
  try {
    rmdirSync(dir);
  } catch (error) {
    // A process that was just killed may still be in the cgroup. An empty directory of a test does no harm.
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
  }
}
