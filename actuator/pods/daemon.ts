import { err, ok, type Result } from "../../api/base/result.ts";
import { SHUTDOWN } from "../../api/model/end-reasons.ts";
import type { NodeReclaimFunction } from "../../api/model/eviction.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { Problem } from "../core/interfaces.ts";
import type { SyncHooks } from "../daemon/open-metrics.ts";
import { StateFileCheck } from "../daemon/own-state.ts";
import { endOf, isStopped } from "../lifecycle/pod-state.ts";
import type { PodEvent, PodState } from "../lifecycle/record.ts";
import type { PassReport } from "../pass/loop.ts";
import { driftNotices, measured, PassCounter, type SyncFigures } from "../status/counters.ts";
import { EventRing } from "../status/events.ts";
import type { NodeStatus } from "../status/node-status.ts";
import type { StatusServer } from "../status/server.ts";
import { StatusFile } from "../status/status-file.ts";
import type { PodManager, SyncView } from "./manager.ts";
import { type OpenPods, openPods, type PodsShared } from "./open-pods.ts";
import { systemClock } from "./pod-clock.ts";
import { refusalOf } from "./records/desired-pods.ts";
import { nameIn } from "./records/pod-set.ts";
import { recordsIn } from "./records/records.ts";
import { nodeView } from "./status/node-view.ts";

/** The reason in the statuses of the pods. kubelet 1.36: nodeshutdown. */
const REASON = "Terminated";
const POLL_MS = 250;
/** The longest wait for the last pass over the cgroups, and for the claims of stopped pods. */
const CGROUPS_MS = 10_000;

/**
 * Ends all pods, those of the lowest priority first, and waits until nothing of them runs and their cgroups are gone.
 * Pods that are already ending keep their grace period.
 */
export async function drainPods(manager: PodManager, sync: () => Promise<void>, clock = systemClock): Promise<void> {
  // static pods are all critical, but not of one priority
  const groups = Map.groupBy(manager.set.living(), ({ pod }) => pod.spec.priority ?? 0);
  manager.drain();
  for (const [, group] of [...groups].sort(([a], [b]) => a - b)) {
    const inState = (state: PodState) => group.filter(({ uid }) => manager.set.get(uid)?.record.state === state);
    const end = endOf(REASON, SHUTDOWN, clock.nowMs());
    // the end of a pod always succeeds, even on a full disk: `handle` returns no fault
    for (const { uid } of group) manager.lifecycle.handle(uid, { kind: "Drained", end });
    let untilMs = Number.POSITIVE_INFINITY;
    while (inState("terminating").length > 0 && clock.monotonicMs() < untilMs) {
      await sync();
      await clock.sleep(POLL_MS);
      // claims that a driver does not unprepare do not block the shutdown: the next daemon continues
      const mayRun = ({ uid }: { readonly uid: string }) => !isStopped(manager.set.get(uid)?.runtimePod ?? null);
      const isRunning = manager.set.runtimePods === null || inState("terminating").some(mayRun);
      untilMs = isRunning ? Number.POSITIVE_INFINITY : Math.min(untilMs, clock.monotonicMs() + CGROUPS_MS);
    }
  }
  const untilMs = clock.monotonicMs() + CGROUPS_MS;
  while ((manager.view?.pods.size ?? 0) > 0 && clock.monotonicMs() < untilMs) {
    await sync();
    await clock.sleep(POLL_MS);
  }
}

interface PodsDaemonOptions {
  readonly config: ActuatorConfig;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onEvent?: (event: PodEvent) => void;
  readonly reclaim?: (functions: readonly NodeReclaimFunction[]) => Promise<void>;
}
/** At shutdown, the longest wait for running work to reach its next step. */
const REST_MS = 10_000;
/** Status requests wait this long for the first sync: an earlier answer would be empty. */
const FIRST_SYNC_MS = 3000;

/** The last pass over the cgroups; it counts every pass. */
class LastPass {
  readonly #counter: PassCounter;
  #report: PassReport | null = null;

  constructor(counter: PassCounter) {
    this.#counter = counter;
  }
  /** The last report; null: there was none yet. */
  get report(): PassReport | null {
    return this.#report;
  }
  update(report: PassReport): void {
    // the snapshot is large and no longer needed
    this.#report = { ...report, snapshot: null };
    this.#counter.count(report);
  }
}

/** Runs syncs until stopped, and reports what it sees. */
export class PodsDaemon {
  readonly #options: PodsDaemonOptions;
  readonly #hooks: SyncHooks;
  readonly #pods: OpenPods;
  readonly #ring: EventRing;
  readonly #lastPass: LastPass;
  readonly #file: StatusFile;
  readonly #state: StateFileCheck;
  #server: Pick<StatusServer, "close"> | null = null;
  #view: SyncView | null = null;
  #sync: SyncFigures | null = null;

  private constructor(
    options: PodsDaemonOptions,
    hooks: SyncHooks,
    pods: OpenPods,
    ring: EventRing,
    lastPass: LastPass,
    state: StateFileCheck,
  ) {
    this.#options = options;
    this.#hooks = hooks;
    this.#pods = pods;
    this.#ring = ring;
    this.#lastPass = lastPass;
    this.#state = state;
    const onProblem = (message: string): void => options.onProblem({ from: "pods", message });
    this.#file = new StatusFile({ stateDir: options.config.stateDir, onProblem });
  }

  /**
   * Opens the daemon. Errors: the runtime's endpoint, the records. A status address that cannot be used is a problem,
   * not an error.
   */
  static async open(
    shared: PodsShared,
    options: PodsDaemonOptions,
    hooks: SyncHooks,
  ): Promise<Result<PodsDaemon, string>> {
    const { onProblem, onEvent, onPass, reclaim } = options;
    const { counters } = hooks.metrics;
    const ring = new EventRing(undefined, counters.eventsDropped);
    const lastPass = new LastPass(new PassCounter(counters));
    const opened = await openPods(shared, options.config, {
      counters,
      onEvent: (event) => {
        ring.add(event);
        onEvent?.(event);
      },
      onProblem,
      onPass: (report) => {
        lastPass.update(report);
        onPass(report);
      },
      onWorked: () => hooks.pace.wake(),
      ...(reclaim === undefined ? {} : { reclaim }),
    });
    if (!opened.ok) return err(opened.error);
    const { stateDir } = options.config;
    const state = new StateFileCheck([stateDir, recordsIn(stateDir)], shared.journal);
    return ok(new PodsDaemon(options, hooks, opened.value, ring, lastPass, state));
  }

  status(): NodeStatus {
    const { config } = this.#options;
    const { manager, stats, version, readiness, devices, probes, faults, otherKubelet } = this.#pods;
    return nodeView({
      nowMs: Date.now(),
      nodeName: config.nodeName,
      set: manager.set,
      runtimeEndpoint: config.runtimeEndpoint,
      runtime: version.current === null ? null : { ...version.current, ...notReadyOf(readiness.faults) },
      sync: this.#sync,
      pass: this.#lastPass.report,
      usages: stats.usages,
      probes: probes.rows(),
      otherKubelet: otherKubelet.view,
      devices: devices?.rows((uid) => nameIn(manager.set, uid)),
      unwritable: this.#state.faults(),
      problems: [
        ...this.#hooks.notices.ofSettings,
        ...faults(),
        ...this.#state.problems(),
        ...probes.problems(),
        ...(this.#view?.problems ?? []),
        ...(this.#view?.notices ?? []),
      ],
      refused: this.#view?.refused ?? [],
      events: this.#ring.list(),
    });
  }

  async runUntil(stop: AbortSignal): Promise<void> {
    const { config } = this.#options;
    for (let sync = this.#firstSync; !stop.aborted; sync = this.#syncOnce) {
      await sync.call(this);
      await this.#hooks.pace.sleep(config.syncSeconds * 1000);
    }
    if (config.drain) await drainPods(this.#pods.manager, () => this.#syncOnce());
    await this.#end();
  }

  /** Opens the status address after the first sync, or soon if a hanging runtime delays it. */
  async #firstSync(): Promise<void> {
    const { onProblem } = this.#options;
    const synced = this.#syncOnce();
    await withinMs(synced, FIRST_SYNC_MS);
    const onFault = (message: string): void => onProblem({ from: "pods", message });
    this.#server = await this.#hooks.metrics.serve(() => this.status(), onFault);
    await synced;
  }

  async #syncOnce(): Promise<void> {
    const { manager, version, readiness, notices: standing } = this.#pods;
    const { notices, metrics } = this.#hooks;
    const { value: synced, ...times } = await measured(() => manager.sync());
    await Promise.all([version.refresh(synced.isAnswering), readiness.refresh(synced.isAnswering)]);
    // problems with the daemon's facts are covered by those of the state directory, which contains them
    const isKept = this.#state.faults().length === 0;
    const problems = synced.problems.filter(({ from }) => isKept || from !== "memory");
    const view = { ...synced, problems, notices: [...synced.notices, ...standing()] };
    this.#view = view;
    this.#sync = { sequence: view.sequence, at: new Date().toISOString(), ...times };
    metrics.counters.pass(times.tookMs, times.cpuMs);
    notices.report("pass", [
      ...view.problems,
      ...view.notices,
      ...readiness.faults.map((message) => ({ from: "runtime" as const, message })),
      ...this.#state.problems(),
      ...driftNotices(this.#lastPass.report),
      ...view.refused.map(refusalOf),
    ]);
    this.#file.offer(() => this.status());
  }

  async #end(): Promise<void> {
    this.#pods.manager.stop();
    await withinMs(this.#pods.manager.rest(), REST_MS);
    await this.#file.close(this.status());
    await this.#server?.close();
    await this.#pods.close();
  }
}

const notReadyOf = (faults: readonly string[]) => (faults.length === 0 ? {} : { notReady: faults });

/** Resolves with the work, or after `ms`. */
async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
