import { spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ended, LAUNCHER, NODE, printed, start } from "../cli/run.ts";

export const ROOT = join(import.meta.dirname, "../..");
/** The address in the documents. */
const SHOWN = "localhost:8787";

/** A command in a document and its output below it. */
export interface Command {
  /** The line number in the document; the first line is 1. */
  readonly line: number;
  readonly text: string;
  readonly output: readonly string[];
}
/** A block with commands. */
export interface Session {
  readonly line: number;
  /** The tests that run these commands, separated by spaces; null: the commands run as written. */
  readonly runBy: string | null;
  readonly commands: readonly Command[];
}

/** The documents whose commands people type. */
export const DOCUMENTS: readonly string[] = [
  "README.md",
  ...readdirSync(join(ROOT, "docs/guide")).map((name) => `docs/guide/${name}`),
].filter((file) => file.endsWith(".md"));

const FENCE = /^\s*```(\w*)$/;
const RUN_BY = /^\s*<!-- run by (\S+(?: \S+)*) -->$/;
const PROMPT = /^\s*[$#] /;

/** Every block of a document that has a command after a prompt (`$`, or `#` for root). */
export function sessionsOf(document: string): readonly Session[] {
  const lines = readFileSync(join(ROOT, document), "utf8").split("\n");
  const sessions: Session[] = [];
  for (let at = 0; at < lines.length; at++) {
    if (!FENCE.test(lines[at] as string)) continue;
    const from = at + 1;
    for (at++; at < lines.length && !FENCE.test(lines[at] as string); at++);
    const commands = commandsIn(lines.slice(from, at), from + 1);
    const runBy = RUN_BY.exec(lines[from - 2] ?? "")?.[1] ?? null;
    if (commands.length > 0) sessions.push({ line: from, runBy, commands });
  }
  return sessions;
}

function commandsIn(lines: readonly string[], firstLine: number): readonly Command[] {
  const indent = /^\s*/.exec(lines[0] ?? "")?.[0] ?? "";
  const texts = lines.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
  const commands: { line: number; text: string; output: string[] }[] = [];
  let isContinued = false;
  for (const [i, text] of texts.entries()) {
    const last = commands.at(-1);
    if (isContinued && last !== undefined) last.text += `\n${text}`;
    else if (PROMPT.test(text)) commands.push({ line: firstLine + i, text: text.slice(2), output: [] });
    else last?.output.push(text);
    isContinued = text.endsWith("\\") && (isContinued || PROMPT.test(text));
  }
  return commands;
}

/** The line without the parts that differ between runs and machines. */
export const masked = (line: string): string =>
  line
    .trimEnd()
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME")
    .replace(/nw_\w+/g, "nw_TOKEN")
    .replace(/^token [0-9a-f]{12} /, "token ID ");

/**
 * A place to type the commands of one document: copies of the checkout's example files, with its own history and API.
 */
export class Terminal {
  readonly #home = mkdtempSync(join(tmpdir(), "nodewise-docs-"));
  #directory = this.#home;
  #api: ReturnType<typeof start> | undefined;
  #hasHistory = false;
  #address = SHOWN;

  constructor() {
    for (const path of ["test/data", "test/cli/manifests", "docs/guide/policy-tests"])
      cpSync(join(ROOT, path), join(this.#home, path), { recursive: true });
    const programs = join(this.#home, "bin");
    mkdirSync(programs);
    const run = `exec "${NODE}" "${LAUNCHER}" "$@"\n`;
    for (const [name, script] of Object.entries({ nodewise: run, npx: `shift\n${run}` })) {
      writeFileSync(join(programs, name), `#!/bin/sh\n${script}`);
      chmodSync(join(programs, name), 0o755);
    }
  }

  /** Serves the API under the address in the documents. */
  async serve(): Promise<void> {
    this.#hasHistory = true;
    this.#api = start(["api", "--port", "0"], { env: this.#environment() });
    const text = await printed(this.#api, /http:\/\/[\d.]+:\d+/);
    this.#address = String(/http:\/\/([\d.]+:\d+)/.exec(text)?.[1]);
  }
  /** Runs a command and returns the lines that it printed to stdout and stderr, in their order. */
  async type(command: string): Promise<readonly string[]> {
    const text = command.replaceAll(SHOWN, this.#address);
    const script = `exec 2>&1\n${text}\npwd > "${this.#home}/directory"`;
    const child = spawn("bash", ["-c", script], { cwd: this.#directory, env: this.#environment(), stdio: "pipe" });
    child.stdin.end();
    const { stdout } = await ended(child);
    this.#directory = readFileSync(join(this.#home, "directory"), "utf8").trim();
    const lines = stdout.replaceAll(this.#address, SHOWN).replaceAll(this.#home, "").split("\n");
    return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
  }
  async close(): Promise<void> {
    if (this.#api !== undefined) {
      const end = ended(this.#api);
      this.#api.kill("SIGTERM");
      await end;
    }
    rmSync(this.#home, { recursive: true, force: true });
  }

  #environment(): Record<string, string> {
    const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
    return {
      PATH: `${join(this.#home, "bin")}:${PATH}`,
      HOME: this.#home,
      ...(this.#hasHistory ? { NODEWISE_DATA_DIR: join(this.#home, "history") } : {}),
      NODE_COMPILE_CACHE,
      TZ: "UTC",
      LANG: "C.UTF-8",
    };
  }
}

/** Types all commands of a document, and passes on what each of them printed. */
export async function typeAll(
  document: string,
  onPrinted: (command: Command, printed: readonly string[]) => void,
): Promise<void> {
  const commands = sessionsOf(document).flatMap(({ runBy, commands }) => (runBy === null ? commands : []));
  if (commands.length === 0) return;
  const terminal = new Terminal();
  try {
    if (commands.some(({ text }) => text.includes(SHOWN) || /nodewise (?:replay|history|token)/.test(text)))
      await terminal.serve();
    for (const command of commands) onPrinted(command, await terminal.type(command.text));
  } finally {
    await terminal.close();
  }
}
