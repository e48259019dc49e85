import type { PodEvent } from "../../actuator/lifecycle/event.ts";
import type { ActuatorOptions } from "../../actuator/main.ts";
import type { DecisionAnswer } from "../../actuator/ports.ts";
import type { Reloaded } from "../../actuator/reload.ts";
import { type DaemonLog, jsonLog, type LogEntry, redacted } from "../../actuator/status/log.ts";
import {
  decisionEntry,
  eventEntry,
  passEntry,
  problemEntry,
  recoveryEntry,
  reloadEntry,
  removalEntry,
  settledEntry,
  turnEntries,
} from "../../actuator/status/log-entries.ts";
import { isWanted, type LogLevel } from "../../actuator/status/log-level.ts";
import type { Kind } from "../model/decision.ts";
import { printable } from "../text/style.ts";
import type { LogGiven } from "./log-options.ts";
import type { Terminal } from "./terminal.ts";

/** What a daemon tells while it works. */
export interface Telling
  extends Required<
    Pick<
      ActuatorOptions,
      "onPass" | "onProblem" | "onRecovery" | "onTurn" | "onRemoval" | "onSettled" | "onEvent" | "onDecision"
    >
  > {
  readonly onReload: (reloaded: Reloaded) => void;
}
/**
 * What the daemon calls: the log as it is asked for, and where passes are the answer themselves (`--once`, `-o json`) their
 * text on standard output besides, at every level. `flush` belongs to the end.
 */
export function tellingOf(
  { logFormat, logLevel }: LogGiven,
  text: Telling,
  isAnswer: boolean,
): { readonly telling: Telling; readonly flush: () => Promise<void> } {
  const { onPass, onTurn, onRemoval } = text;
  const answers = isAnswer ? { onPass, onTurn, onRemoval } : {};
  if (logFormat === "text") return { telling: { ...leveled(text, logLevel), ...answers }, flush: async () => {} };
  const log = jsonLog(logLevel);
  const lines = jsonTelling(log);
  if (!isAnswer) return { telling: lines, flush: log.flush };
  const both =
    <T>(...tell: readonly ((told: T) => void)[]) =>
    (told: T): void => {
      for (const one of tell) one(told);
    };
  const telling: Telling = {
    ...lines,
    onPass: both(lines.onPass, onPass),
    onTurn: both(lines.onTurn, onTurn),
    onRemoval: both(lines.onRemoval, onRemoval),
  };
  return { telling, flush: log.flush };
}

/** A line of JSON each, on the log alone. */
const jsonTelling = (log: DaemonLog): Telling => ({
  onPass: (report) => log.write(passEntry(report)),
  onProblem: (problem) => log.write(problemEntry(problem)),
  onRecovery: (recovery) => log.write(recoveryEntry(recovery)),
  onTurn: (turn) => turnEntries(turn).forEach(log.write),
  onRemoval: (removal) => log.write(removalEntry(removal)),
  onSettled: (settled) => log.write(settledEntry(settled)),
  onEvent: (event) => log.write(eventEntry(event)),
  onReload: (reloaded) => log.write(reloadEntry(reloaded)),
  onDecision: (kind, answer) => log.write(decisionEntry(kind, answer)),
});

/**
 * For people, where it is of the level that they want. A pass and a collection are told at `info`, whatever they did, and
 * so decisions need not be.
 */
function leveled(telling: Telling, wanted: LogLevel): Telling {
  const at =
    <A extends readonly unknown[]>(tell: (...args: A) => void, level: (...args: A) => LogEntry["level"]) =>
    (...args: A): void => {
      if (isWanted(level(...args), wanted)) tell(...args);
    };
  return {
    onPass: at(telling.onPass, () => "info"),
    onTurn: at(telling.onTurn, () => "info"),
    onProblem: at(telling.onProblem, (problem) => problemEntry(problem).level),
    onRecovery: at(telling.onRecovery, (recovery) => recoveryEntry(recovery).level),
    onRemoval: at(telling.onRemoval, (removal) => removalEntry(removal).level),
    onSettled: at(telling.onSettled, (settled) => settledEntry(settled).level),
    onEvent: at(telling.onEvent, (event) => eventEntry(event).level),
    onReload: at(telling.onReload, (reloaded) => reloadEntry(reloaded).level),
    onDecision: at(telling.onDecision, () => "debug"),
  };
}

/** `2026-… Warning BackOff shop/web-0 app: Back-off restarting failed container`, with a line break. */
export function eventLine({ at, type, reason, message, pod, container }: PodEvent, { paint }: Terminal): string {
  const where = `${pod.namespace}/${pod.name}${container === null ? "" : ` ${container}`}`;
  const told = type === "Warning" ? paint("yellow", type) : type;
  return `${at} ${told} ${printable(`${reason} ${where}: ${redacted(message)}`)}\n`;
}

/** `admission: refuses (by the API: d-1)`, with a line break. */
export function decisionLine(
  kind: Kind,
  { verdict, decidedBy, id }: Pick<DecisionAnswer, "verdict" | "decidedBy" | "id">,
): string {
  const by = decidedBy === "here" ? "here" : `by the API${id === null ? "" : `: ${printable(id)}`}`;
  return `${kind}: ${verdict} (${by})\n`;
}
