import type { ProbeType, StoredResult } from "../../model/probe-spec.ts";
import type {
  ContainerRun,
  OutcomeWord,
  ProbeNodeEvent,
  ProbeQuirk,
  ProbeTiming,
  Span,
} from "../../model/probes-decision.ts";
import type { BackOffLimits } from "./back-off.ts";
import { startWorker, step } from "./worker.ts";
import type {
  AttemptOutcome,
  PodForProbe,
  TimedWorkerSpec,
  Worker,
  WorkerEffect,
  WorkerEvent,
  WorkerStep,
} from "./worker-state.ts";

interface ScheduledRun {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * A clock that jumps from one due event to the next; simultaneous events keep the order in which they were scheduled.
 */
export class SimClock {
  nowMs = 0;
  readonly #due: ScheduledRun[] = [];
  #order = 0;

  at(atMs: number, run: () => void): void {
    const due = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    let i = this.#due.push(due) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (isSooner(this.#due[parent] as ScheduledRun, due)) break;
      this.#due[i] = this.#due[parent] as ScheduledRun;
      i = parent;
    }
    this.#due[i] = due;
  }

  /** Runs what is due until `endMs`, that moment included, or until `isOver`. */
  runUntil(endMs: number, isOver: () => boolean): void {
    for (let next = this.#due[0]; next !== undefined && next.atMs <= endMs; next = this.#due[0]) {
      if (isOver()) return;
      this.#takeFirst();
      this.nowMs = next.atMs;
      next.run();
    }
    this.nowMs = endMs;
  }

  #takeFirst(): void {
    const last = this.#due.pop() as ScheduledRun;
    const { length } = this.#due;
    if (length === 0) return;
    let i = 0;
    for (let child = 1; child < length; child = 2 * i + 1) {
      if (child + 1 < length && isSooner(this.#due[child + 1] as ScheduledRun, this.#due[child] as ScheduledRun))
        child++;
      if (isSooner(last, this.#due[child] as ScheduledRun)) break;
      this.#due[i] = this.#due[child] as ScheduledRun;
      i = child;
    }
    this.#due[i] = last;
  }
}
const isSooner = (a: ScheduledRun, b: ScheduledRun): boolean =>
  a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** The parts of its pod that a lane needs. */
export interface SimulatedPod {
  readonly clock: SimClock;
  /** Returns what this worker sees of the pod now. */
  seen(): PodForProbe;
  onEffect(lane: SimProbeWorker, effect: Extract<WorkerEffect, { kind: "set" | "event" | "quirk" }>): void;
  attempted(): void;
}

/** One worker of the dry run, with its script and its record. */
export class SimProbeWorker implements ProbeTrace {
  readonly attempts: AttemptMade[] = [];
  readonly results: ProbeTrace["results"][number][] = [];
  readonly onHold: { -readonly [K in keyof Span]: Span[K] }[] = [];
  readonly #pod: SimulatedPod;
  readonly #script: readonly ScriptedAttempt[];
  #spec: TimedWorkerSpec;
  #worker: Worker | null = null;
  /** The number of the wait in progress; answers to earlier ones are ignored. */
  #wait = 0;
  #asked = 0;

  constructor(pod: SimulatedPod, { timing, type, script }: TimelineProbe, sidecar: boolean, strict: boolean) {
    this.#pod = pod;
    this.#script = script;
    this.#spec = { type, probe: timing, sidecar, strict, managerStartMs: LONG_AGO };
  }
  get type(): ProbeType {
    return this.#spec.type;
  }
  /** A worker begins, of a kubelet that has long run, or that starts now. */
  begin(managerStartMs: number | null, jitter: number): void {
    this.#spec = { ...this.#spec, managerStartMs: managerStartMs ?? LONG_AGO };
    this.#take(startWorker(this.#spec, this.#pod.clock.nowMs, jitter));
  }
  /** The result that is stored for a container; null: none. */
  storedFor(containerId: string): StoredResult | null {
    return this.#worker?.containerId === containerId ? this.#worker.stored : null;
  }
  get isRunning(): boolean {
    return this.#worker !== null && this.#worker.at !== "ended";
  }
  trigger(): void {
    this.#step({ on: "trigger", atMs: this.#pod.clock.nowMs, pod: this.#pod.seen() });
  }

  #step(event: WorkerEvent): void {
    if (this.#worker !== null) this.#take(step(this.#spec, this.#worker, event));
  }
  #take({ next, effects }: WorkerStep): void {
    if (next.onHold !== (this.#worker?.onHold ?? false)) this.#noteHold(next.onHold);
    this.#worker = next;
    for (const effect of effects) this.#applyEffect(effect);
  }
  #applyEffect(effect: WorkerEffect): void {
    const { clock } = this.#pod;
    switch (effect.kind) {
      case "wake": {
        const wait = ++this.#wait;
        clock.at(effect.atMs, () => {
          if (wait === this.#wait) this.#step({ on: "tick", atMs: clock.nowMs, pod: this.#pod.seen() });
        });
        return;
      }
      case "attempt":
        this.#attempt(effect.containerId);
        return;
      case "set":
        this.results.push({ atMs: clock.nowMs, containerId: effect.containerId, result: effect.result });
        this.#pod.onEffect(this, effect);
        return;
      case "event":
      case "quirk":
        this.#pod.onEffect(this, effect);
    }
  }
  #attempt(containerId: string): void {
    const { clock } = this.#pod;
    const { word, outcome, tookMs } = this.#script[Math.min(this.#asked++, this.#script.length - 1)] as ScriptedAttempt;
    this.attempts.push({ atMs: clock.nowMs, containerId, outcome: word, tookMs });
    this.#pod.attempted();
    const wait = ++this.#wait;
    clock.at(clock.nowMs + tookMs, () => {
      if (wait === this.#wait) this.#step({ on: "attempted", atMs: clock.nowMs, outcome });
    });
  }
  #noteHold(isHeld: boolean): void {
    const { nowMs } = this.#pod.clock;
    const last = this.onHold.at(-1);
    if (isHeld) this.onHold.push({ fromMs: nowMs, toMs: null });
    else if (last !== undefined) last.toMs = nowMs;
  }
}
/** Longer than any period. */
const LONG_AGO = -1e12;

/** A scripted outcome, as the worker receives it. */
export interface ScriptedAttempt {
  readonly word: OutcomeWord;
  readonly outcome: AttemptOutcome;
  readonly tookMs: number;
}
interface TimelineProbe {
  readonly type: ProbeType;
  readonly timing: ProbeTiming;
  /** The outcomes of successive attempts, whatever the container; the last repeats. At least one. */
  readonly script: readonly ScriptedAttempt[];
}
export interface TimelineContainer {
  readonly name: string;
  readonly sidecar: boolean;
  readonly restartPolicy: "Always" | "OnFailure" | "Never";
  readonly probes: readonly TimelineProbe[];
}
/** A pod and what befalls it. All times in ms since its workers began. */
export interface TimelineInput {
  /** Sidecars first: the others start when these have. */
  readonly containers: readonly TimelineContainer[];
  readonly endMs: number;
  readonly strict: boolean;
  /** The pod's grace period, in seconds. */
  readonly graceSeconds: number;
  /** How long a container takes to stop when asked, and its exit code. */
  readonly stopMs: number;
  readonly exitCode: number;
  /** The delays of CrashLoopBackOff; 0 and 0: there is none. */
  readonly backOff: BackOffLimits;
  /** True: computing the pod's status triggers a readiness probe, as in a kubelet. */
  readonly statusTriggers: boolean;
  readonly kubeletRestartMs: number | null;
  readonly jitter: number;
}

interface AttemptMade {
  readonly atMs: number;
  readonly containerId: string;
  readonly outcome: OutcomeWord;
  readonly tookMs: number;
}
export interface QuirkOccurrence {
  readonly code: ProbeQuirk;
  readonly container: string;
  readonly type: ProbeType;
  times: number;
  readonly firstAtMs: number;
}
export interface ProbeTrace {
  readonly type: ProbeType;
  readonly attempts: readonly AttemptMade[];
  readonly results: readonly {
    readonly atMs: number;
    readonly containerId: string;
    readonly result: "Unknown" | "Success" | "Failure";
  }[];
  readonly onHold: readonly Span[];
}
export interface ContainerTrace {
  readonly name: string;
  readonly restarts: number;
  readonly runs: readonly ContainerRun[];
  readonly started: readonly Span[];
  readonly ready: readonly Span[];
  readonly lanes: readonly ProbeTrace[];
}
export interface Timeline {
  readonly endMs: number;
  readonly truncated: boolean;
  readonly containers: readonly ContainerTrace[];
  readonly ready: readonly Span[];
  readonly events: readonly ProbeNodeEvent[];
  readonly quirks: readonly QuirkOccurrence[];
}
