import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { RAM_DISK } from "../../kit/ram-disk.ts";

const CGROUPS = "/sys/fs/cgroup";

/**
 * A temporary directory of this process's own, `nodewise-KIND-PID-XXXXXX`. Those of the kind that a killed process left behind are
 * removed first, with the processes that were started with a path in them, their mounts, and the cgroups of their name.
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

/** Kills the shims that were started for this socket, and with each the processes of its container. */
export function killShims(socketPath: string): void {
  for (const shim of processes().filter((pid) => isShimOf(pid, socketPath))) killTree(shim);
}
const processes = (): string[] => readdirSync("/proc").filter((name) => /^\d+$/.test(name));
/** A process with its descendants, the youngest generation first. */
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

/** Places below `dir`, or `dir` itself, where something is mounted, the deepest first. */
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

/** A cgroup with what is below it, in every hierarchy of either version; its processes must be gone. */
export function removeCgroups(name: string): void {
  for (const root of rootsOf(name)) removeTree(root);
}
/** Every cgroup of any hierarchy, those without a controller too. */
export function cgroupsBelow(name: string): readonly string[] {
  const below = (dir: string): readonly string[] => directoriesIn(dir).flatMap((found) => [found, ...below(found)]);
  return rootsOf(name).flatMap(below);
}
/** None of one that is gone meanwhile. */
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
    // A process that was killed a moment ago may still be in it: an empty directory of a test is no harm.
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
  }
}
