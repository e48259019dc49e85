import type { TurnReport } from "../../actuator/gc/ports.ts";
import type { PassReport } from "../../actuator/loop.ts";
import { type ActuatorOptions, passOnce, startActuator } from "../../actuator/main.ts";
import { isForeign } from "../../actuator/plan/drift.ts";
import type { Problem } from "../../actuator/ports.ts";
import type { Recovery } from "../../actuator/recover.ts";
import { redacted } from "../../actuator/status/log.ts";
import { ok } from "../model/result.ts";
import { configOf } from "./actuator-settings.ts";
import { decisionLine, eventLine, type Telling, tellingOf } from "./actuator-tell.ts";
import type { Cli } from "./cli.ts";
import { EXIT, type ExitCode, fault, type Outcome } from "./exit.ts";
import { removalLine, settledLine, turnLines } from "./gc/removal-text.ts";
import type { LogGiven } from "./log-options.ts";
import { driftTable, passLine, skipLines, stepsTable } from "./pass-text.ts";
import { reloadText } from "./reload-text.ts";
import { Reloads } from "./reloads.ts";
import { stopSignal } from "./stop-signal.ts";
import type { Terminal } from "./terminal.ts";

/** Flags under commander's names, which are the settings' own. */
export interface ActuatorGiven extends LogGiven, Readonly<Record<string, unknown>> {
  readonly output: "table" | "json";
  readonly settings?: string;
  readonly once?: boolean;
  readonly dryRun?: boolean;
  readonly failOnDrift?: boolean;
  readonly removeOrphans: boolean;
}

/** One turn is too short for a pod to come up, and what it began nobody would keep. */
const NO_PODS_ONCE =
  "--once: one pass runs no pods, a daemon does: leave out --once to run them, set --pods off for a pass over the cgroups alone, or take --dry-run to see what it would write";

/** Runs passes until a signal, or one with --once and --dry-run. */
export async function actuator(given: ActuatorGiven, { terminal, env }: Cli): Promise<Outcome> {
  const isOnce = given.once === true || given.dryRun === true;
  if (given.failOnDrift === true && !isOnce)
    return fault(EXIT.badInput, "--fail-on-drift: only one pass has an exit code: add --once or --dry-run");
  const text = textTelling(given.output, isOnce, terminal);
  const { telling, flush } = tellingOf(given, text, isOnce || given.output === "json");
  // before the settings are read for the first time: whoever changes them then is heard too
  const reloads = isOnce || !isReadAgain(given) ? null : new Reloads(given, env, telling);
  if (reloads !== null) process.on("SIGHUP", () => reloads.wanted());
  try {
    const config = await configOf(given, env);
    if (!config.ok) return fault(EXIT.badInput, ...config.error);
    // with --dry-run they are off
    if (isOnce && config.value.pods === "enforce") return fault(EXIT.badInput, NO_PODS_ONCE);
    const options = { config: config.value, ...telling };
    return isOnce ? await once(options, given.failOnDrift === true) : await untilSignal(options, reloads);
  } finally {
    await flush();
  }
}

async function once(options: ActuatorOptions, failOnDrift: boolean): Promise<Outcome> {
  const turns: TurnReport[] = [];
  const onTurn = (turn: TurnReport): void => {
    options.onTurn?.(turn);
    turns.push(turn);
  };
  const report = await passOnce({ ...options, onTurn });
  if (!report.ok) return fault(EXIT.cannotRun, report.error);
  for (const problem of report.value.problems) options.onProblem(problem);
  options.onPass(report.value);
  return ok(worse(exitOf(report.value, failOnDrift), turns.map(exitOfTurn)));
}

/** A daemon of a settings file reads it again at SIGHUP; any other ends, as its terminal has gone. */
async function untilSignal(options: ActuatorOptions, reloads: Reloads | null): Promise<Outcome> {
  const stop = stopSignal(reloads === null ? undefined : ["SIGINT", "SIGTERM"]);
  const running = await startActuator(options);
  if (!running.ok) return fault(EXIT.cannotRun, running.error);
  reloads?.begin(running.value);
  await Promise.race([stop, running.value.done]);
  await running.value.stop();
  return ok(EXIT.ok);
}

/** Standard input has come to its end. */
const isReadAgain = ({ settings }: ActuatorGiven): boolean => settings !== undefined && settings !== "-";

/** For people, or as JSON on standard output: a pass, a collection, a removal, an event, a decision; else on standard error. */
function textTelling(output: "table" | "json", isOnce: boolean, terminal: Terminal): Telling {
  const isTable = output === "table";
  const json = (value: object): void => terminal.write(`${JSON.stringify(value)}\n`);
  return {
    onProblem: (problem) => terminal.warn(`nodewise: ${redacted(problemLine(problem))}`),
    onRecovery: (recovery) => terminal.warn(`nodewise: ${recoveryLine(recovery)}`),
    onSettled: (settled) => terminal.warn(`nodewise: ${settledLine(settled)}`),
    onPass: (report) => printPass(report, output, isOnce, terminal),
    onTurn: (turn) => {
      if (isTable) for (const line of turnLines(turn)) terminal.write(`${line}\n`);
      else json({ collection: turn });
    },
    onRemoval: (removal) => (isTable ? terminal.write(removalLine(removal, terminal)) : json({ removal })),
    onEvent: (event) => (isTable ? terminal.write(eventLine(event, terminal)) : json({ event })),
    onReload: (reloaded) => terminal.warn(`nodewise: ${redacted(reloadText(reloaded))}`),
    onDecision: (kind, { id, decidedBy, verdict }) => {
      if (isTable) terminal.write(decisionLine(kind, { id, decidedBy, verdict }));
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
  terminal.write(stepsTable(shown, terminal));
  if (isOnce) terminal.write(driftTable(report.drift, terminal) + skipLines(report.skipped, terminal));
  terminal.write(`${passLine(report)}\n`);
}

/** A refused decision is an answer, and so is drift where it was asked for; everything else that went wrong is a failure. */
function exitOf(report: PassReport, failOnDrift: boolean): ExitCode {
  if (report.problems.some(({ from }) => from !== "decision")) return EXIT.failed;
  if (report.problems.length > 0) return EXIT.negative;
  if (report.applied !== null && !report.applied.complete) return EXIT.failed;
  return failOnDrift && report.drift.some(isForeign) ? EXIT.negative : EXIT.ok;
}

function exitOfTurn({ problems, collections }: TurnReport): ExitCode {
  if (problems.some(({ from }) => from !== "decision")) return EXIT.failed;
  return problems.length > 0 || collections.some(({ complete }) => !complete) ? EXIT.negative : EXIT.ok;
}
/** The codes grow with what went wrong. */
const worse = (one: ExitCode, others: readonly ExitCode[]): ExitCode => Math.max(one, ...others) as ExitCode;

export const problemLine = ({ from, message }: Problem): string => `${from}: ${message}`;
/** Counts, and what was left as it is: those are for a person to look at. */
export function recoveryLine({ outcome, steps }: Recovery): string {
  const count = (status: string): number => steps.filter((s) => s.status === status).length;
  const kept = steps.filter((s) => s.status === "kept").map(({ message }) => message);
  const counts = `${count("put_back")} steps put back, ${count("untouched")} were never done, ${kept.length} left alone`;
  const shown = kept.slice(0, MOST_KEPT).map((message) => `; ${message}`);
  const more = kept.length > MOST_KEPT ? `; and ${kept.length - MOST_KEPT} more` : "";
  return `a plan was cut short (${outcome.replace("_", " ")}): ${counts}${shown.join("")}${more}`;
}
const MOST_KEPT = 5;
