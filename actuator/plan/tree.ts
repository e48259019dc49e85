import { memo } from "../../api/model/memo.ts";

/**
 * Paths of cgroups as a decision has them: absolute, below the actuator's own root (`/` is that root itself).
 * No empty, `.` or `..` segment, no control character, no segment that could be mistaken for a file of the kernel.
 */
export const isCgroupPath = (path: string): boolean => path.length <= MOST_LENGTH && isGood(path);
const MOST_LENGTH = 4095;
/** A pass asks some thousand times about some hundred paths. */
const isGood = memo(
  2048,
  (path) => path === "/" || (path.startsWith("/") && path.slice(1).split("/").every(isSegment)),
);

/** A character of a text is three bytes at most, and a name has room for 255. */
const utf8 = new TextEncoder();
const FILE_LIKE = /^(cgroup|cpu|cpuacct|cpuset|memory|pids|hugetlb|io|blkio|devices|freezer|misc|rdma)\./;

function isSegment(segment: string): boolean {
  if (segment === "" || segment === "." || segment === "..") return false;
  if (segment.length > 85 && utf8.encode(segment).length > 255) return false;
  if (FILE_LIKE.test(segment)) return false;
  for (const char of segment) if (char < " " || char === "\u007f") return false;
  return true;
}

/** Null for the root. */
export function parentOf(path: string): string | null {
  if (path === "/") return null;
  const cut = path.lastIndexOf("/");
  return cut === 0 ? "/" : path.slice(0, cut);
}

/** From the parent up to the root. */
export function* ancestorsOf(path: string): Generator<string> {
  for (let up = parentOf(path); up !== null; up = parentOf(up)) yield up;
}

/** The nearest ancestor that `has` accepts, or null. */
export function nearestAncestor(path: string, has: (ancestor: string) => boolean): string | null {
  for (const up of ancestorsOf(path)) if (has(up)) return up;
  return null;
}

export const isBelow = (path: string, ancestor: string): boolean =>
  ancestor === "/" ? path !== "/" : path.startsWith(`${ancestor}/`);

export const childPath = (parent: string, name: string): string => (parent === "/" ? `/${name}` : `${parent}/${name}`);

export const lastSegment = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
const depthOf = (path: string): number => (path === "/" ? 0 : path.split("/").length - 1);

/** Every path with its missing ancestors, parents before children; the given order is kept among cgroups of one depth. */
export function parentsFirst(paths: Iterable<string>): string[] {
  const all = new Set<string>();
  for (const path of paths) {
    for (const up of ancestorsOf(path)) all.add(up);
    all.add(path);
  }
  return [...all].sort((a, b) => depthOf(a) - depthOf(b));
}
