import type { ProbeType, StoredResult } from "../../model/probe.ts";
import type { Span } from "../../model/probes-decision.ts";
import type { SimClock } from "./sim-clock.ts";
import type { AttemptMade, LaneTrace, ScriptedAttempt, TimelineProbe } from "./timeline-input.ts";
import { startWorker, step } from "./worker.ts";
import type { PodSeen, TimedWorkerSpec, Worker, WorkerEffect, WorkerEvent, WorkerStep } from "./worker-state.ts";

/** What a lane needs of the pod around it. */
export interface LanePod {
  readonly clock: SimClock;
  /** What this worker sees of the pod now. */
  seen(): PodSeen;
  told(lane: Lane, effect: Extract<WorkerEffect, { kind: "set" | "event" | "quirk" }>): void;
  attempted(): void;
}

/** One worker of the dry run with its script and its record. */
export class Lane implements LaneTrace {
  readonly attempts: AttemptMade[] = [];
  readonly results: LaneTrace["results"][number][] = [];
  readonly onHold: { -readonly [K in keyof Span]: Span[K] }[] = [];
  readonly #pod: LanePod;
  readonly #script: readonly ScriptedAttempt[];
  #spec: TimedWorkerSpec;
  #worker: Worker | null = null;
  /** Of what it waits for; what was asked for before is not heeded. */
  #wait = 0;
  #asked = 0;

  constructor(pod: LanePod, { timing, type, script }: TimelineProbe, sidecar: boolean, strict: boolean) {
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
  /** What is stored for a container; null: nothing. */
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
    for (const effect of effects) this.#heed(effect);
  }
  #heed(effect: WorkerEffect): void {
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
        this.#pod.told(this, effect);
        return;
      case "event":
      case "quirk":
        this.#pod.told(this, effect);
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
