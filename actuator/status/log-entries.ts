import type { Kind, Verdict } from "../../api/model/decision.ts";
import type { Recovery } from "../apply/journal.ts";
import type { Reloaded } from "../core/config.ts";
import type { DecisionAnswer, Problem } from "../core/interfaces.ts";
import type { GcReport, RemovalReport } from "../gc/dependencies.ts";
import type { ClosedPass } from "../gc/remove.ts";
import type { PodEvent } from "../lifecycle/record.ts";
import type { PassReport } from "../pass/loop.ts";
import { passFigures } from "./counters.ts";
import type { LogEntry } from "./log.ts";

export const problemEntry = ({ from, message }: Problem): LogEntry => ({
  level: "warn",
  message,
  fields: { about: "problem", from },
});

/** Makes the log entry of an event. At the tenth event alike, `message` is the newest one. */
export const eventEntry = ({ at, type, reason, message, pod, container }: PodEvent): LogEntry => ({
  level: type === "Warning" ? "warn" : "info",
  message,
  fields: {
    about: "event",
    at,
    reason,
    namespace: pod.namespace,
    pod: pod.name,
    uid: pod.uid,
    ...(container === null ? {} : { container }),
  },
});

/** Verdicts by which something is removed. The others repeat with every pass, and their effects are logged on their own. */
const LOUD: ReadonlySet<Verdict> = new Set<Verdict>(["reclaims", "evicts", "removes"]);

export const decisionEntry = (kind: Kind, { id, decidedBy, verdict }: DecisionAnswer): LogEntry => ({
  level: LOUD.has(verdict) ? "info" : "debug",
  message: `${kind}: ${verdict}`,
  fields: { about: "decision", kind, verdict, decidedBy, ...(id === null ? {} : { decisionId: id }) },
});

/** A pass that wrote nothing is logged at `debug`, except one that only observes and finds drift. */
export function passEntry(report: PassReport): LogEntry {
  const { at, cgroups, applied, skipped, problems, decidedBy, decisionId } = report;
  const results = applied?.results ?? [];
  const steps = Object.fromEntries(
    Array.from(
      Map.groupBy(results, ({ status }) => status),
      ([status, { length }]) => [status, length],
    ),
  );
  const { drift } = passFigures(report);
  const hasWritten = results.some(({ status }) => status !== "unchanged" && status !== "planned");
  const isLoud = hasWritten || (applied?.dryRun === true && drift > 0);
  return {
    level: isLoud ? "info" : "debug",
    message: cgroups === null ? "nothing decided" : "pass",
    fields: {
      about: "pass",
      at,
      cgroups: cgroups?.cgroups.length ?? 0,
      steps,
      drift,
      leftOut: skipped.length,
      problems: problems.length,
      ...(decidedBy === null ? {} : { decidedBy }),
      ...(decisionId === null ? {} : { decisionId }),
    },
  };
}

export const removalEntry = ({ kind, target, id, name, bytes, why, end, message }: RemovalReport): LogEntry => ({
  level: end === "removed" ? "info" : "warn",
  message: message ?? `${target} ${end}`,
  fields: { about: "removal", kind, target, id, name, ...(bytes === null ? {} : { bytes }), why, end },
});

/** One entry per collection; its removals and problems have their own. */
export const gcEntries = ({ collections }: GcReport): readonly LogEntry[] =>
  collections.map(({ at, kind, operation, dryRun, removals, complete, problems }) => ({
    level: removals.length > 0 || !complete ? "info" : "debug",
    message: "collection",
    fields: {
      about: "collection",
      at,
      kind,
      operation,
      dryRun,
      removals: removals.length,
      complete,
      problems: problems.length,
    },
  }));

export const settledEntry = ({ kind, done, left }: ClosedPass): LogEntry => ({
  level: "warn",
  message: "a collection was interrupted",
  fields: { about: "recovery", kind, done: done.length, left: left.length },
});

/** Makes the log entry of a reload. People must see which of their changes are not in force. */
export const reloadEntry = ({ taken, left }: Reloaded): LogEntry => ({
  level: left.length > 0 ? "warn" : "info",
  message: left.length > 0 ? "settings read again, and some wait for a restart" : "settings read again",
  fields: { about: "reload", taken, left },
});

export function recoveryEntry({ outcome, steps }: Recovery): LogEntry {
  const count = (wanted: string): number => steps.filter(({ status }) => status === wanted).length;
  return {
    level: "warn",
    message: "a plan was interrupted",
    fields: {
      about: "recovery",
      outcome,
      putBack: count("put_back"),
      neverDone: count("untouched"),
      leftAlone: count("kept"),
    },
  };
}
