import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { CONTAINERD, noGoPrograms, pathOf } from "../go-programs.ts";

/** The path of containerd, and a PATH with the shim and ctr of the same version. */
export interface Programs {
  readonly containerd: string;
  readonly ctr: string;
  readonly path: string;
  /** The absolute paths of containerd, ctr, the shim and runc. */
  readonly all: readonly string[];
}

const SEARCH = (process.env["PATH"] ?? "").split(delimiter).concat("/usr/local/sbin", "/usr/sbin", "/sbin");

/** As `containerPrograms`, for a user who is allowed to start containers: root. */
export function findPrograms(given?: string): { readonly missing: string } | Programs {
  if (process.getuid?.() !== 0) return { missing: "only root can start containers" };
  return containerPrograms(given);
}
/**
 * The path of a containerd that injects CDI devices, if it has been built; undefined: use the machine's, or the
 * environment's.
 */
export const cdiContainerd = (): string | undefined =>
  process.env["CONTAINERD"] === undefined && noGoPrograms("CDI devices inside containers", ...CONTAINERD) === undefined
    ? pathOf(CONTAINERD[0])
    : undefined;

/**
 * `given`, or `CONTAINERD` of the environment, is the path of another binary than the machine's; ctr and the shim are
 * then first searched in its directory.
 */
export function containerPrograms(given = process.env["CONTAINERD"]): { readonly missing: string } | Programs {
  const search = given === undefined ? SEARCH : [dirname(given), ...SEARCH];
  const find = (name: string): string | undefined => search.map((dir) => join(dir, name)).find(isProgram);
  const containerd = given ?? find("containerd");
  const ctr = find("ctr");
  if (containerd === undefined || ctr === undefined) return { missing: "containerd is not installed (.ci/apt)" };
  const [shim, runc] = [find("containerd-shim-runc-v2"), find("runc")];
  if (shim === undefined || runc === undefined) {
    return { missing: `${shim === undefined ? "containerd-shim-runc-v2" : "runc"} is not installed (.ci/apt)` };
  }
  if (!existsSync("/bin/busybox")) return { missing: "/bin/busybox is not installed (.ci/apt)" };
  return { containerd, ctr, path: search.join(delimiter), all: [containerd, ctr, shim, runc] };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
