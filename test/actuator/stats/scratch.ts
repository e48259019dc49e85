import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A directory that is removed after the test. */
export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), "nodewise-disk-"));
  // not rmSync, which cannot remove paths longer than the kernel's limit
  onTestFinished(() => void run("rm", "-rf", dir));
  return dir;
}

const TMPFS = ["-t", "tmpfs", "-o", "size=1m", "nodewise-test"];

/**
 * Mounts a separate file system, or the given one, and unmounts it after the test; false: this process may not mount.
 */
export function mountedBelow(dir: string, ...what: readonly string[]): boolean {
  mkdirSync(dir);
  if (run("mount", ...(what.length === 0 ? TMPFS : what), dir) === null) return false;
  onTestFinished(() => {
    if (run("umount", dir) === null) throw new Error(`umount ${dir} failed`);
  });
  return true;
}

/** The size of a tree according to du, on the tree's own file system. */
export function du(path: string): { readonly usedBytes: number; readonly inodesUsed: number } {
  const figure = (...options: string[]): number => Number.parseInt(run("du", "-s", "-x", ...options, path) ?? "", 10);
  return { usedBytes: figure("--block-size=1"), inodesUsed: figure("--inodes") };
}

function run(command: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? stdout : null;
}
