import type { Kind } from "../api/model/decision.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import type { ApiAccess } from "./api-access.ts";
import type { ActuatorConfig } from "./config.ts";
import type { Collector } from "./gc/collector.ts";
import type { CollectionEvents } from "./gc/open.ts";
import type { GcKind, TurnReport } from "./gc/ports.ts";
import { collectUntil } from "./gc/timers.ts";
import type { PodEvent } from "./lifecycle/event.ts";
import { type PassReport, runPass } from "./loop.ts";
import { Notices } from "./notices.ts";
import { Observer } from "./observer.ts";
import { openPorts } from "./open-ports.ts";
import { Pace } from "./pace.ts";
import { PodsDaemon } from "./pods/daemon.ts";
import type { DecisionAnswer, LoopPorts, Problem } from "./ports.ts";
import type { Recovery } from "./recover.ts";
import { type Reloaded, takeOver } from "./reload.ts";
import { noCounters } from "./status/counters.ts";
import { openMetrics } from "./status/open-metrics.ts";
import type { Turns } from "./turns.ts";

export interface ActuatorOptions extends CollectionEvents {
  readonly config: ActuatorConfig;
  /** An API in this process: asked instead of `config.api`. */
  readonly api?: Pick<ApiAccess, "url" | "fetch" | "token">;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onRecovery: (recovery: Recovery) => void;
  /** What happens to pods that this daemon runs. */
  readonly onEvent?: (event: PodEvent) => void;
  /** Each answer of the API, or of the core here. */
  readonly onDecision?: (kind: Kind, answer: DecisionAnswer) => void;
}
export interface Actuator {
  /** Ends after the pass that is under way. */
  stop(): Promise<void>;
  /** New settings: what may change while it runs is in force from the next turn on, which is now. */
  reload(next: ActuatorConfig): Reloaded;
  /** New settings that cannot be taken: the old ones stay, and the status tells why until others are. */
  refuseReload(faults: readonly Problem[]): void;
  /** Settles when it ended. */
  readonly done: Promise<void>;
}

/** Undoes a plan that was cut short, then passes again and again. Errors: this machine or its state directory cannot be used. */
export async function startActuator(given: ActuatorOptions): Promise<Result<Actuator, string>> {
  // the daemon's own: everything in it reads this one object, and a reload writes to it
  const options = { ...given, config: { ...given.config } };
  const stopping = new AbortController();
  const metrics = await openMetrics(options.config);
  const prepared = await openPorts(options, stopping.signal, metrics.counters);
  if (!prepared.ok) return prepared;
  const { ports, collector, release } = prepared.value;
  const notices = new Notices(options.onProblem);
  const onTurn = (turn: TurnReport): void => tellTurn(turn, notices, options);
  const pace = new Pace(stopping.signal);
  const turns: Turns = { pace, notices, metrics };
  const gcPace = new Pace(stopping.signal);
  const collections =
    collector === null ? [] : [collectUntil(stopping.signal, collector, options.config, onTurn, gcPace)];
  const opened =
    options.config.pods === "off"
      ? ok(await Observer.open(ports, options, turns))
      : await openDaemon(ports, options, turns, collector, onTurn);
  if (!opened.ok) {
    stopping.abort();
    release();
    return opened;
  }
  const done = Promise.all([opened.value.runUntil(stopping.signal), ...collections])
    .then(() => {})
    .finally(release);
  return ok({
    done,
    stop: () => {
      stopping.abort();
      return done;
    },
    reload: (next) => {
      const reloaded = takeOver(options.config, next);
      notices.ofSettings = [];
      for (const woken of [pace, gcPace]) woken.wake();
      return reloaded;
    },
    refuseReload: (faults) => {
      notices.ofSettings = faults;
      // the status is written at the end of a turn
      pace.wake();
    },
  });
}

/** Pods are run by a daemon of their own, which does the passes over the cgroups too. */
async function openDaemon(
  ports: LoopPorts,
  options: ActuatorOptions,
  turns: Turns,
  collector: Collector | null,
  onTurn: (turn: TurnReport) => void,
): Promise<Result<PodsDaemon, string>> {
  const { hierarchy, journal } = ports;
  if (hierarchy === null || journal === null)
    return err("pods: they need cgroups, and a journal of what is written to them");
  const reclaim = async (functions: readonly string[]): Promise<void> => {
    if (collector !== null) onTurn(await collector.turn(new Set(functions.flatMap(kindOf)), "delete-unused"));
  };
  return PodsDaemon.open({ ...ports, hierarchy, journal }, { ...options, reclaim }, turns);
}
const kindOf = (name: string): readonly GcKind[] =>
  name === "delete-unused-containers" ? ["container-gc"] : name === "delete-unused-images" ? ["image-gc"] : [];

/**
 * One pass, with one of every collection where that is on, and no daemon: what `--once` runs. Notices are told here, the
 * pass's problems are in its report.
 */
export async function passOnce(options: ActuatorOptions): Promise<Result<PassReport, string>> {
  const prepared = await openPorts(options, new AbortController().signal, noCounters);
  if (!prepared.ok) return prepared;
  const { ports, collector, release } = prepared.value;
  try {
    const notices = new Notices(options.onProblem);
    const report = await runPass(ports, options.config, 1);
    notices.tell("pass", report.notices, report.problems);
    if (collector !== null) tellTurn(await collector.turn(new Set(["container-gc", "image-gc"])), notices, options);
    return ok(report);
  } finally {
    release();
  }
}

function tellTurn(turn: TurnReport, notices: Notices, { onProblem, onTurn }: ActuatorOptions): void {
  for (const problem of turn.problems) onProblem(problem);
  notices.tell("turn", turn.notices, turn.problems);
  onTurn?.(turn);
}
