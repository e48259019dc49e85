import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { promisify } from "node:util";
import { err, ok, type Result } from "../../../api/base/result.ts";

/** Why this machine cannot run the guest: `code` for programs, `message` for people. */
export type GuestAbsent = {
  readonly code: "architecture" | "tool" | "kernel-package" | "systemd-package";
  readonly message: string;
};

const runFile = promisify(execFile);

/** The programs that build and run the guest, each with its Debian package. */
const TOOLS = {
  "apt-cache": "apt",
  "apt-get": "apt",
  busybox: "busybox-static",
  "dpkg-deb": "dpkg",
  ldd: "libc-bin",
  mke2fs: "e2fsprogs",
  "qemu-system-x86_64": "qemu-system-x86",
} as const;

export type Tool = keyof typeof TOOLS;

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The absolute path of a program, or undefined. Also searches the system directories that a user's PATH may lack. */
function findTool(tool: Tool): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, tool)).find(isExecutable);
}

/** The absolute path of a program that `checkHost` has found. */
export function toolPath(tool: Tool): string {
  const path = findTool(tool);
  if (path === undefined) throw new Error(`program \`${tool}\` vanished from PATH: install package ${TOOLS[tool]}`);
  return path;
}

/** Runs a program without a shell and returns its stdout; throws with its stderr if it fails. */
export async function run(tool: Tool, args: readonly string[], cwd?: string): Promise<string> {
  const env = { ...process.env, LC_ALL: "C" };
  const { stdout } = await runFile(toolPath(tool), [...args], { env, ...(cwd === undefined ? {} : { cwd }) });
  return stdout;
}

/** The shared libraries that a program needs, as absolute paths; empty for a static one. */
export async function sharedLibraries(program: string): Promise<string[]> {
  const { stdout } = await runFile(toolPath("ldd"), [program], { env: { ...process.env, LC_ALL: "C" } }).catch(
    (error: { stdout?: string; stderr?: string }) => {
      // ldd answers like this, with exit code 1, for a static program.
      if (error.stderr?.includes("not a dynamic executable")) return { stdout: "" };
      throw error;
    },
  );
  if (stdout.includes("not found")) throw new Error(`ldd ${basename(program)}: a library is missing: ${stdout.trim()}`);
  return [...stdout.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].map((match) => match[1] ?? "");
}

/** Checks whether this machine has what the guest needs, except for the kernel package. */
export async function checkHost(): Promise<Result<null, GuestAbsent>> {
  // The guest runs this machine's Node, so both have the same architecture.
  if (process.arch !== "x64" || process.platform !== "linux") {
    return err({ code: "architecture", message: `needs linux x64, this is ${process.platform} ${process.arch}` });
  }
  const missing = (Object.keys(TOOLS) as Tool[]).filter((tool) => findTool(tool) === undefined);
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((tool) => TOOLS[tool]))];
    return err({ code: "tool", message: `no ${missing.join(", ")}: install ${packages.join(" ")} (.ci/apt does)` });
  }
  if ((await sharedLibraries(toolPath("busybox"))).length > 0) {
    return err({ code: "tool", message: "busybox needs shared libraries: install busybox-static (.ci/apt does)" });
  }
  return ok(null);
}
