import { err, ok, type Result } from "../api/model/result.ts";
import type { ApiAccess } from "./api-access.ts";
import { openHierarchy } from "./cgroupfs/hierarchy.ts";
import { clientOf } from "./client-of.ts";
import type { ActuatorConfig } from "./config.ts";
import { readConfiguration } from "./configuration-file.ts";
import type { Collector } from "./gc/collector.ts";
import { type CollectionEvents, type OpenCollector, openCollector, podsOrNone, type Shared } from "./gc/open.ts";
import type { GcKind, TurnReport } from "./gc/ports.ts";
import { collectUntil } from "./gc/timers.ts";
import type { PodEvent } from "./lifecycle/event.ts";
import { type PassReport, runPass } from "./loop.ts";
import { observeMachine } from "./machine/observe.ts";
import { readStateFiles } from "./machine/state-files.ts";
import { Notices } from "./notices.ts";
import { Observer } from "./observer.ts";
import { openState } from "./own-state.ts";
import { Pace } from "./pace.ts";
import { PodsDaemon } from "./pods/daemon.ts";
import { livePodsSource } from "./pods-source.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import type { Recovery } from "./recover.ts";
import { type Reloaded, takeOver } from "./reload.ts";

export interface ActuatorOptions extends CollectionEvents {
  readonly config: ActuatorConfig;
  /** An API in this process: asked instead of `config.api`. */
  readonly api?: Pick<ApiAccess, "url" | "fetch" | "token">;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onRecovery: (recovery: Recovery) => void;
  /** What happens to pods that this daemon runs. */
  readonly onEvent?: (event: PodEvent) => void;
}
export interface Actuator {
  /** Ends after the pass that is under way. */
  stop(): Promise<void>;
  /** New settings: what may change while it runs is in force from the next turn on, which is now. */
  reload(next: ActuatorConfig): Reloaded;
  /** Settles when it ended. */
  readonly done: Promise<void>;
}

/** Undoes a plan that was cut short, then passes again and again. Errors: this machine or its state directory cannot be used. */
export async function startActuator(given: ActuatorOptions): Promise<Result<Actuator, string>> {
  // the daemon's own: everything in it reads this one object, and a reload writes to it
  const options = { ...given, config: { ...given.config } };
  const stopping = new AbortController();
  const prepared = await preparePorts(options, stopping.signal);
  if (!prepared.ok) return prepared;
  const { ports, collector, release } = prepared.value;
  const notices = new Notices(options.onProblem);
  const onTurn = (turn: TurnReport): void => tellTurn(turn, notices, options);
  const pace = new Pace(stopping.signal);
  const gcPace = new Pace(stopping.signal);
  const collections =
    collector === null ? [] : [collectUntil(stopping.signal, collector, options.config, onTurn, gcPace)];
  const pods = options.config.pods === "off" ? null : await openDaemon(ports, options, collector, onTurn);
  if (pods !== null && !pods.ok) {
    stopping.abort();
    release();
    return pods;
  }
  const main =
    pods?.value.runUntil(stopping.signal) ??
    (await Observer.open(ports, options, notices)).runUntil(stopping.signal, pace);
  const done = Promise.all([main, ...collections])
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
      for (const turns of [pace, gcPace]) turns.wake();
      pods?.value.poke();
      return reloaded;
    },
  });
}

/** Pods are run by a daemon of their own, which does the passes over the cgroups too. */
async function openDaemon(
  ports: LoopPorts,
  options: ActuatorOptions,
  collector: Collector | null,
  onTurn: (turn: TurnReport) => void,
): Promise<Result<PodsDaemon, string>> {
  const { hierarchy, journal } = ports;
  if (hierarchy === null || journal === null)
    return err("pods: they need cgroups, and a journal of what is written to them");
  const reclaim = async (functions: readonly string[]): Promise<void> => {
    if (collector !== null) onTurn(await collector.turn(new Set(functions.flatMap(kindOf)), "delete-unused"));
  };
  return PodsDaemon.open({ ...ports, hierarchy, journal }, { ...options, reclaim });
}
const kindOf = (name: string): readonly GcKind[] =>
  name === "delete-unused-containers" ? ["container-gc"] : name === "delete-unused-images" ? ["image-gc"] : [];

/**
 * One pass, with one of every collection where that is on, and no daemon: what `--once` runs. Notices are told here, the
 * pass's problems are in its report.
 */
export async function passOnce(options: ActuatorOptions): Promise<Result<PassReport, string>> {
  const prepared = await preparePorts(options, new AbortController().signal);
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

interface Prepared {
  readonly ports: LoopPorts;
  /** Null: garbage collection is off. */
  readonly collector: Collector | null;
  readonly release: () => void;
}

async function preparePorts(options: ActuatorOptions, stop: AbortSignal): Promise<Result<Prepared, string>> {
  const { config, onProblem } = options;
  const bootId = observeMachine().system.bootID ?? "";
  const access = config.mode === "observe" ? "read" : "write";
  const opened = openHierarchy({ mountRoot: config.cgroupMount, root: config.cgroupRoot, access });
  if (!opened.ok && config.mode === "enforce") return err(`mode enforce needs cgroups: ${opened.error.message}`);
  if (!opened.ok) {
    onProblem({ from: "cgroupfs", message: `${opened.error.message}; deciding without looking at cgroups` });
  }
  const state = await openState(options, opened.ok ? opened.value : null, bootId);
  if (!state.ok) return state;
  const { journal, lock } = state.value;
  const shared = {
    // where pods are run, the node's disk is the one that their volumes lie on
    observeMachine: () =>
      observeMachine({ kubeletDirectory: config.pods === "off" ? config.kubeletDir : config.podsDirectory }),
    readPods: livePodsSource(config),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration),
  };
  const parties = await openParties(options, shared, stop);
  if (!parties.ok) {
    lock?.release();
    return parties;
  }
  const { client, collecting } = parties.value;
  const ports: LoopPorts = {
    ...shared,
    readStateFiles: () => readStateFiles(config.kubeletDir),
    client,
    hierarchy: opened.ok ? opened.value : null,
    journal,
  };
  const release = (): void => {
    lock?.release();
    collecting?.release();
  };
  return ok({ ports, collector: collecting?.collector ?? null, release });
}

interface Parties {
  readonly client: LoopPorts["client"];
  readonly collecting: OpenCollector | null;
}
/** Who decides, and who collects, which share what they remember. */
async function openParties(
  options: ActuatorOptions,
  shared: Omit<Shared, "client">,
  stop: AbortSignal,
): Promise<Result<Parties, string>> {
  const { config } = options;
  const client = clientOf(options);
  if (!client.ok) return client;
  if (config.garbageCollection === "off") return ok({ client: client.value, collecting: null });
  const ofCollector = { ...shared, readPods: podsOrNone(config, shared.readPods), client: client.value };
  const collecting = await openCollector(ofCollector, options, { stop, joinsEviction: config.pods === "off" });
  return collecting.ok ? ok({ client: client.value, collecting: collecting.value }) : collecting;
}
