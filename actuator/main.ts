import { err, ok, type Result } from "../api/base/result.ts";
import type { NodeReclaimFunction } from "../api/model/eviction.ts";
import { profileOf } from "../api/profiles/index.ts";
import { openHierarchy } from "./cgroupfs/open.ts";
import { redactingClient } from "./client/client.ts";
import { type ActuatorConfig, type Reloaded, takeOver } from "./core/config.ts";
import type { Problem } from "./core/interfaces.ts";
import { InterruptibleSleep, Notices } from "./core/notices.ts";
import { type ActuatorOptions, clientOf } from "./daemon/client-of.ts";
import { readConfiguration } from "./daemon/configuration-file.ts";
import { openMetrics, type SyncHooks } from "./daemon/open-metrics.ts";
import { openState, StateFileCheck } from "./daemon/own-state.ts";
import { type Collector, collectUntil } from "./gc/collector.ts";
import type { GcReport } from "./gc/dependencies.ts";
import { GC_KINDS } from "./gc/journal.ts";
import { kindOfFunction } from "./gc/kinds.ts";
import { type OpenCollector, openCollector, podsOrNone, type SharedDeps } from "./gc/open.ts";
import { readStateFiles } from "./machine/files.ts";
import { observeMachine } from "./machine/observe.ts";
import { livePodsSource } from "./manifests/pods-source.ts";
import { type LoopDeps, type PassReport, runPass } from "./pass/loop.ts";
import { PodsDaemon } from "./pods/daemon.ts";
import { redactFiles } from "./pods/devices/checkpoint-entries.ts";
import { observedPods } from "./pods/status/node-view.ts";
import {
  type Counters,
  driftNotices,
  measured,
  noCounters,
  PassCounter,
  passFigures,
  type SyncFigures,
} from "./status/counters.ts";
import type { NodeStatus, PodRow } from "./status/node-status.ts";
import type { StatusServer } from "./status/server.ts";
import { StatusFile } from "./status/status-file.ts";

type Options = Pick<ActuatorOptions, "config" | "onPass" | "onProblem">;

/** Runs passes over the cgroups of pods that a kubelet runs, and reports what it sees. */
export class CgroupsDaemon {
  readonly #deps: LoopDeps;
  readonly #options: Options;
  readonly #hooks: SyncHooks;
  readonly #counter: PassCounter;
  readonly #file: StatusFile;
  readonly #state: StateFileCheck;
  #server: Pick<StatusServer, "close"> | null = null;
  #pass: NodeStatus["pass"] = null;
  #pods: readonly PodRow[] = [];
  #problems: readonly Problem[] = [];

  private constructor(deps: LoopDeps, options: Options, hooks: SyncHooks) {
    this.#deps = deps;
    this.#options = options;
    this.#hooks = hooks;
    this.#counter = new PassCounter(hooks.metrics.counters);
    const onProblem = (message: string): void => options.onProblem({ from: "pods", message });
    this.#state = new StateFileCheck([options.config.stateDir], deps.journal);
    this.#file = new StatusFile({ stateDir: options.config.stateDir, onProblem });
  }

  static async open(deps: LoopDeps, options: Options, hooks: SyncHooks): Promise<CgroupsDaemon> {
    const daemon = new CgroupsDaemon(deps, options, hooks);
    const onFault = (message: string): void => options.onProblem({ from: "pods", message });
    daemon.#server = await hooks.metrics.serve(() => daemon.status(), onFault);
    return daemon;
  }

  status(): NodeStatus {
    const { nodeName, mode, runtimeEndpoint } = this.#options.config;
    return {
      at: new Date().toISOString(),
      nodeName,
      pid: process.pid,
      mode,
      runsPods: false,
      runtimeEndpoint,
      runtime: null,
      pass: this.#pass,
      pods: this.#pods,
      unwritable: this.#state.faults(),
      problems: [
        ...new Set(
          [...this.#hooks.notices.ofSettings, ...this.#state.problems(), ...this.#problems].map(
            ({ from, message }) => `${from}: ${message}`,
          ),
        ),
      ],
      refusedManifests: [],
      events: [],
    };
  }

  async runUntil(stop: AbortSignal): Promise<void> {
    const { config, onPass, onProblem } = this.#options;
    const { notices, pace } = this.#hooks;
    for (let sequence = 1; !stop.aborted; sequence++) {
      const { value: report, ...times } = await measured(() => runPass(this.#deps, config, sequence));
      this.#note(report, { sequence, at: report.at, ...times });
      for (const problem of report.problems) onProblem(problem);
      const allNotices = [...report.notices, ...this.#state.problems(), ...driftNotices(report)];
      notices.report("pass", allNotices, report.problems);
      onPass(report);
      this.#file.offer(() => this.status());
      await pace.sleep(config.intervalSeconds * 1000);
    }
    await this.#file.close(this.status());
    await this.#server?.close();
  }

  #note(report: PassReport, figures: SyncFigures): void {
    this.#pass = { ...figures, ...passFigures(report) };
    this.#problems = [...report.problems, ...report.notices];
    // a pod that could not be read is not gone
    if (report.snapshot !== null) this.#pods = observedPods(report);
    this.#hooks.metrics.counters.pass(figures.tookMs, figures.cpuMs);
    this.#counter.count(report);
  }
}

export interface Actuator {
  /** Ends after the pass that is under way. */
  stop(): Promise<void>;
  /** New settings: what may change while it runs is in force from the next sync on, which is now. */
  reload(next: ActuatorConfig): Reloaded;
  /** Refuses new settings: the old ones stay, and the status has the reason until valid ones arrive. */
  refuseReload(faults: readonly Problem[]): void;
  /** Settles when it ended. */
  readonly done: Promise<void>;
}

/** Undoes an interrupted plan, then runs passes repeatedly. Errors: this machine or its state directory cannot be used. */
export async function startActuator(given: ActuatorOptions): Promise<Result<Actuator, string>> {
  // the daemon's own copy: everything in the daemon reads this one object, and a reload writes to it
  const options = { ...given, config: { ...given.config } };
  const stopping = new AbortController();
  const metrics = await openMetrics(options.config);
  const prepared = await openDeps(options, stopping.signal, metrics.counters);
  if (!prepared.ok) return prepared;
  const { deps, collector, release } = prepared.value;
  const notices = new Notices(options.onProblem);
  const onGcReport = (report: GcReport): void => reportGc(report, notices, options);
  const pace = new InterruptibleSleep(stopping.signal);
  const hooks: SyncHooks = { pace, notices, metrics };
  const gcPace = new InterruptibleSleep(stopping.signal);
  const collections =
    collector === null ? [] : [collectUntil(stopping.signal, collector, options.config, onGcReport, gcPace)];
  const opened =
    options.config.pods === "off"
      ? ok(await CgroupsDaemon.open(deps, options, hooks))
      : await openDaemon(deps, options, hooks, collector, onGcReport);
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
      // the status is written at the end of a sync
      pace.wake();
    },
  });
}

/** Opens the daemon that runs pods; it also does the passes over the cgroups. */
async function openDaemon(
  deps: LoopDeps,
  options: ActuatorOptions,
  hooks: SyncHooks,
  collector: Collector | null,
  onGcReport: (report: GcReport) => void,
): Promise<Result<PodsDaemon, string>> {
  const { hierarchy, journal } = deps;
  if (hierarchy === null || journal === null)
    return err("pods: they need cgroups, and a journal of what is written to them");
  const reclaim = async (functions: readonly NodeReclaimFunction[]): Promise<void> => {
    if (collector !== null)
      onGcReport(await collector.collect(new Set(functions.map(kindOfFunction)), "delete-unused"));
  };
  return PodsDaemon.open({ ...deps, hierarchy, journal }, { ...options, reclaim }, hooks);
}

/**
 * One pass, with one of every active collection, without a daemon: what `--once` runs. Notices are reported here, the
 * pass's problems are in its report.
 */
export async function passOnce(options: ActuatorOptions): Promise<Result<PassReport, string>> {
  const prepared = await openDeps(options, new AbortController().signal, noCounters);
  if (!prepared.ok) return prepared;
  const { deps, collector, release } = prepared.value;
  try {
    const notices = new Notices(options.onProblem);
    const report = await runPass(deps, options.config, 1);
    notices.report("pass", report.notices, report.problems);
    if (collector !== null) reportGc(await collector.collect(new Set(GC_KINDS)), notices, options);
    return ok(report);
  } finally {
    release();
  }
}

function reportGc(report: GcReport, notices: Notices, { onProblem, onGcReport }: ActuatorOptions): void {
  for (const problem of report.problems) onProblem(problem);
  notices.report("gc", report.notices, report.problems);
  onGcReport?.(report);
}

interface OpenDeps {
  readonly deps: LoopDeps;
  /** The collector; null: garbage collection is off. */
  readonly collector: Collector | null;
  readonly release: () => void;
}

/** Errors: this machine or its state directory cannot be used, with why. */
async function openDeps(
  options: ActuatorOptions,
  stop: AbortSignal,
  counters: Counters,
): Promise<Result<OpenDeps, string>> {
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
  let configurationNotices: readonly Problem[] = [];
  let lastConfiguration: Result<unknown, Problem> | null = null;
  const shared = {
    // where this daemon runs the pods, the node's disk is the one with their volumes
    observeMachine: () =>
      observeMachine({ kubeletDirectory: config.pods === "off" ? config.kubeletDir : config.podsDirectory }),
    readPods: livePodsSource(config),
    readConfiguration: async () => {
      const read = await readConfiguration(config.kubeletConfiguration, profileOf(config.kubeletVersion), (notices) => {
        configurationNotices = notices;
      });
      if (read.ok) lastConfiguration = read;
      if (read.ok || lastConfiguration === null) return read;
      const message = `${read.error.message}; the last good configuration stays in force`;
      configurationNotices = [{ ...read.error, message }];
      return lastConfiguration;
    },
    configurationNotices: () => configurationNotices,
  };
  const parties = await openClients(options, shared, stop, counters);
  if (!parties.ok) {
    lock?.release();
    return parties;
  }
  const { client, collecting } = parties.value;
  const deps: LoopDeps = {
    ...shared,
    readStateFiles: () => redactFiles(readStateFiles(config.kubeletDir)),
    client,
    hierarchy: opened.ok ? opened.value : null,
    journal,
    lastPassCgroups: { current: null },
  };
  const release = (): void => {
    lock?.release();
    collecting?.release();
  };
  return ok({ deps, collector: collecting?.collector ?? null, release });
}

interface DaemonClients {
  readonly client: LoopDeps["client"];
  readonly collecting: OpenCollector | null;
}
/** Opens the decision client and the collector, which share their facts. */
async function openClients(
  options: ActuatorOptions,
  shared: Omit<SharedDeps, "client">,
  stop: AbortSignal,
  counters: Counters,
): Promise<Result<DaemonClients, string>> {
  const { config } = options;
  const opened = clientOf(options);
  if (!opened.ok) return opened;
  const client = redactingClient(opened.value, counters, options.onDecision);
  if (config.garbageCollection === "off") return ok({ client, collecting: null });
  const ofCollector = { ...shared, readPods: podsOrNone(config, shared.readPods), client };
  const how = { stop, joinsEviction: config.pods === "off", onFault: counters.runtimeCallFailed };
  const collecting = await openCollector(ofCollector, options, how);
  return collecting.ok ? ok({ client, collecting: collecting.value }) : collecting;
}
