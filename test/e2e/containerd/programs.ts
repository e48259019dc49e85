import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Where containerd is, and a PATH on which it finds its shim, and we ctr, of the same version. */
export interface Programs {
  readonly containerd: string;
  readonly ctr: string;
  readonly path: string;
}

const SEARCH = (process.env["PATH"] ?? "").split(delimiter).concat("/usr/local/sbin", "/usr/sbin", "/sbin");

/** The environment's `CONTAINERD` names another binary than the machine's; `ctr` and the shim are then looked for beside it. */
export function findPrograms(): { readonly missing: string } | Programs {
  if (process.getuid?.() !== 0) return { missing: "only root can start containers" };
  const given = process.env["CONTAINERD"];
  const search = given === undefined ? SEARCH : [dirname(given), ...SEARCH];
  const find = (name: string): string | undefined => search.map((dir) => join(dir, name)).find(isProgram);
  const containerd = given ?? find("containerd");
  const ctr = find("ctr");
  if (containerd === undefined || ctr === undefined) return { missing: "containerd is not installed (.ci/apt)" };
  for (const name of ["containerd-shim-runc-v2", "runc"]) {
    if (find(name) === undefined) return { missing: `${name} is not installed (.ci/apt)` };
  }
  if (!existsSync("/bin/busybox")) return { missing: "/bin/busybox is not installed (.ci/apt)" };
  return { containerd, ctr, path: search.join(delimiter) };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
