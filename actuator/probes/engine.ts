import { startWorker, step } from "../../api/decide/probes/worker.ts";
import type { AttemptOutcome, WorkerEffect, WorkerEvent, WorkerStep } from "../../api/decide/probes/worker-state.ts";
import type { StoredResult } from "../../api/model/probe.ts";
import { Attempts } from "./attempts.ts";
import type { EngineParts } from "./engine-parts.ts";
import { guarded, killNow } from "./held-kill.ts";
import type { LiveWorker } from "./live-worker.ts";
import { Phases } from "./phases.ts";
import { Wakes } from "./wakes.ts";

/** So long execs that wait are one event, and a person is told that they do. */
export const TOLD_MS = 60_000;

interface Cause {
  /** One of the kubelet's. */
  readonly quirk: string | undefined;
  /** One led to it; else what is stored is a beginning, or that of a container that does not run. */
  readonly byAttempt: boolean;
}

/** Drives workers: gives the reducer its events, and does what it says. */
export class ProbeEngine {
  readonly #parts: EngineParts;
  readonly #wakes: Wakes<LiveWorker>;
  readonly #attempts: Attempts;
  readonly #phases = new Phases();
  readonly #startMs: number;
  #isClosed = false;

  constructor(parts: EngineParts) {
    const { ports, settings, time, execLimit, chronicle, onOverdue } = parts;
    const { attempt, runtime, counters, clock } = ports;
    this.#parts = parts;
    this.#startMs = time.fromWall(settings.startedAtMs);
    this.#wakes = new Wakes(time, clock.after, (worker) => this.#woken(worker));
    this.#attempts = new Attempts({
      ...{ attempt, runtime, time, counters, execLimit },
      onOutcome: (worker, outcome, seconds) => this.#attempted(worker, outcome, seconds),
      onOverdue: (worker, seconds) => {
        const nowMs = time.now();
        const lastsMs = Math.max(TOLD_MS, 3 * worker.periodMs);
        if (nowMs - worker.overdueAtMs > lastsMs) chronicle.overdue(worker.name, seconds);
        worker.overdueAtMs = nowMs;
        onOverdue();
      },
    });
  }

  /** When the daemon started, as the workers count. */
  get startMs(): number {
    return this.#startMs;
  }

  begin(worker: LiveWorker): void {
    const { settings, time, ports } = this.#parts;
    const nowMs = time.now();
    if (!settings.spread) {
      this.#apply(worker, startWorker(worker.spec, nowMs, ports.random()));
      return;
    }
    // of a container that runs already nobody tells that it starts
    if (worker.spec.type === "readiness" && worker.container.state === "running" && !this.#isYoung(worker)) {
      this.#first(worker);
      return;
    }
    worker.phase = this.#phases.take(worker.periodMs);
    this.#wakes.set(worker, Phases.nextMs(worker.phase, worker.periodMs, this.#startMs, nowMs));
  }

  /** Out of turn. While the daemon is young its probes keep to their spread, as the kubelet's sleep their jitter out. */
  trigger(worker: LiveWorker): void {
    if (worker.state !== null) this.#step(worker, this.#turn("trigger", worker));
    else if (!this.#isYoung(worker)) this.#first(worker);
  }

  stop(worker: LiveWorker): void {
    const { spec, state } = worker;
    const atMs = this.#parts.time.now();
    // one that has not begun has nothing to end
    if (state === null) worker.state = { ...startWorker(spec, atMs, 0).next, at: "waiting" };
    else if (worker.unqueue !== null) {
      this.#attempts.drop(worker);
      worker.state = { ...state, at: "waiting" };
    }
    this.#step(worker, { on: "stop", atMs });
  }

  /** The guard lets the kill of this container go ahead. */
  kill(worker: LiveWorker): void {
    if (worker.state === null || worker.isEnded) return;
    this.#attempts.drop(worker);
    this.#apply(worker, killNow(worker.state), true);
  }

  close(workers: Iterable<LiveWorker>): void {
    this.#isClosed = true;
    this.#wakes.close();
    for (const worker of workers) this.#attempts.drop(worker);
  }

  #woken(worker: LiveWorker): void {
    const { time, ports } = this.#parts;
    ports.counters.probeLate((time.now() - worker.dueMs) / 1000);
    if (worker.state === null) this.#first(worker);
    else this.#step(worker, this.#turn("tick", worker));
  }

  #first(worker: LiveWorker): void {
    worker.state = startWorker(worker.spec, this.#parts.time.now(), 0).next;
    this.#step(worker, this.#turn("tick", worker));
  }
  /** kubelet 1.36: worker.run, which lets its workers sleep so long. */
  #isYoung({ periodMs }: LiveWorker): boolean {
    return periodMs > this.#parts.time.now() - this.#startMs;
  }
  #turn(on: "tick" | "trigger", worker: LiveWorker): WorkerEvent {
    const { time, isStarted } = this.#parts;
    return { on, atMs: time.now(), pod: worker.seen(time, isStarted(worker)) };
  }

  #attempted(worker: LiveWorker, outcome: AttemptOutcome, seconds: number): void {
    if (this.#isClosed) return;
    const atMs = this.#parts.time.now();
    const { chronicle, ports } = this.#parts;
    const noted = worker.note(outcome, ports.clock.nowMs(), seconds);
    chronicle.ran(worker.name, noted);
    const { containerId = null, stored } = worker.state ?? {};
    this.#step(worker, { on: "attempted", atMs, outcome });
    const isChange = worker.state?.stored !== stored;
    if (noted.isFirst && noted.kind !== "success" && !isChange && containerId !== null)
      chronicle.first(worker, containerId, noted.kind);
  }

  #step(worker: LiveWorker, event: WorkerEvent): void {
    const { state, spec } = worker;
    const { storm } = this.#parts;
    if (state === null) return;
    const taken = step(spec, state, event);
    if (event.on === "attempted") this.#apply(worker, guarded(storm, worker, state, taken), true);
    else this.#apply(worker, taken);
  }

  #apply(worker: LiveWorker, { next, effects }: WorkerStep, byAttempt = false): void {
    const isStopping = worker.state?.stopping === true;
    const quirk = effects.find((effect) => effect.kind === "quirk")?.code;
    worker.state = next;
    for (const effect of effects) {
      // who has stopped it wants to hear no result of it
      if (effect.kind === "set" && isStopping) continue;
      this.#do(worker, effect, { quirk, byAttempt });
    }
  }

  #do(worker: LiveWorker, effect: WorkerEffect, cause: Cause): void {
    const { time, results, ports, storm } = this.#parts;
    switch (effect.kind) {
      case "attempt":
        this.#wakes.remove(worker);
        this.#attempts.begin(worker, effect.containerId);
        break;
      case "wake":
        if (!this.#isClosed) this.#wakes.set(worker, Math.max(effect.atMs, time.now()));
        break;
      case "set":
        this.#set(worker, effect.containerId, effect.result, cause);
        break;
      case "forget":
        results.forget(effect.containerId, worker.spec.type);
        worker.resultSince(null);
        if (worker.spec.type === "liveness") storm?.gone(effect.containerId);
        worker.told = null;
        break;
      case "event":
        ports.onEvent({ ...worker.name, reason: effect.reason, message: effect.message });
        break;
      case "stop":
        this.#wakes.remove(worker);
        if (worker.phase !== null) this.#phases.give(worker.periodMs, worker.phase);
        worker.phase = null;
        break;
    }
  }

  #set(worker: LiveWorker, containerId: string, result: StoredResult, cause: Cause): void {
    const { byAttempt } = cause;
    const { results, ports, chronicle, onStarted } = this.#parts;
    const { type, probe } = worker.spec;
    const was = results.get(containerId, type) ?? null;
    results.set(containerId, type, result);
    worker.resultSince(ports.clock.nowMs());
    ports.counters.probeResult(type, result);
    const output = byAttempt && result === "Failure" ? worker.lastOutput : "";
    const change = { ...worker.name, containerId, result, was, output, probe };
    // what stands before the first attempt of a container is no news
    if (byAttempt || was !== null) chronicle.changed(change, cause);
    ports.onResult(change);
    if (type === "startup" && result === "Success") onStarted(worker);
  }
}
