import { AsyncLocalStorage } from "node:async_hooks";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { NEWEST } from "../../api/profiles/index.ts";

const path = (relative: string): string => fileURLToPath(new URL(`../../${relative}`, import.meta.url));
const BUNDLED = path("node_modules/.bin/node");

/** The assumption that is printed for a node without a kubelet version. */
export const NO_VERSION = `no kubelet version is given: ${NEWEST.version}, the newest that is known here, answers; --kubelet takes another`;

/** Where test/cli/build-once.ts has built the package for this run. */
export const BUILT = process.env["BUILT_PACKAGE"];
/** The launcher of the checkout, which runs the sources. */
export const CHECKOUT = path("api/cli/nodewise.js");
/**
 * The launcher of the built package, if there is one: a command that runs from sources takes up to four times the CPU
 * time.
 */
export const LAUNCHER = BUILT === undefined ? CHECKOUT : join(BUILT, "api/cli/nodewise.js");
/** The Node that the launcher needs; on a machine with a newer Node, the Node that runs the tests. */
export const NODE = existsSync(BUNDLED) ? BUNDLED : process.execPath;
export const manifest = (file: string): string => path(`test/cli/manifests/${file}`);

/** Puts the launcher into a folder under the name by which kubectl finds it as a plugin. */
export function pluginIn(folder: string): string {
  const launcher = join(folder, "kubectl-nodewise");
  if (!existsSync(launcher)) symlinkSync(LAUNCHER, launcher);
  return launcher;
}

export interface RunOptions {
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly node?: string;
  /** Flags of Node itself. */
  readonly flags?: readonly string[];
  readonly launcher?: string;
  readonly cwd?: string;
}
export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Only PATH, HOME and Node's compile cache of the test's own environment, plus `more`. */
export function environment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, ...more };
}

/** Starts the command line as a person does: through the launcher. */
export function start(
  args: readonly string[],
  { env = {}, node = NODE, flags = [], launcher = LAUNCHER, cwd }: RunOptions = {},
) {
  return spawn(node, [...flags, launcher, ...args], { env: environment(env), cwd, stdio: "pipe" });
}

/**
 * Runs the command line to its end: in this process, which has already loaded the code, unless an option or the command
 * needs its own process.
 */
export function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { env = {}, input, ...ofProcess } = options;
  const isHere = Object.keys(ofProcess).length === 0 && !needsProcess(args);
  if (!isHere) return runProcess(args, options);
  const streams = {
    stdin: Readable.from([Buffer.from(input ?? "")]),
    stdout: new Collected(),
    stderr: new Collected(),
  };
  return piped.run(streams, () => runHere(args, env, input !== undefined, streams));
}
/** These commands run until a signal. */
const NEEDS_PROCESS = new Set(["up", "api", "collect", "actuator", "takeover"]);
/** Whether a command needs its own process: `exec` and `logs` do with a terminal, and `logs` with --follow. */
const needsProcess = ([command = "", ...args]: readonly string[]): boolean =>
  NEEDS_PROCESS.has(command) || (["exec", "logs"].includes(command) && args.some((arg) => /^-[itf]+$/.test(arg)));

class Collected extends Writable {
  readonly #chunks: Buffer[] = [];
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
  text = (): string => Buffer.concat(this.#chunks).toString();
}
interface Streams {
  readonly stdin: Readable;
  readonly stdout: Collected;
  readonly stderr: Collected;
}
/** The standard streams of a command that runs in this process. */
const piped = new AsyncLocalStorage<Streams>();
for (const name of ["stdin", "stdout", "stderr"] as const) {
  const own = process[name];
  Object.defineProperty(process, name, { configurable: true, get: () => piped.getStore()?.[name] ?? own });
}

async function runHere(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  isPiped: boolean,
  { stdout, stderr }: Streams,
): Promise<Ran> {
  const { main } = await import("../../api/cli/main.ts");
  const { terminalOn } = await import("../../api/cli/terminal.ts");
  const { PATH = "", HOME = "" } = process.env;
  const whole = { PATH, HOME, ...env };
  let code = 0;
  const listening = SIGNALS.map((signal) => process.listeners(signal));
  const own = process.env;
  // commander reads options from the environment before it starts the command
  process.env = whole;
  const ended = main(args, {
    terminal: terminalOn(stdout, stderr, whole),
    isPlugin: false,
    env: whole,
    isPiped: () => isPiped,
    exitWith: (is) => {
      code = is;
    },
  });
  process.env = own;
  await ended;
  // the command is over; in its own process its signal handlers would be gone too
  for (const [i, signal] of SIGNALS.entries())
    for (const listener of process.listeners(signal))
      if (!listening[i]?.includes(listener)) process.off(signal, listener);
  return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
}
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs the command as `start` does, to its end. */
export function runProcess(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = start(args, options);
  // A command may exit without reading its input.
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

/** The child's output once it matches; throws if the child exits before that. */
export function printed(
  child: Pick<ReturnType<typeof start>, "stdout" | "stderr" | "on">,
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
