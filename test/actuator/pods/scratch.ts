import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import { parseMountPoints } from "../../../actuator/pods/volumes/mounter.ts";
import { scratchFolder } from "../../kit/scratch.ts";

/** Only root may mount, and give files to other users. */
export const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn("skipped what pods' directories need of mounts: only root can mount");

/** A directory that is removed after the test; everything mounted below it is unmounted first. */
export function scratch(parent?: string): string {
  const directory = scratchFolder(parent);
  onTestFinished(() => {
    for (const point of mountsBelow(directory).toReversed()) execFileSync("/bin/umount", [point]);
  });
  return directory;
}
export const mountsBelow = (directory: string): readonly string[] =>
  parseMountPoints(readFileSync("/proc/self/mountinfo", "utf8")).flatMap(({ point }) =>
    point.startsWith(`${directory}/`) ? [point] : [],
  );
