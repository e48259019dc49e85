import { join, resolve } from "node:path";
import { type ActuatorConfig, actuatorConfig } from "../../actuator/config.ts";
import type { RemovalReport, TurnReport } from "../../actuator/gc/ports.ts";
import type { Settled } from "../../actuator/gc/settle.ts";
import type { PassReport } from "../../actuator/loop.ts";
import { type ActuatorOptions, passOnce, startActuator } from "../../actuator/main.ts";
import { isForeign } from "../../actuator/plan/drift.ts";
import type { Problem } from "../../actuator/ports.ts";
import type { Recovery } from "../../actuator/recover.ts";
import { ok, type Result } from "../model/result.ts";
import type { Cli } from "./cli.ts";
import { stateHome } from "./directories.ts";
import { EXIT, type ExitCode, type Fault, fault, type Outcome } from "./exit.ts";
import { removalLine, settledLine, turnLines } from "./gc/removal-text.ts";
import { readDocument } from "./inputs/read.ts";
import { driftTable, passLine, skipLines, stepsTable } from "./pass-text.ts";
import { stopSignal } from "./stop-signal.ts";
import type { Terminal } from "./terminal.ts";

/** Flags under commander's names, which are the settings' own. */
export interface ActuatorGiven extends Readonly<Record<string, unknown>> {
  readonly output: "table" | "json";
  readonly settings?: string;
  readonly once?: boolean;
  readonly dryRun?: boolean;
  readonly failOnDrift?: boolean;
  readonly removeOrphans: boolean;
}

/** Runs passes until a signal, or one with --once and --dry-run. */
export async function actuator(given: ActuatorGiven, { terminal, env }: Cli): Promise<Outcome> {
  const isOnce = given.once === true || given.dryRun === true;
  if (given.failOnDrift === true && !isOnce)
    return fault(EXIT.badInput, "--fail-on-drift: only one pass has an exit code: add --once or --dry-run");
  const config = await configOf(given, env);
  if (!config.ok) return config;
  const onProblem = (problem: Problem) => terminal.warn(`nodewise: ${problemLine(problem)}`);
  const onRecovery = (recovery: Recovery) => terminal.warn(`nodewise: ${recoveryLine(recovery)}`);
  const onPass = (report: PassReport) => printPass(report, given.output, isOnce, terminal);
  const options = { config: config.value, onPass, onProblem, onRecovery };
  if (isOnce) {
    const turns: TurnReport[] = [];
    const events = collectionEvents(given.output, onProblem, terminal, (turn) => turns.push(turn));
    const report = await passOnce({ ...options, ...events });
    if (!report.ok) return fault(EXIT.cannotRun, report.error);
    for (const problem of [...report.value.problems, ...report.value.notices]) onProblem(problem);
    onPass(report.value);
    return ok(worse(exitOf(report.value, given.failOnDrift === true), turns.map(exitOfTurn)));
  }
  const running = await startActuator({ ...options, ...collectionEvents(given.output, onProblem, terminal) });
  if (!running.ok) return fault(EXIT.cannotRun, running.error);
  await Promise.race([stopSignal(), running.value.done]);
  await running.value.stop();
  return ok(EXIT.ok);
}

/** What collections tell, as it happens: a line a removal, and one a collection. */
function collectionEvents(
  output: "table" | "json",
  onProblem: ActuatorOptions["onProblem"],
  terminal: Terminal,
  alsoOnTurn?: (turn: TurnReport) => void,
): Required<Pick<ActuatorOptions, "onTurn" | "onRemoval" | "onSettled">> {
  const isTable = output === "table";
  const json = (value: object): void => terminal.write(`${JSON.stringify(value)}\n`);
  let told: readonly string[] = [];
  return {
    onTurn: (turn) => {
      for (const problem of turn.problems) onProblem(problem);
      // a notice stays true from turn to turn, and is told when it is new
      for (const notice of turn.notices) if (!told.includes(notice.message)) onProblem(notice);
      told = turn.notices.map(({ message }) => message);
      if (isTable) for (const line of turnLines(turn)) terminal.write(`${line}\n`);
      else json({ collection: turn });
      alsoOnTurn?.(turn);
    },
    onRemoval: (removal: RemovalReport) =>
      isTable ? terminal.write(removalLine(removal, terminal)) : json({ removal }),
    onSettled: (settled: Settled) => terminal.warn(`nodewise: ${settledLine(settled)}`),
  };
}

/** Settings file, then flags, then --dry-run. Errors: every setting that is wrong. */
async function configOf(given: ActuatorGiven, env: Cli["env"]): Promise<Result<ActuatorConfig, Fault>> {
  const { output: _output, settings, once: _once, dryRun, failOnDrift: _fail, removeOrphans, ...rest } = given;
  const flags = Object.fromEntries(Object.entries(rest).map(([name, value]) => [SETTING_OF[name] ?? name, value]));
  const fromFile = settings === undefined ? ok({}) : await readSettings(settings);
  if (!fromFile.ok) return fromFile;
  const wanted: Readonly<Record<string, unknown>> = {
    stateDir: join(stateHome(env), "actuator"),
    ...fromFile.value,
    ...flags,
    // commander says true when the flag is absent
    ...(removeOrphans ? {} : { removeOrphans }),
  };
  const config = actuatorConfig(dryRun === true ? withoutDoing(wanted) : wanted);
  if (!config.ok) return fault(EXIT.badInput, config.error);
  const { manifests } = config.value;
  // Whole, as the problems of a directory name it.
  return ok(manifests === undefined ? config.value : { ...config.value, manifests: resolve(manifests) });
}

/** What commander calls otherwise. */
const SETTING_OF: Readonly<Record<string, string>> = {
  minimumContainerTtlDuration: "minimumContainerTTL",
  containerGcPeriodSeconds: "containerGCPeriodSeconds",
  imageGcPeriodSeconds: "imageGCPeriodSeconds",
};

/** The same settings, which change nothing on the machine. */
const withoutDoing = (settings: Readonly<Record<string, unknown>>) => ({
  ...settings,
  mode: "observe",
  ...(settings["garbageCollection"] === "enforce" ? { garbageCollection: "observe" } : {}),
});

async function readSettings(file: string): Promise<Result<object, Fault>> {
  const source = await readDocument(file);
  if (!source.ok) return source;
  const { value } = source.value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return ok(value);
  return fault(EXIT.badInput, `${file}: expected an object of settings such as {mode: observe}`);
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
