import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that lives as long as the running test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-db-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A file system of three megabytes, one of which `ballast` takes until it is removed; null where this user may not mount one. */
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
