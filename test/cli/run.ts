import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const path = (relative: string): string => fileURLToPath(new URL(`../../${relative}`, import.meta.url));
const BUNDLED = path("node_modules/.bin/node");

export const LAUNCHER = path("api/cli/nodewise.js");
/** The Node that the launcher needs; whoever has a newer one runs the tests with it. */
export const NODE = existsSync(BUNDLED) ? BUNDLED : process.execPath;
export const realNode = (file: string): string => path(`test/data/real-node/${file}`);
export const manifest = (file: string): string => path(`test/cli/manifests/${file}`);

/** The launcher in a folder under the name by which kubectl finds it as a plugin. */
export function pluginIn(folder: string): string {
  const launcher = join(folder, "kubectl-nodewise");
  if (!existsSync(launcher)) symlinkSync(LAUNCHER, launcher);
  return launcher;
}

export interface RunOptions {
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly node?: string;
  readonly launcher?: string;
  readonly cwd?: string;
}
export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Starts the command line as a person does: through the launcher, with nothing of the test's own environment but PATH, HOME
 * and where Node keeps what it compiled.
 */
export function start(args: readonly string[], { env = {}, node = NODE, launcher = LAUNCHER, cwd }: RunOptions = {}) {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  return spawn(node, [launcher, ...args], { env: { PATH, HOME, NODE_COMPILE_CACHE, ...env }, cwd, stdio: "pipe" });
}

/** Runs it to its end. */
export function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = start(args, options);
  // It may rightly end without having read its input.
  child.stdin.on("error", () => {});
  child.stdin.end(options.input ?? "");
  return ended(child);
}

export async function ended(child: ChildProcess): Promise<Ran> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (...end) => resolve(end));
  });
  return { code, signal, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

/** The child's output once it matches; fails when the child ends before. */
export function printed(
  child: ReturnType<typeof start>,
  pattern: RegExp,
  stream: "stdout" | "stderr" = "stdout",
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child[stream].on("data", (chunk: Buffer) => {
      text += chunk;
      if (pattern.test(text)) resolve(text);
    });
    child.on("close", (code) => reject(new Error(`ended with ${code} after printing: ${text}`)));
  });
}
