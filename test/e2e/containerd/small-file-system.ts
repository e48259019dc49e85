import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unmountBelow } from "./leftovers.ts";

export interface SmallFileSystem {
  readonly path: string;
  release(): void;
}

/** A separate file system of that size, in memory; overlayfs works on it. Only root can mount it. */
export function smallFileSystem(bytes: number): SmallFileSystem {
  const path = mkdtempSync(join(tmpdir(), "nodewise-fs-"));
  const release = (): void => {
    unmountBelow(path);
    rmdirSync(path);
  };
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=755`, "nodewise-test", path], {
    encoding: "utf8",
  });
  if (mount.status === 0) return { path, release };
  rmdirSync(path);
  throw new Error(`mount: ${mount.stderr}`);
}
