import { nextAtPhase, phaseOf } from "../../../api/decide/probes/plan.ts";
import { startWorker, step } from "../../../api/decide/probes/worker.ts";
import type {
  AttemptOutcome,
  Worker,
  WorkerEffect,
  WorkerEvent,
  WorkerStep,
} from "../../../api/decide/probes/worker-state.ts";
import type { FailedContainer, GuardSettings } from "../../../api/model/probe-guard.ts";
import type { StoredResult } from "../../../api/model/probe-spec.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { ProbeCounters } from "../../status/counters.ts";
import type { Attempt, ExecLimit, ProbeDeps } from "./attempt.ts";
import type { ProbeEventRecorder, ProbeHistory } from "./history.ts";
import type { Guarded, GuardStateFile, LivenessStormGuard } from "./liveness-storm-guard.ts";
import { type ProbeClock, type ProbeTime, TimerHeap } from "./probe-time.ts";
import type { ProbeWorker } from "./probe-worker.ts";
import type { ProbeChange, ProbeResults, ProbeWarning } from "./probed.ts";

interface AttemptsDeps {
  readonly attempt: Attempt;
  readonly runtime: ProbeDeps;
  readonly time: ProbeTime;
  readonly counters: ProbeCounters;
  readonly execLimit: ExecLimit;
  /** `seconds`: the duration without the time in the queue. */
  readonly onOutcome: (worker: ProbeWorker, outcome: AttemptOutcome, seconds: number) => void;
  /** Called for an exec that waited in the queue longer than its period. */
  readonly onOverdue: (worker: ProbeWorker, seconds: number) => void;
}

/** Runs attempts; the number of concurrent execs is limited. */
class Attempts {
  readonly #deps: AttemptsDeps;

  constructor(deps: AttemptsDeps) {
    this.#deps = deps;
  }

  begin(worker: ProbeWorker, containerId: string): void {
    const number = ++worker.attempt;
    if (worker.handler !== "exec") {
      void this.#run(worker, containerId, number);
      return;
    }
    const { execLimit, time } = this.#deps;
    const queuedMs = time.now();
    let hasBegun = false;
    const unqueue = execLimit.add(worker.name.podUid, () => {
      hasBegun = true;
      worker.unqueue = null;
      const waitedMs = time.now() - queuedMs;
      if (waitedMs > worker.periodMs) this.#overdue(worker, waitedMs / 1000);
      return this.#run(worker, containerId, number);
    });
    if (!hasBegun) worker.unqueue = unqueue;
  }

  /** Drops a probe's queued or running attempt. */
  drop(worker: ProbeWorker): void {
    worker.attempt++;
    worker.unqueue?.();
    worker.unqueue = null;
  }

  #overdue(worker: ProbeWorker, seconds: number): void {
    this.#deps.counters.execProbeWaited();
    this.#deps.onOverdue(worker, seconds);
  }

  async #run(worker: ProbeWorker, containerId: string, number: number): Promise<void> {
    const { attempt, runtime, time, counters, onOutcome } = this.#deps;
    const beganMs = time.now();
    let outcome: AttemptOutcome;
    try {
      outcome = await attempt(worker.asked(containerId), runtime);
    } catch (error) {
      // as in the kubelet, whose worker survives a panic of its probe
      outcome = { error: (error as Error).message };
    }
    const seconds = (time.now() - beganMs) / 1000;
    counters.probed(worker.spec.type, "error" in outcome ? "error" : outcome.result, seconds);
    if (worker.attempt === number) onOutcome(worker, outcome, seconds);
  }
}

/** Numbers the probes of one period: each gets the lowest free number, so that they stay evenly spread. */
export class ProbeSlots {
  readonly #taken = new Map<number, Set<number>>();
  /** The lowest number that may be free, by period. */
  readonly #lowest = new Map<number, number>();

  take(periodMs: number): number {
    const taken = this.#taken.get(periodMs) ?? new Set();
    let index = this.#lowest.get(periodMs) ?? 0;
    while (taken.has(index)) index++;
    taken.add(index);
    this.#taken.set(periodMs, taken);
    this.#lowest.set(periodMs, index + 1);
    return index;
  }

  give(periodMs: number, index: number): void {
    const taken = this.#taken.get(periodMs);
    taken?.delete(index);
    this.#lowest.set(periodMs, Math.min(index, this.#lowest.get(periodMs) ?? 0));
    if (taken?.size === 0) {
      this.#taken.delete(periodMs);
      this.#lowest.delete(periodMs);
    }
  }

  /** When the probe with this number is next due, not before `nowMs`. */
  static nextMs(index: number, periodMs: number, epochMs: number, nowMs: number): number {
    return nextAtPhase(phaseOf(index, periodMs), periodMs, epochMs, nowMs);
  }
}

/** Waits of execs within this time are one event, and people are told of them for this long. */
export const REPORT_MS = 60_000;

interface Cause {
  /** The kubelet quirk that caused the change. */
  readonly quirk: string | undefined;
  /** True: an attempt caused it; otherwise it is an initial result, or that of a container that does not run. */
  readonly byAttempt: boolean;
}

/** Drives workers: sends events to the reducer, and carries out its effects. */
export class ProbeEngine {
  readonly #parts: EngineParts;
  readonly #timers: TimerHeap<ProbeWorker>;
  readonly #attempts: Attempts;
  readonly #phases = new ProbeSlots();
  readonly #startMs: number;
  #isClosed = false;

  constructor(parts: EngineParts) {
    const { deps, settings, time, execLimit, events, onOverdue } = parts;
    const { attempt, runtime, counters, clock } = deps;
    this.#parts = parts;
    this.#startMs = time.fromWall(settings.startedAtMs);
    this.#timers = new TimerHeap(time, clock.after, (worker) => this.#onDue(worker));
    this.#attempts = new Attempts({
      ...{ attempt, runtime, time, counters, execLimit },
      onOutcome: (worker, outcome, seconds) => this.#attempted(worker, outcome, seconds),
      onOverdue: (worker, seconds) => {
        const nowMs = time.now();
        const lastsMs = Math.max(REPORT_MS, 3 * worker.periodMs);
        if (nowMs - worker.overdueAtMs > lastsMs) events.overdue(worker.name, seconds);
        worker.overdueAtMs = nowMs;
        onOverdue();
      },
    });
  }

  /** When the daemon started, in worker time. */
  get startMs(): number {
    return this.#startMs;
  }

  begin(worker: ProbeWorker): void {
    const { settings, time, deps } = this.#parts;
    const nowMs = time.now();
    if (!settings.spread) {
      this.#apply(worker, startWorker(worker.spec, nowMs, deps.random()));
      return;
    }
    // the start of a container that runs already is not reported again
    if (worker.spec.type === "readiness" && worker.container.state === "running" && !this.#isYoung(worker)) {
      this.#first(worker);
      return;
    }
    worker.phase = this.#phases.take(worker.periodMs);
    this.#timers.set(worker, ProbeSlots.nextMs(worker.phase, worker.periodMs, this.#startMs, nowMs));
  }

  /** Probes out of turn. While the daemon is young, its probes keep their spread, as the kubelet's wait for their jitter. */
  trigger(worker: ProbeWorker): void {
    if (worker.state !== null) this.#step(worker, this.#turn("trigger", worker));
    else if (!this.#isYoung(worker)) this.#first(worker);
  }

  stop(worker: ProbeWorker): void {
    const { spec, state } = worker;
    const atMs = this.#parts.time.now();
    // a worker that has not begun has no state to end
    if (state === null) worker.state = { ...startWorker(spec, atMs, 0).next, at: "waiting" };
    else if (worker.unqueue !== null) {
      this.#attempts.drop(worker);
      worker.state = { ...state, at: "waiting" };
    }
    this.#step(worker, { on: "stop", atMs });
  }

  /** Kills the container, since the guard lets it. */
  kill(worker: ProbeWorker): void {
    if (worker.state === null || worker.isEnded) return;
    this.#attempts.drop(worker);
    this.#apply(worker, killNow(worker.state), true);
  }

  close(workers: Iterable<ProbeWorker>): void {
    this.#isClosed = true;
    this.#timers.close();
    for (const worker of workers) this.#attempts.drop(worker);
  }

  #onDue(worker: ProbeWorker): void {
    const { time, deps } = this.#parts;
    deps.counters.probeLate((time.now() - worker.dueMs) / 1000);
    if (worker.state === null) this.#first(worker);
    else this.#step(worker, this.#turn("tick", worker));
  }

  #first(worker: ProbeWorker): void {
    worker.state = startWorker(worker.spec, this.#parts.time.now(), 0).next;
    this.#step(worker, this.#turn("tick", worker));
  }
  /** True during the period after the daemon's start. kubelet 1.36: worker.run, which waits a random part of it. */
  #isYoung({ periodMs }: ProbeWorker): boolean {
    return periodMs > this.#parts.time.now() - this.#startMs;
  }
  #turn(on: "tick" | "trigger", worker: ProbeWorker): WorkerEvent {
    const { time, isStarted } = this.#parts;
    return { on, atMs: time.now(), pod: worker.seen(time, isStarted(worker)) };
  }

  #attempted(worker: ProbeWorker, outcome: AttemptOutcome, seconds: number): void {
    if (this.#isClosed) return;
    const atMs = this.#parts.time.now();
    const { events, deps } = this.#parts;
    const noted = worker.note(outcome, deps.clock.nowMs(), seconds);
    events.ran(worker.name, noted);
    const { containerId = null, stored } = worker.state ?? {};
    this.#step(worker, { on: "attempted", atMs, outcome });
    const isChange = worker.state?.stored !== stored;
    if (noted.isFirst && noted.kind !== "success" && !isChange && containerId !== null)
      events.first(worker, containerId, noted.kind);
  }

  #step(worker: ProbeWorker, event: WorkerEvent): void {
    const { state, spec } = worker;
    const { storm } = this.#parts;
    if (state === null) return;
    const taken = step(spec, state, event);
    if (event.on === "attempted") this.#apply(worker, guarded(storm, worker, state, taken), true);
    else this.#apply(worker, taken);
  }

  #apply(worker: ProbeWorker, { next, effects }: WorkerStep, byAttempt = false): void {
    const isStopping = worker.state?.stopping === true;
    const quirk = effects.find((effect) => effect.kind === "quirk")?.code;
    worker.state = next;
    for (const effect of effects) {
      // whoever stopped the worker wants no result of it
      if (effect.kind === "set" && isStopping) continue;
      this.#do(worker, effect, { quirk, byAttempt });
    }
  }

  #do(worker: ProbeWorker, effect: WorkerEffect, cause: Cause): void {
    const { time, results, deps, storm } = this.#parts;
    switch (effect.kind) {
      case "attempt":
        this.#timers.remove(worker);
        this.#attempts.begin(worker, effect.containerId);
        break;
      case "wake":
        if (!this.#isClosed) this.#timers.set(worker, Math.max(effect.atMs, time.now()));
        break;
      case "set":
        this.#set(worker, effect.containerId, effect.result, cause);
        break;
      case "forget":
        results.forget(effect.containerId, worker.spec.type);
        worker.resultSince(null);
        if (worker.spec.type === "liveness") storm?.gone(effect.containerId);
        worker.reported = null;
        break;
      case "event":
        deps.onEvent({ ...worker.name, reason: effect.reason, message: effect.message });
        break;
      case "stop":
        this.#timers.remove(worker);
        if (worker.phase !== null) this.#phases.give(worker.periodMs, worker.phase);
        worker.phase = null;
        break;
    }
  }

  #set(worker: ProbeWorker, containerId: string, result: StoredResult, cause: Cause): void {
    const { byAttempt } = cause;
    const { results, deps, events, onStarted } = this.#parts;
    const { type, probe } = worker.spec;
    const was = results.get(containerId, type) ?? null;
    results.set(containerId, type, result);
    worker.resultSince(deps.clock.nowMs());
    deps.counters.probeResult(type, result);
    const output = byAttempt && result === "Failure" ? worker.lastOutput : "";
    const change = { ...worker.name, containerId, result, was, output, probe };
    // the initial result of a container is not recorded
    if (byAttempt || was !== null) events.changed(change, cause);
    deps.onResult(change);
    if (type === "startup" && result === "Success") onStarted(worker);
  }
}

interface EngineParts {
  readonly deps: ManagerDeps;
  readonly settings: ManagerSettings;
  readonly time: ProbeTime;
  readonly results: ProbeResults;
  readonly execLimit: ExecLimit;
  readonly events: ProbeEventRecorder;
  readonly storm: LivenessStormGuard | null;
  readonly isStarted: (worker: ProbeWorker) => boolean;
  /** Called when the worker's container has just become started. */
  readonly onStarted: (worker: ProbeWorker) => void;
  readonly onOverdue: () => void;
}

/**
 * Adjusts the step after an attempt: the guard is told of liveness probes that fail, and of those that succeed again; a kill
 * waits for its decision, and meanwhile the container is still probed.
 */
function guarded(storm: LivenessStormGuard | null, worker: ProbeWorker, before: Worker, taken: WorkerStep): WorkerStep {
  const { spec } = worker;
  const { containerId } = before;
  if (storm === null || spec.type !== "liveness" || before.stopping || containerId === null) return taken;
  worker.reported ??= storm.inherited(containerId, worker);
  if (taken.effects.some((effect) => effect.kind === "set" && effect.result === "Failure")) {
    worker.reported = "failed";
    storm.failed(failureOf(worker, containerId), worker);
    return killHeld(before, taken);
  }
  if (!isCounted(before, taken.next)) return taken;
  if (taken.next.lastResult === "Failure") {
    worker.reported ??= "failing";
    storm.failing(failureOf(worker, containerId));
  } else if (worker.reported !== null) {
    worker.reported = null;
    storm.recovered(containerId);
  }
  return taken;
}

const failureOf = ({ name, pod }: ProbeWorker, containerId: string): FailedContainer => ({
  containerId,
  container: `${name.namespace}/${name.pod}/${name.container}`,
  group: pod.owner ?? pod.uid,
});

/** Checks that a result was counted: a discarded one changes no run. */
const isCounted = (before: Worker, next: Worker): boolean =>
  next.lastResult !== before.lastResult || next.resultRun !== before.resultRun;

/** Keeps the stored result and lets the run continue, so that the next failure reaches the threshold again. */
const killHeld = (before: Worker, { next, effects }: WorkerStep): WorkerStep => ({
  next: {
    ...next,
    stored: before.stored,
    onHold: false,
    resultRun: before.lastResult === "Failure" ? before.resultRun + 1 : 1,
  },
  effects: effects.filter(({ kind }) => kind !== "set"),
});

/** The worker's step for a held kill that goes ahead. kubelet 1.36: the end of worker.doProbe. */
const killNow = (worker: Worker): WorkerStep => ({
  next: { ...worker, at: "waiting", stored: "Failure", onHold: true, resultRun: 0 },
  effects:
    worker.containerId === null
      ? []
      : [
          { kind: "set", containerId: worker.containerId, result: "Failure" },
          { kind: "wake", atMs: worker.nextTickMs },
        ],
});

export interface ManagerDeps {
  readonly attempt: Attempt;
  /** Runs a command in a container. */
  readonly runtime: ProbeDeps;
  readonly clock: ProbeClock;
  /** A random number from 0 to below 1. */
  readonly random: () => number;
  readonly counters: ProbeCounters;
  readonly history: Pick<ProbeHistory, "add" | "flush">;
  /** Called for changes only, including initial results. It must not call back. */
  readonly onResult: (change: ProbeChange) => void;
  readonly onEvent: (warning: ProbeWarning) => void;
  /** Called when the set of held kills changes. */
  readonly onGuard: (guarded: Guarded) => void;
  /** Absent: a restarted daemon does not know what the guard held. */
  readonly guardStateFile?: Pick<GuardStateFile, "read" | "persist">;
}
export interface ManagerSettings {
  /** Wall-clock time at which the daemon started. */
  readonly startedAtMs: number;
  /** True: documented behaviour instead of the kubelet's quirks. */
  readonly strict: boolean;
  /** True: probes of one period are spread evenly over it; false: the kubelet's jitter, while the daemon is young. */
  readonly spread: boolean;
  /** The number of concurrent execs. */
  readonly execLimit: number;
  /** The guard's settings; null: every failed liveness probe kills at once, as in the kubelet. */
  readonly guard: GuardSettings | null;
  /** The kubelet version that is reimplemented. */
  readonly profile: Profile;
}
