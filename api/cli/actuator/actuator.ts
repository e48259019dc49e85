import type { Recovery } from "../../../actuator/apply/journal.ts";
import type { Reloaded, SettingChange } from "../../../actuator/core/config.ts";
import { redacted } from "../../../actuator/core/error-text.ts";
import type { DecisionAnswer, Problem } from "../../../actuator/core/interfaces.ts";
import { settingWarnings } from "../../../actuator/core/setting-faults.ts";
import type { ActuatorOptions } from "../../../actuator/daemon/client-of.ts";
import type { GcReport } from "../../../actuator/gc/dependencies.ts";
import type { PodEvent } from "../../../actuator/lifecycle/record.ts";
import { type Actuator, passOnce, startActuator } from "../../../actuator/main.ts";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import { isForeign } from "../../../actuator/plan/drift.ts";
import { type DaemonLog, isWanted, jsonLog, type LogEntry, type LogLevel } from "../../../actuator/status/log.ts";
import {
  decisionEntry,
  eventEntry,
  gcEntries,
  passEntry,
  problemEntry,
  recoveryEntry,
  reloadEntry,
  removalEntry,
  settledEntry,
} from "../../../actuator/status/log-entries.ts";
import { persistRefusal } from "../../../actuator/status/status-file.ts";
import { ok } from "../../base/result.ts";
import type { Kind } from "../../model/decision.ts";
import { printable } from "../../text/style.ts";
import type { Cli, LogFlags } from "../cli.ts";
import { gcLines, removalLine, settledLine } from "../gc/pass.ts";
import { EXIT, type ExitCode, fault, type Outcome, printText, stopSignal, type Terminal } from "../terminal.ts";
import { driftTable, passLine, skipLines, stepsTable } from "./pass-text.ts";
import { type ActuatorFlags, configOf } from "./settings.ts";

interface ReloadEvents {
  readonly onReload: (reloaded: Reloaded) => void;
  readonly onProblem: (problem: Problem) => void;
}

type ReloadTarget = Pick<Actuator, "reload" | "refuseReload">;

/**
 * Reads a daemon's settings again on request, one time after the other. Invalid settings change nothing; they are reported, and
 * appear in the daemon's status.
 */
class Reloads {
  readonly #given: ActuatorFlags;
  readonly #env: Cli["env"];
  readonly #events: ReloadEvents;
  #actuator: ReloadTarget | null = null;
  #isRequested = false;
  #last: Promise<void> = Promise.resolve();

  constructor(given: ActuatorFlags, env: Cli["env"], events: ReloadEvents) {
    this.#given = given;
    this.#env = env;
    this.#events = events;
  }

  /** Runs the reload that was requested while the daemon started. */
  begin(actuator: ReloadTarget): void {
    this.#actuator = actuator;
    if (this.#isRequested) this.request();
  }

  request(): void {
    this.#isRequested = true;
    const actuator = this.#actuator;
    if (actuator !== null) this.#last = this.#last.then(() => this.#reload(actuator));
  }

  async #reload(actuator: ReloadTarget): Promise<void> {
    const config = await configOf(this.#given, this.#env);
    if (config.ok) return this.#events.onReload(actuator.reload(config.value));
    const faults = config.error.map(
      (fault): Problem => ({ from: "settings", message: `${fault}; the old settings stay` }),
    );
    actuator.refuseReload(faults);
    for (const fault of faults) this.#events.onProblem(fault);
  }
}

/** One pass is too short for a pod to start, and nothing would look after it afterwards. */
const NO_PODS_ONCE =
  "--once: one pass runs no pods, a daemon does: leave out --once to run them, set --pods off for a pass over the cgroups alone, or take --dry-run to see what it would write";

/** Runs passes until a signal, or one with --once and --dry-run. */
export async function actuator(given: ActuatorFlags, { terminal, env }: Cli): Promise<Outcome> {
  const isOnce = given.once === true || given.dryRun === true;
  if (given.failOnDrift === true && !isOnce)
    return fault(EXIT.badInput, "--fail-on-drift: only one pass has an exit code: add --once or --dry-run");
  const text = textReports(given.output, isOnce, terminal);
  const { callbacks, flush } = callbacksOf(given, text, isOnce || given.output === "json");
  // before the settings are first read, so that a change from then on is noticed
  const reloads = isOnce || !isReadAgain(given) ? null : new Reloads(given, env, callbacks);
  if (reloads !== null) process.on("SIGHUP", () => reloads.request());
  try {
    const config = await configOf(given, env);
    if (!config.ok) return fault(EXIT.badInput, ...config.error);
    // with --dry-run, pods are off
    if (isOnce && config.value.pods === "enforce") return fault(EXIT.badInput, NO_PODS_ONCE);
    for (const warning of settingWarnings(config.value)) callbacks.onProblem(warning);
    const options = { config: config.value, ...callbacks };
    return isOnce ? await once(options, given.failOnDrift === true) : await untilSignal(options, reloads);
  } finally {
    await flush();
  }
}

async function once(options: ActuatorOptions, failOnDrift: boolean): Promise<Outcome> {
  const reports: GcReport[] = [];
  const onGcReport = (report: GcReport): void => {
    options.onGcReport?.(report);
    reports.push(report);
  };
  const report = await passOnce({ ...options, onGcReport });
  if (!report.ok) return fault(EXIT.cannotRun, report.error);
  for (const problem of report.value.problems) options.onProblem(problem);
  options.onPass(report.value);
  return ok(worse(exitOf(report.value, failOnDrift), reports.map(exitOfGc)));
}

/** A daemon with a settings file reads it again at SIGHUP; without one it ends, as its terminal is gone. */
async function untilSignal(options: ActuatorOptions, reloads: Reloads | null): Promise<Outcome> {
  const stop = stopSignal(reloads === null ? undefined : ["SIGINT", "SIGTERM"]);
  const running = await startActuator(options);
  await persistRefusal(options.config.stateDir, running.ok ? null : redacted(running.error));
  if (!running.ok) return fault(EXIT.cannotRun, running.error);
  reloads?.begin(running.value);
  await Promise.race([stop, running.value.done]);
  await running.value.stop();
  return ok(EXIT.ok);
}

/** Whether the settings can be read again: standard input cannot. */
const isReadAgain = ({ settings }: ActuatorFlags): boolean => settings !== undefined && settings !== "-";

/**
 * For people, or as JSON on standard output: a pass, a collection, a removal, an event, a decision; everything else goes to
 * standard error.
 */
function textReports(output: "table" | "json", isOnce: boolean, terminal: Terminal): ReportCallbacks {
  const isTable = output === "table";
  const json = (value: object): void => terminal.write(`${JSON.stringify(value)}\n`);
  return {
    onProblem: (problem) => terminal.warn(`nodewise: ${redacted(problemLine(problem))}`),
    onRecovery: (recovery) => terminal.warn(`nodewise: ${recoveryLine(recovery)}`),
    onSettled: (settled) => terminal.warn(`nodewise: ${settledLine(settled)}`),
    onPass: (report) => printPass(report, output, isOnce, terminal),
    onGcReport: (report) => {
      if (isTable) for (const line of gcLines(report)) printText(terminal, `${line}\n`);
      else json({ collection: report });
    },
    onRemoval: (removal) => (isTable ? printText(terminal, removalLine(removal, terminal)) : json({ removal })),
    onEvent: (event) => (isTable ? printText(terminal, eventLine(event, terminal)) : json({ event })),
    onReload: (reloaded) => terminal.warn(`nodewise: ${redacted(reloadText(reloaded))}`),
    onDecision: (kind, { id, decidedBy, verdict }) => {
      if (isTable) printText(terminal, decisionLine(kind, { id, decidedBy, verdict }));
      else json({ decision: { kind, id, decidedBy, verdict } });
    },
  };
}

function printPass(report: PassReport, output: "table" | "json", isOnce: boolean, terminal: Terminal): void {
  if (output === "json") {
    terminal.write(`${JSON.stringify(report)}\n`);
    return;
  }
  const results = report.applied?.results ?? [];
  const shown = isOnce ? results : results.filter(({ status }) => status !== "planned" && status !== "unchanged");
  printText(terminal, stepsTable(shown, terminal));
  if (isOnce) printText(terminal, driftTable(report.drift, terminal) + skipLines(report.skipped, terminal));
  printText(terminal, `${passLine(report)}\n`);
}

/** A refused decision is an answer, and so is drift if it was asked for; any other problem is a failure. */
function exitOf(report: PassReport, failOnDrift: boolean): ExitCode {
  if (report.problems.some(({ from }) => from !== "decision")) return EXIT.failed;
  if (report.problems.length > 0) return EXIT.negative;
  if (report.applied !== null && !report.applied.complete) return EXIT.failed;
  return failOnDrift && report.drift.some(isForeign) ? EXIT.negative : EXIT.ok;
}

function exitOfGc({ problems, collections }: GcReport): ExitCode {
  if (problems.some(({ from }) => from !== "decision")) return EXIT.failed;
  return problems.length > 0 || collections.some(({ complete }) => !complete) ? EXIT.negative : EXIT.ok;
}
/** Higher codes are worse. */
const worse = (one: ExitCode, others: readonly ExitCode[]): ExitCode => Math.max(one, ...others) as ExitCode;

export const problemLine = ({ from, message }: Problem): string => `${from}: ${message}`;
/** Counts, and what was left unchanged, which a person should look at. */
export function recoveryLine({ outcome, steps }: Recovery): string {
  const count = (status: string): number => steps.filter((s) => s.status === status).length;
  const kept = steps.filter((s) => s.status === "kept").map(({ message }) => message);
  const counts = `${count("put_back")} steps put back, ${count("untouched")} were never done, ${kept.length} left unchanged`;
  const shown = kept.slice(0, MAX_KEPT).map((message) => `; ${message}`);
  const more = kept.length > MAX_KEPT ? `; and ${kept.length - MAX_KEPT} more` : "";
  return `a plan was interrupted (${outcome.replace("_", " ")}): ${counts}${shown.join("")}${more}`;
}
const MAX_KEPT = 5;

/** `settings read again: syncSeconds 1 -> 2; waits for a restart: cgroupRoot /nodewise -> /n`, in one line. */
function reloadText({ taken, left }: Reloaded): string {
  const parts = [
    ...(taken.length === 0 ? [] : [`settings read again: ${changes(taken)}`]),
    ...(left.length === 0 ? [] : [`takes effect after a restart: ${changes(left)}`]),
  ];
  return parts.length === 0 ? "settings read again: nothing is different" : parts.join("; ");
}

const changes = (list: readonly SettingChange[]): string =>
  list.map(({ setting, from, to }) => `${setting} ${shown(from)} -> ${shown(to)}`).join(", ");

function shown(value: unknown): string {
  if (value === undefined) return "unset";
  // a Go duration
  if (typeof value === "object" && value !== null && "millis" in value) return `${Number(value.millis) / 1000}s`;
  return String(value);
}

/** The callbacks through which a daemon reports while it works. */
export interface ReportCallbacks
  extends Required<
    Pick<
      ActuatorOptions,
      "onPass" | "onProblem" | "onRecovery" | "onGcReport" | "onRemoval" | "onSettled" | "onEvent" | "onDecision"
    >
  > {
  readonly onReload: (reloaded: Reloaded) => void;
}
/**
 * The daemon's callbacks, which write the log in the requested form. If passes are the output (`--once`, `-o json`), their text
 * also goes to standard output, at every level. `flush` is for the end.
 */
export function callbacksOf(
  { logFormat, logLevel }: LogFlags,
  text: ReportCallbacks,
  isAnswer: boolean,
): { readonly callbacks: ReportCallbacks; readonly flush: () => Promise<void> } {
  const { onPass, onGcReport, onRemoval } = text;
  const answers = isAnswer ? { onPass, onGcReport, onRemoval } : {};
  if (logFormat === "text") return { callbacks: { ...leveled(text, logLevel), ...answers }, flush: async () => {} };
  const log = jsonLog(logLevel);
  const lines = jsonReports(log);
  if (!isAnswer) return { callbacks: lines, flush: log.flush };
  const both =
    <T>(...reports: readonly ((report: T) => void)[]) =>
    (report: T): void => {
      for (const one of reports) one(report);
    };
  const callbacks: ReportCallbacks = {
    ...lines,
    onPass: both(lines.onPass, onPass),
    onGcReport: both(lines.onGcReport, onGcReport),
    onRemoval: both(lines.onRemoval, onRemoval),
  };
  return { callbacks, flush: log.flush };
}

/** One line of JSON each, in the log only. */
const jsonReports = (log: DaemonLog): ReportCallbacks => ({
  onPass: (report) => log.write(passEntry(report)),
  onProblem: (problem) => log.write(problemEntry(problem)),
  onRecovery: (recovery) => log.write(recoveryEntry(recovery)),
  onGcReport: (report) => gcEntries(report).forEach(log.write),
  onRemoval: (removal) => log.write(removalEntry(removal)),
  onSettled: (settled) => log.write(settledEntry(settled)),
  onEvent: (event) => log.write(eventEntry(event)),
  onReload: (reloaded) => log.write(reloadEntry(reloaded)),
  onDecision: (kind, answer) => log.write(decisionEntry(kind, answer)),
});

/** For people, filtered by level. A pass and a collection are logged at `info` whatever they did, so that decisions need not be. */
function leveled(callbacks: ReportCallbacks, wanted: LogLevel): ReportCallbacks {
  const at =
    <A extends readonly unknown[]>(report: (...args: A) => void, level: (...args: A) => LogEntry["level"]) =>
    (...args: A): void => {
      if (isWanted(level(...args), wanted)) report(...args);
    };
  return {
    onPass: at(callbacks.onPass, () => "info"),
    onGcReport: at(callbacks.onGcReport, () => "info"),
    onProblem: at(callbacks.onProblem, (problem) => problemEntry(problem).level),
    onRecovery: at(callbacks.onRecovery, (recovery) => recoveryEntry(recovery).level),
    onRemoval: at(callbacks.onRemoval, (removal) => removalEntry(removal).level),
    onSettled: at(callbacks.onSettled, (settled) => settledEntry(settled).level),
    onEvent: at(callbacks.onEvent, (event) => eventEntry(event).level),
    onReload: at(callbacks.onReload, (reloaded) => reloadEntry(reloaded).level),
    onDecision: at(callbacks.onDecision, () => "debug"),
  };
}

/** `2026-… Warning BackOff shop/web-0 app: Back-off restarting failed container`, and a newline. */
export function eventLine({ at, type, reason, message, pod, container }: PodEvent, { paint }: Terminal): string {
  const where = `${pod.namespace}/${pod.name}${container === null ? "" : ` ${container}`}`;
  const typeText = type === "Warning" ? paint("yellow", type) : type;
  return `${at} ${typeText} ${printable(`${reason} ${where}: ${redacted(message)}`)}\n`;
}

/** `admission: refuses (by the API: d-1)`, and a newline. */
export function decisionLine(
  kind: Kind,
  { verdict, decidedBy, id }: Pick<DecisionAnswer, "verdict" | "decidedBy" | "id">,
): string {
  const by = decidedBy === "here" ? "here" : `by the API${id === null ? "" : `: ${printable(id)}`}`;
  return `${kind}: ${verdict} (${by})\n`;
}
