import { chmodSync, lchownSync, lstatSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { codeOf, goErrorText } from "./go-error.ts";
import { type Mounter, mountAt } from "./mounter.ts";

export interface EmptyDir {
  /** Its place; those above it are made as well. */
  readonly at: string;
  readonly medium: "" | "Memory";
  /** Of a tmpfs; null: the kernel's half of the memory. */
  readonly sizeBytes: number | null;
  readonly fsGroup: number | null;
}

/** Read, write and enter for all; with a group of its own, what is made in it belongs to that group. */
const OPEN_TO_ALL = 0o777;
const SETGID = 0o2000;
/** What a tmpfs has unless told otherwise, and the kubelet leaves so. */
const STICKY = 0o1000;

/**
 * Makes a pod's empty directory, or finds it again: what lies in it stays, and who owns it by now is not looked at.
 * Error: what the system refused. kubelet 1.36: emptyDir.SetUpAt.
 */
export async function makeEmptyDir(dir: EmptyDir, mounter: Mounter): Promise<Result<null, string>> {
  const made = makeDirectory(dir.at, dir.medium === "" ? dir.fsGroup : null);
  if (!made.ok || dir.medium === "") return made;
  const mounted = mountAt(dir.at, mounter);
  if (!mounted.ok) return mounted;
  return mounted.value?.type === "tmpfs" ? ok(null) : mountTmpfs(dir, mounter);
}

/** Under another name first, so that it is never there with the wrong owner or mode, whenever this process dies. */
function makeDirectory(at: string, group: number | null): Result<null, string> {
  try {
    if (isDirectory(at)) return ok(null);
    const unfinished = join(dirname(at), `.${basename(at)}.new`);
    mkdirSync(dirname(at), { recursive: true, mode: 0o750 });
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished);
    if (group !== null) lchownSync(unfinished, -1, group);
    chmodSync(unfinished, group === null ? OPEN_TO_ALL : OPEN_TO_ALL | SETGID);
    renameSync(unfinished, at);
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

function isDirectory(at: string): boolean {
  try {
    if (lstatSync(at).isDirectory()) return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
  throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${at}'`), {
    code: "ENOTDIR",
    syscall: "mkdir",
    path: at,
  });
}

/** The kernel sets owner and mode as it mounts, so there is no moment without them. */
async function mountTmpfs({ at, sizeBytes, fsGroup }: EmptyDir, mounter: Mounter): Promise<Result<null, string>> {
  const mode = OPEN_TO_ALL | STICKY | (fsGroup === null ? 0 : SETGID);
  const options = [
    ...(sizeBytes !== null && sizeBytes > 0 ? [`size=${sizeBytes}`] : []),
    `mode=${mode.toString(8)}`,
    ...(fsGroup === null ? [] : [`gid=${fsGroup}`]),
  ];
  // kernels before 6.4 know no `noswap`
  const first = await mounter.tmpfs(at, [...options, "noswap"]);
  return first.ok ? first : mounter.tmpfs(at, options);
}
