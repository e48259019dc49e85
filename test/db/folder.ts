import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { scratchFolder } from "../kit/scratch.ts";

/** A folder that is removed after the running test. */
export function testFolder(): string {
  const folder = scratchFolder();
  return folder;
}

/**
 * A file system of three megabytes, one of which `ballast` occupies until it is removed; null if this user may not
 * mount one.
 */
export function smallDisk(): { readonly folder: string; readonly ballast: string } | null {
  const folder = join(testFolder(), "disk");
  mkdirSync(folder);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m,mode=0700", "nodewise-test", folder], { stdio: "ignore" });
  } catch {
    return null;
  }
  onTestFinished(() => {
    execFileSync("umount", [folder]);
  });
  const ballast = join(folder, "ballast");
  writeFileSync(ballast, Buffer.alloc(1_000_000));
  return { folder, ballast };
}
