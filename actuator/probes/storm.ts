import { decideProbeGuard } from "../../api/decide/probes/decide-guard.ts";
import type {
  FailedContainer,
  GuardSettings,
  KnownFailure,
  ProbeGuardAsk,
  ProbeGuardDecision,
} from "../../api/model/probe-guard.ts";
import type { ProbeClock } from "./clock.ts";
import { Failing } from "./failing.ts";
import { type GuardMemory, later } from "./guard-memory.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { ProbeTime } from "./probe-time.ts";

/** A decision of the guard that changed what is held, and what it was asked. */
export interface Guarded {
  readonly ask: ProbeGuardAsk;
  readonly decision: ProbeGuardDecision;
  /** When it begins to hold: the containers that were killed in the window before, for they were too few. */
  readonly killedBefore: readonly string[];
}
export interface StormPorts {
  readonly settings: GuardSettings;
  readonly time: Pick<ProbeTime, "now">;
  readonly after: ProbeClock["after"];
  /** Groups of pods that have a liveness probe. */
  readonly groups: () => number;
  /** Ids of the containers that have one. */
  readonly containers: () => ReadonlySet<string>;
  /** Undefined: a restart forgets. */
  readonly memory: Pick<GuardMemory, "read" | "keep"> | undefined;
  /** The kill of the container goes ahead. */
  readonly onKill: (worker: LiveWorker) => void;
  readonly onGuarded: (guarded: Guarded) => void;
}
/** What fails together is judged together; a kill waits no longer for it. */
const GATHER_MS = 100;
/** While kills are held a little longer is nothing to them, and of what thousands do little is to be told. */
const GATHER_HOLDING_MS = 1000;

/** Gathers what the guard decides on, and remembers what it knows. */
export class Storm {
  readonly #ports: StormPorts;
  /** As of that moment. */
  #known: readonly KnownFailure[];
  #knownIds: ReadonlySet<string>;
  #knownAtMs: number;
  readonly #failing: Failing;
  /** Known by the daemon before this one, and not asked since. */
  readonly #inherited: Map<string, KnownFailure>;
  /** By container, with when. */
  readonly #killed = new Map<string, { readonly container: string; readonly atMs: number }>();
  /** Of those that the guard knows, or will. */
  readonly #workers = new Map<string, LiveWorker>();
  #holding: ProbeGuardDecision | null = null;
  /** By container. */
  #failed = new Map<string, FailedContainer>();
  #recovered: string[] = [];
  #gone: string[] = [];
  #disarm: (() => void) | null = null;

  constructor(ports: StormPorts) {
    this.#ports = ports;
    const { settings, time, memory } = ports;
    this.#failing = new Failing(settings.windowSeconds * 1000);
    this.#known = (memory?.read() ?? []).filter(({ failedAgoMs, heldForMs }) =>
      heldForMs === null ? failedAgoMs <= settings.windowSeconds * 1000 : heldForMs < settings.holdSeconds * 1000,
    );
    this.#knownIds = idsOf(this.#known);
    this.#knownAtMs = time.now();
    this.#inherited = new Map(this.#known.map((failure) => [failure.containerId, failure]));
  }

  /** The last word on what is held; null: nothing is. */
  get holding(): ProbeGuardDecision | null {
    return this.#holding;
  }

  /** What the daemon before this one knew of a container that is asked for the first time now; null: nothing. */
  inherited(containerId: string, worker: LiveWorker): LiveWorker["told"] {
    const failure = this.#inherited.get(containerId);
    if (failure === undefined) return null;
    this.#inherited.delete(containerId);
    this.#workers.set(containerId, worker);
    return failure.heldForMs === null ? "failing" : "failed";
  }

  /** An attempt failed, and the threshold is not reached: judged when another one's is. */
  failing(failure: FailedContainer): void {
    this.#failing.note(failure, this.#ports.time.now());
  }
  /** The threshold is reached. */
  failed(failure: FailedContainer, worker: LiveWorker): void {
    this.#failing.forget(failure.containerId);
    this.#workers.set(failure.containerId, worker);
    this.#failed.set(failure.containerId, failure);
    this.#arm();
  }
  recovered(containerId: string): void {
    this.#failing.forget(containerId);
    if (!this.#knows(containerId)) return;
    this.#failed.delete(containerId);
    this.#recovered.push(containerId);
    this.#arm();
  }
  gone(containerId: string): void {
    this.#failing.forget(containerId);
    if (!this.#knows(containerId)) return;
    this.#failed.delete(containerId);
    this.#gone.push(containerId);
    this.#arm();
  }
  close(): void {
    this.#disarm?.();
  }

  #knows(containerId: string): boolean {
    return this.#failed.has(containerId) || this.#knownIds.has(containerId);
  }
  #arm(): void {
    const gatherMs = this.#holding === null ? GATHER_MS : GATHER_HOLDING_MS;
    this.#disarm ??= this.#ports.after(gatherMs, () => this.#judge());
  }
  #judge(): void {
    const { time, memory, onKill, onGuarded } = this.#ports;
    this.#disarm = null;
    const nowMs = time.now();
    const ask = this.#ask(nowMs);
    // a kill waits for no API: what is decided here is what it is told
    const decided = decideProbeGuard({ snapshot: {}, facts: {}, ask, explain: "off" });
    if (!decided.ok) return;
    const { decision } = decided.value;
    this.#known = decision.known;
    this.#knownIds = idsOf(decision.known);
    this.#knownAtMs = nowMs;
    const isChange = decision.released.length > 0 || decision.hold.some(({ heldForMs }) => heldForMs === 0);
    if (isChange || decision.kill.length > 0) memory?.keep(decision.known);
    const killedBefore = this.#holding === null && decision.holding > 0 ? this.#killedSince(nowMs) : [];
    if (isChange || this.#holding === null) this.#holding = decision.holding > 0 ? decision : null;
    if (isChange) onGuarded({ ask, decision, killedBefore });
    for (const { containerId, container } of decision.kill) this.#killed.set(containerId, { container, atMs: nowMs });
    for (const { containerId } of decision.kill) {
      const worker = this.#workers.get(containerId);
      if (worker !== undefined) onKill(worker);
    }
    for (const id of this.#workers.keys()) if (!this.#knownIds.has(id)) this.#workers.delete(id);
  }

  /** Names of those that were killed within the window. */
  #killedSince(nowMs: number): readonly string[] {
    const sinceMs = nowMs - this.#ports.settings.windowSeconds * 1000;
    for (const [containerId, { atMs }] of this.#killed) if (atMs < sinceMs) this.#killed.delete(containerId);
    return [...this.#killed.values()].map(({ container }) => container);
  }

  #ask(nowMs: number): ProbeGuardAsk {
    const { settings, groups } = this.#ports;
    const sinceMs = nowMs - this.#knownAtMs;
    const known = this.#known.map((failure) => later(failure, sinceMs));
    this.#dropInherited();
    const ask = {
      guard: settings,
      groups: groups(),
      known: this.#failing.among(known, nowMs),
      failed: [...this.#failed.values()],
      recovered: this.#recovered,
      gone: this.#gone,
    };
    this.#failed = new Map();
    this.#recovered = [];
    this.#gone = [];
    return ask;
  }
  /** Those that ended while no daemon ran. */
  #dropInherited(): void {
    if (this.#inherited.size === 0) return;
    const there = this.#ports.containers();
    for (const containerId of this.#inherited.keys()) {
      if (there.has(containerId)) continue;
      this.#inherited.delete(containerId);
      this.#gone.push(containerId);
    }
  }
}

const idsOf = (known: readonly KnownFailure[]): ReadonlySet<string> =>
  new Set(known.map(({ containerId }) => containerId));
