import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { scratchFolder } from "../kit/scratch.ts";
import { PATIENT } from "../patient.ts";
import { CHECKOUT, ended, NODE, printed, type RunOptions, runProcess as runOf, start as startOf } from "./run.ts";

/** Starts the sources, as a checkout does. */
const start = (args: readonly string[], options: RunOptions = {}) => startOf(args, { launcher: CHECKOUT, ...options });
const runProcess = (args: readonly string[], options: RunOptions = {}) =>
  runOf(args, { launcher: CHECKOUT, ...options });

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OLD_NODE = "/usr/bin/node";
const hasOldNode = existsSync(OLD_NODE) && realpathSync(OLD_NODE) !== realpathSync(NODE) && (await isOld(OLD_NODE));
async function isOld(node: string): Promise<boolean> {
  const { stdout } = await runProcess(["process.versions.node"], { node, launcher: "-p" });
  return Number.parseInt(stdout, 10) < 22;
}
const why = hasOldNode ? "" : ` (skipped: ${OLD_NODE} is not a Node older than 22)`;

const scratch = scratchFolder();

/** A copy of the project's code without its packages. */
function copyTo(folder: string): string {
  mkdirSync(folder, { recursive: true });
  for (const name of ["api", "actuator", "db", "migrations", "package.json"]) {
    if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  return join(folder, "api/cli/nodewise.js");
}

describe("the launcher on a supported Node", () => {
  test("runs the command line in place and passes on its exit code", async () => {
    const version = await runProcess(["--version"]);
    expect(version).toMatchObject({ code: 0, stderr: "" });
    expect(version.stdout).toMatch(
      /^nodewise \d+\.\d+\.\d+ \(policies kubelet-1\.34\+\d+, (?:kubelet-1\.\d+\+\d+, )+Node \d+\.\d+\.\d+\)\n$/,
    );
    expect((await runProcess(["decide"])).code).toBe(2);
  });

  test("runs a daemon in the same process with flags that save memory", async () => {
    const args = ["actuator", "--cgroup-mount", join(scratch, "none"), "--state-dir", join(scratch, "daemon")];
    const child = start([...args, "--interval-seconds", "3600"]);
    const end = ended(child);
    await printed(child, /cgroups? decided/);
    const command = commandOf(String(child.pid));
    expect(command).toEqual(expect.arrayContaining(["--optimize-for-size", ...args]));
    expect(environmentOf(child.pid)).toEqual(expect.arrayContaining(["MALLOC_ARENA_MAX=1"]));
    expect(childrenOf(child.pid)).toEqual([]);
    child.kill("SIGTERM");
    expect(await end).toMatchObject({ code: 0, signal: null });
  });

  test("runs an API in the same process with settings that save memory", async () => {
    const child = start(["api", "--port", "0", "--data-dir", join(scratch, "api")]);
    const end = ended(child);
    await printed(child, /^http:/);
    expect(commandOf(String(child.pid))).toContain("--expose-gc");
    expect(environmentOf(child.pid)).toContain("MALLOC_ARENA_MAX=1");
    expect(childrenOf(child.pid)).toEqual([]);
    child.kill("SIGTERM");
    expect(await end).toMatchObject({ code: 0, signal: null });
  });

  test("limits a replay's heap independently of the machine, unless NODE_OPTIONS sets it", async () => {
    const tell = join(scratch, "tell.cjs");
    writeFileSync(tell, 'process.on("exit", () => console.error("flags:", ...process.execArgv));\n');
    const flagsOf = async (more: string) => {
      const env = { NODE_OPTIONS: `--require=${tell} ${more}` };
      const { stderr } = await runProcess(["replay", "--data-dir", join(scratch, "no-history")], { env });
      return /^flags: (.*)$/m.exec(stderr)?.[1];
    };
    expect(await flagsOf("")).toBe("--max-semi-space-size=16 --max-old-space-size=512");
    expect(await flagsOf("--max-old-space-size=900")).toBe("--max-semi-space-size=16");
  });

  test("leaves a given MALLOC_ARENA_MAX as it is", async () => {
    const args = ["actuator", "--cgroup-mount", join(scratch, "none"), "--state-dir", join(scratch, "allocator")];
    const child = start([...args, "--interval-seconds", "3600"], { env: { MALLOC_ARENA_MAX: "3" } });
    const end = ended(child);
    await printed(child, /cgroups? decided/);
    expect(environmentOf(child.pid).filter((word) => word.startsWith("MALLOC_ARENA_MAX="))).toEqual([
      "MALLOC_ARENA_MAX=3",
    ]);
    child.kill("SIGTERM");
    expect(await end).toMatchObject({ code: 0, signal: null });
  });

  test("without installed packages says what to install and exits with 3", async () => {
    const launcher = copyTo(join(scratch, "no-packages"));
    const ran = await runProcess(["kinds"], { launcher });
    expect(ran).toMatchObject({ code: 3, stdout: "" });
    expect(ran.stderr).toMatch(
      /^nodewise: its packages are not installed \(.*commander.*\): run `npm install` in .*no-packages\n$/,
    );
  });
});

describe.skipIf(!hasOldNode)(`the launcher on a Node that is too old${why}`, () => {
  test("hands over to the bundled Node, with arguments, input and exit codes", async () => {
    const version = await runProcess(["--version"], { node: OLD_NODE });
    expect(version).toMatchObject({ code: 0, stderr: "" });
    expect(version.stdout).toContain(
      `Node ${(await runProcess(["--version"], { node: NODE })).stdout.split("Node ")[1]}`,
    );
    const refused = await runProcess(["decide", "allocatable", "--snapshot", "-"], {
      node: OLD_NODE,
      input: '{"pods": []}',
    });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("needs_input");
  });

  test("finds the bundled Node through a symbolic link to the launcher", async () => {
    const link = join(scratch, "nodewise");
    symlinkSync(CHECKOUT, link);
    expect(await runProcess(["kinds"], { node: OLD_NODE, launcher: link, cwd: scratch })).toMatchObject({
      code: 0,
      stderr: "",
    });
  });

  test("passes a signal on to the child, and the child's end back", async () => {
    const child = start(["decide", "allocatable", "--snapshot", "-"], { node: OLD_NODE });
    const end = ended(child);
    // The launcher first asks the candidate for its version. The child that this test looks for has the test's
    // arguments and runs another Node than the launcher.
    const grandchild = await vi.waitFor(() => {
      const found = childrenOf(child.pid).find((pid) => {
        const [node, ...rest] = commandOf(pid);
        return node !== OLD_NODE && rest.includes("decide");
      });
      if (found === undefined) throw new Error("the child has not started yet");
      return found;
    }, PATIENT);
    child.kill("SIGTERM");
    expect(await end).toMatchObject({ code: null, signal: "SIGTERM", stderr: "" });
    expect(existsSync(`/proc/${grandchild}`)).toBe(false);
  });

  test("that is killed also ends its child", async () => {
    const child = start(["api", "--port", "0", "--data-dir", join(scratch, "killed")], { node: OLD_NODE });
    const url = (await printed(child, /\n/)).trim();
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    const [own] = childrenOf(child.pid);
    expect(environmentOf(Number(own))).toContain("NODEWISE_LAUNCHED=1");
    child.kill("SIGKILL");
    await expect.poll(() => existsSync(`/proc/${own}`)).toBe(false);
  });

  test("without a bundled Node says in one line what to do, and exits with 3", async () => {
    const launcher = copyTo(join(scratch, "no-node"));
    const ran = await runProcess(["up"], { node: OLD_NODE, launcher, env: { PATH: "/usr/bin:/bin" } });
    expect(ran).toMatchObject({ code: 3, stdout: "" });
    expect(ran.stderr).toMatch(
      /^nodewise: needs Node 22\.18 or newer, this is \d+\.\d+\.\d+, and no such node_modules\/\.bin\/node is at or above \S+no-node: run `npm install` there .*\n$/,
    );
  });

  test("skips a bundled Node that is too old itself, or does not run", async () => {
    const root = join(scratch, "bad-node");
    const launcher = copyTo(root);
    mkdirSync(join(root, "node_modules/.bin"), { recursive: true });
    symlinkSync(OLD_NODE, join(root, "node_modules/.bin/node"));
    expect((await runProcess(["kinds"], { node: OLD_NODE, launcher })).code).toBe(3);
    rmSync(join(root, "node_modules/.bin/node"));
    cpSync(join(root, "package.json"), join(root, "node_modules/.bin/node"));
    expect((await runProcess(["kinds"], { node: OLD_NODE, launcher })).code).toBe(3);
  });
});

function childrenOf(pid: number | undefined): readonly string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .split(" ")
    .filter((id) => id !== "");
}
const commandOf = (pid: string | undefined): readonly string[] =>
  readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
const environmentOf = (pid: number | undefined): readonly string[] =>
  readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
