import { execFile } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, map, ok, type Result } from "../../../api/base/result.ts";
import { withoutEscapes } from "../../cgroupfs/files.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";

interface MountPoint {
  readonly point: string;
  /** `tmpfs`, `ext4` */
  readonly type: string;
}

/** The parts of mount(8) that pods' directories need. Errors are sentences. */
export interface Mounter {
  /** All mounts of this process's mount namespace, in the order in which they were mounted. */
  mounts(): Result<readonly MountPoint[], string>;
  tmpfs(point: string, options: readonly string[]): Promise<Result<null, string>>;
  /** Mounts the opened file or directory at `point` too. */
  bind(fd: number, point: string): Promise<Result<null, string>>;
  unmount(point: string): Promise<Result<null, string>>;
}

/** Finds the topmost mount exactly at a path; the kernel lists mount points with links resolved. */
export function mountAt(path: string, mounter: Mounter): Result<MountPoint | undefined, string> {
  const real = withoutLinks(path);
  return map(mounter.mounts(), (mounts) => mounts.findLast(({ point }) => point === real));
}
function withoutLinks(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch (error) {
    codeOf(error);
    return path;
  }
}

const MOUNTINFO = "/proc/self/mountinfo";

/** Uses /bin/mount and /bin/umount, without a shell. */
export const systemMounter: Mounter = {
  mounts() {
    try {
      return ok(parseMountPoints(readFileSync(MOUNTINFO, "utf8")));
    } catch (error) {
      return err(goErrorText(error));
    }
  },
  tmpfs: (point, options) =>
    mount(["-t", "tmpfs", ...(options.length > 0 ? ["-o", options.join(",")] : []), "tmpfs", point]),
  // by this process's id: the mount process has other open files
  bind: (fd, point) => mount(["--no-canonicalize", "-o", "bind", `/proc/${process.pid}/fd/${fd}`, point]),
  async unmount(point) {
    const { status, output } = await run("/bin/umount", [point]);
    return status === null
      ? ok(null)
      : err(`unmount failed: ${status}\nUnmounting arguments: ${point}\nOutput: ${output}`);
  },
};

/** Runs mount(8). mount-utils v0.36: error texts of Mounter.doMount. */
async function mount(args: readonly string[]): Promise<Result<null, string>> {
  const { status, output } = await run("/bin/mount", args);
  if (status === null) return ok(null);
  return err(
    `mount failed: ${status}\nMounting command: mount\nMounting arguments: ${args.join(" ")}\nOutput: ${output}`,
  );
}

interface CommandResult {
  /** Null: the command succeeded. */
  readonly status: string | null;
  readonly output: string;
}
const run = (file: string, args: readonly string[]): Promise<CommandResult> =>
  new Promise((resolve) => {
    execFile(file, args, (error, stdout, stderr) => {
      const status =
        error === null ? null : typeof error.code === "number" ? `exit status ${error.code}` : error.message;
      resolve({ status, output: stdout + stderr });
    });
  });

/** Parses the text of proc_pid_mountinfo(5); malformed lines are left out. */
export function parseMountPoints(mountinfo: string): readonly MountPoint[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [left, right] = line.split(" - ");
    const point = left?.split(" ")[4];
    const type = right?.split(" ")[0];
    return point === undefined || type === undefined ? [] : [{ point: withoutEscapes(point), type }];
  });
}
