import { existsSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { answerText, MAX_ANSWER_BYTES } from "../../../actuator/client/api-access.ts";
import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import { decodeStatus } from "../../../actuator/status/node-status.ts";
import { type Refused, refusalFile, statusFile } from "../../../actuator/status/status-file.ts";
import { ok, type Result } from "../../base/result.ts";
import { printable } from "../../text/style.ts";
import { durationText } from "../../text/time-text.ts";
import { stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import {
  EXIT,
  type Fault,
  type Form,
  fault,
  type Outcome,
  printData,
  printText,
  stopSignal,
  type Terminal,
} from "../terminal.ts";

/** Where a status is read from. */
export interface SourceFlags {
  readonly statusUrl: string;
  readonly stateDir?: string;
}
export interface StatusRead {
  readonly status: NodeStatus;
  /** The file that it was read from; null if the daemon returned it now. */
  readonly file: string | null;
}
/** Errors: no response, or one that is no status; with what to do next. */
type ReadStatus = () => Promise<Result<StatusRead, Fault>>;

const TIMEOUT_MS = 10_000;

/** How a status is read: from a state directory if one is named, else from the running daemon. Errors: an invalid address. */
export function statusSource(
  { statusUrl, stateDir }: SourceFlags,
  { env }: Pick<Cli, "env">,
): Result<ReadStatus, Fault> {
  if (stateDir !== undefined) return ok(() => readFile(stateDir));
  const url = URL.parse(statusUrl);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "")
    return fault(EXIT.badInput, `--status-url: \`${statusUrl}\` is not an address such as http://127.0.0.1:10260`);
  return ok(() => ask(url, env));
}

async function ask(base: URL, env: Cli["env"]): Promise<Result<StatusRead, Fault>> {
  const url = new URL("v1/status", base.href.endsWith("/") ? base : `${base.href}/`);
  try {
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await answerText(response);
    if (text === null)
      return fault(EXIT.failed, `${url.href} answered with more than a status: is this a nodewise daemon?`);
    if (!response.ok) return fault(EXIT.failed, `${url.href} answered ${response.status}${detailIn(text)}`);
    const status = decodeStatus(text);
    if (status.ok) return ok({ status: status.value, file: null });
    return fault(EXIT.failed, `${url.href}: ${status.error}: is this a nodewise daemon, of this version?`);
  } catch (error) {
    const { cause, message, name } = error as {
      cause?: { code?: string; message?: string };
      message: string;
      name: string;
    };
    const why = name === "TimeoutError" ? `in ${TIMEOUT_MS / 1000} s` : (cause?.code ?? cause?.message ?? message);
    return fault(EXIT.failed, `${base.origin} does not answer (${why}): ${await adviceWhenAway(env)}`);
  }
}

async function adviceWhenAway(env: Cli["env"]): Promise<string> {
  const start =
    "is `nodewise actuator` running there, with pods to run or statusListen set? Name that address with --status-url";
  const usual = stateDirectory({}, env);
  const file = existsSync(statusFile(usual)) ? usual : "DIR";
  const refused = await refusedIn(usual);
  const why = refused === null ? "" : `. ${refusedText(refused)}`;
  return `${start}, or see what it last wrote with --state-dir ${file}${why}`;
}

const refusedText = ({ at, message }: Refused): string =>
  `the last start of the daemon, at ${at}, was refused: ${message}`;

/** Why the last start failed; null if it did not, that is unknown, or a status was written since. */
async function refusedIn(stateDir: string): Promise<Refused | null> {
  try {
    const { at, message } = JSON.parse((await textOf(refusalFile(stateDir))) ?? "null") as Partial<Refused>;
    const isOne = typeof at === "string" && !Number.isNaN(Date.parse(at)) && typeof message === "string";
    if (!isOne) return null;
    const written = statSync(statusFile(stateDir), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    return written > Date.parse(at) ? null : { at, message };
  } catch {
    return null;
  }
}

/** ` wrong_host: …` from a problem; empty for anything else. */
function detailIn(text: string): string {
  try {
    const { code, detail } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return typeof code === "string" ? ` ${code}: ${String(detail)}` : ": is this a nodewise daemon?";
  } catch {
    return ": is this a nodewise daemon?";
  }
}

async function readFile(stateDir: string): Promise<Result<StatusRead, Fault>> {
  const file = statusFile(stateDir);
  const refused = await refusedIn(stateDir);
  try {
    const text = await textOf(file);
    if (text === null) return fault(EXIT.failed, `${file} is larger than any status`);
    const status = decodeStatus(text);
    if (!status.ok) return fault(EXIT.failed, `${file}: ${status.error}`);
    const problems = [...(refused === null ? [] : [refusedText(refused)]), ...status.value.problems];
    return ok({ status: { ...status.value, problems }, file });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice =
      code === "ENOENT" ? "no daemon wrote there: --state-dir is the daemon's own" : "is it another user's daemon?";
    const why = refused === null ? [] : [refusedText(refused)];
    return fault(EXIT.failed, `${file}: ${code ?? message}: ${advice}`, ...why);
  }
}

/** A file's text; null if it is too long. Throws the system's error. */
async function textOf(file: string): Promise<string | null> {
  const handle = await open(file, "r");
  try {
    const { size } = await handle.stat();
    return size > MAX_ANSWER_BYTES ? null : await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

/** One line on the node and its daemon, with the age if it comes from a file, and the current problems. */
export function headText({ status, file }: StatusRead, { paint }: Terminal): string {
  const { nodeName, mode, runsPods, runtime, pass, problems, otherKubelet, at } = status;
  const parts = [
    nodeName,
    mode === "observe" ? "observe: nothing is started or written" : mode,
    runsPods === false
      ? "runs no pods"
      : runtime === null
        ? "no runtime answers"
        : `${runtime.name} ${runtime.version}`,
    ...(pass === null ? ["no pass yet"] : passTexts(pass, at)),
  ];
  const old = file === null ? "" : paint("yellow", `${printable(oldText(status.at, status.pid, file))}\n`);
  const notReady = (runtime?.notReady ?? []).map((fault) => paint("yellow", `! ${printable(fault)}\n`));
  // nothing works before it is settled which kubelet or daemon uses the runtime
  const isFirst = (problem: string): boolean => otherKubelet !== undefined && problem.endsWith(otherKubelet.message);
  const lines = (some: readonly string[]) => some.map((problem) => paint("red", `! ${printable(problem)}\n`));
  const rest = problems.filter((problem) => !isFirst(problem));
  const wrong = [...lines(problems.filter(isFirst)), ...notReady, ...lines(rest)].join("");
  return `${old}${printable(parts.join(" · "))}\n${wrong}\n`;
}

/** A pass that did not look at the cgroups has no counts for them: those of the last one that did are shown. */
function passTexts(pass: NonNullable<NodeStatus["pass"]>, at: string): readonly string[] {
  const { cgroupsAt = pass.at, decidedBy } = pass;
  const turn = `pass ${pass.sequence}${agoText(pass.at, at)}: ${Math.round(pass.tookMs)} ms`;
  const drift = pass.compared === false ? "nothing compared" : `${pass.drift} drifted`;
  const counts =
    decidedBy === null
      ? "nothing decided, nothing compared"
      : `${pass.wrote} written, ${drift}, decided ${decidedBy === "api" ? "by the API" : "here"}`;
  const isOfThis = Math.abs(Date.parse(pass.at) - Date.parse(cgroupsAt)) < Math.max(1000, pass.tookMs + 1000);
  return isOfThis ? [`${turn}, ${counts}`] : [turn, `cgroups${agoText(cgroupsAt, at) || " now"}: ${counts}`];
}

function agoText(then: string, now: string): string {
  const age = Date.parse(now) - Date.parse(then);
  return age < 1000 ? "" : ` ${durationText(age)} ago`;
}

/** The age of a file's status; after a clock change it may be in the future. */
function oldText(at: string, pid: number, file: string): string {
  const age = Date.now() - Date.parse(at);
  const ageText = age < 0 ? `${durationText(-age)} in the future` : `${durationText(age)} old`;
  return `as process ${pid} last wrote it, ${ageText}: ${file}`;
}

/** The state directory of a daemon: the named one, or else the actuator's default. */
export const stateDirectory = ({ stateDir }: { readonly stateDir?: string }, env: Cli["env"]): string =>
  stateDir ?? join(stateHome(env), "actuator");

/** Prints a history from a daemon's state directory, or that there is none. */
export function printHistory<Entry>(
  read: Result<readonly Entry[], string>,
  how: {
    readonly of: string;
    readonly stateDir: string;
    readonly output: Form;
    readonly draw: (entries: readonly Entry[], terminal: Terminal) => string;
  },
  terminal: Terminal,
): Outcome {
  if (!read.ok) return fault(EXIT.failed, `${read.error}: is it another user's daemon?`);
  const { of, stateDir, output, draw } = how;
  const entries = read.value;
  if (output !== "table") printData(terminal, { stateDir, entries }, output);
  else if (entries.length === 0)
    printText(terminal, terminal.paint("dim", `nothing of ${of} is recorded in ${stateDir}\n`));
  else printText(terminal, draw(entries, terminal));
  return ok(EXIT.ok);
}

type Draw = (seen: StatusRead, terminal: Terminal) => Result<null, Fault>;
interface WatchOptions {
  /** Seconds; absent for once. */
  readonly watch?: number;
  readonly output: Form;
}

/**
 * Reads and draws once, or repeatedly until a signal. A first failure ends the command; a later one is shown instead of the
 * picture, and reading is retried.
 */
export async function showWatched(
  read: ReadStatus,
  { watch, output }: WatchOptions,
  cli: Cli,
  draw: Draw,
): Promise<Outcome> {
  const { terminal } = cli;
  const seen = await read();
  if (!seen.ok) return seen;
  if (watch === undefined) {
    const drawn = draw(seen.value, terminal);
    return drawn.ok ? ok(EXIT.ok) : drawn;
  }
  const stopping = new AbortController();
  void stopSignal().then(() => stopping.abort());
  for (
    let now: Result<StatusRead, Fault> = seen, isFirst = true;
    !stopping.signal.aborted;
    now = await read(), isFirst = false
  ) {
    const screen = new WatchScreen(terminal, output, isFirst);
    const drawn = now.ok ? draw(now.value, screen) : now;
    if (!drawn.ok && isFirst) return drawn;
    screen.show(drawn.ok ? [] : drawn.error.lines);
    await sleep(watch * 1000, undefined, { signal: stopping.signal }).catch(() => {});
  }
  return ok(EXIT.ok);
}

/** On a terminal each picture replaces the last, and is cut to its height; elsewhere they follow each other. */
class WatchScreen implements Terminal {
  readonly columns: number;
  readonly paint: Terminal["paint"];
  readonly #terminal: Terminal;
  readonly #output: Form;
  readonly #isFirst: boolean;
  #text = "";

  constructor(terminal: Terminal, output: Form, isFirst: boolean) {
    this.columns = terminal.columns;
    this.paint = terminal.paint;
    this.#terminal = terminal;
    this.#output = output;
    this.#isFirst = isFirst;
  }
  write(text: string): void {
    this.#text += text;
  }
  warn(line: string): void {
    this.#terminal.warn(line);
  }
  show(faults: readonly string[]): void {
    if (this.#output !== "table" || !process.stdout.isTTY) {
      for (const line of faults) this.warn(`nodewise: ${line}`);
      const between = this.#isFirst || this.#text === "" ? "" : BETWEEN[this.#output];
      this.#terminal.write(between + this.#text);
      return;
    }
    const text = this.#text + faults.map((line) => this.paint("red", `${printable(line)}\n`)).join("");
    this.#terminal.write(screenOf(text, process.stdout.rows));
  }
}
/** The separator of documents; JSON needs none. */
const BETWEEN: Readonly<Record<Form, string>> = { table: "\n", json: "", yaml: "---\n" };

/** The text drawn from the upper left corner: each line clears its rest, and the rest of the screen is cleared. */
export function screenOf(text: string, rows: number): string {
  const lines = text.trimEnd().split("\n");
  const room = Math.max(2, rows - 1);
  const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
  return `\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`;
}
