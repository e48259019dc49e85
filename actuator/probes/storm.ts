import { decideProbeGuard } from "../../api/decide/probes/decide-guard.ts";
import type {
  FailedContainer,
  GuardSettings,
  KnownFailure,
  ProbeGuardAsk,
  ProbeGuardDecision,
} from "../../api/model/probe-guard.ts";
import type { ProbeClock } from "./clock.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { ProbeTime } from "./probe-time.ts";

/** A decision of the guard that changed what is held, and what it was asked. */
export interface Guarded {
  readonly ask: ProbeGuardAsk;
  readonly decision: ProbeGuardDecision;
}
export interface StormPorts {
  readonly settings: GuardSettings;
  readonly time: Pick<ProbeTime, "now">;
  readonly after: ProbeClock["after"];
  /** Groups of pods that have a liveness probe. */
  readonly groups: () => number;
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
  #known: readonly KnownFailure[] = [];
  #knownAtMs = 0;
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
  }

  /** The last word on what is held; null: nothing is. */
  get holding(): ProbeGuardDecision | null {
    return this.#holding;
  }

  failed(failure: FailedContainer, worker: LiveWorker): void {
    this.#workers.set(failure.containerId, worker);
    this.#failed.set(failure.containerId, failure);
    this.#arm();
  }
  recovered(containerId: string): void {
    this.#recovered.push(containerId);
    this.#arm();
  }
  gone(containerId: string): void {
    this.#failed.delete(containerId);
    this.#gone.push(containerId);
    this.#arm();
  }
  close(): void {
    this.#disarm?.();
  }

  #arm(): void {
    const gatherMs = this.#holding === null ? GATHER_MS : GATHER_HOLDING_MS;
    this.#disarm ??= this.#ports.after(gatherMs, () => this.#judge());
  }
  #judge(): void {
    const { time, onKill, onGuarded } = this.#ports;
    this.#disarm = null;
    const nowMs = time.now();
    const ask = this.#ask(nowMs);
    // a kill waits for no API: what is decided here is what it is told
    const decided = decideProbeGuard({ snapshot: {}, facts: {}, ask, explain: "off" });
    if (!decided.ok) return;
    const { decision } = decided.value;
    this.#known = decision.known;
    this.#knownAtMs = nowMs;
    if (decision.released.length > 0 || decision.hold.some(({ heldForMs }) => heldForMs === 0)) {
      this.#holding = decision.holding > 0 ? decision : null;
      onGuarded({ ask, decision });
    }
    for (const { containerId } of decision.kill) {
      const worker = this.#workers.get(containerId);
      if (worker !== undefined) onKill(worker);
    }
    const known = new Set(decision.known.map(({ containerId }) => containerId));
    for (const containerId of this.#workers.keys()) if (!known.has(containerId)) this.#workers.delete(containerId);
  }

  #ask(nowMs: number): ProbeGuardAsk {
    const { settings, groups } = this.#ports;
    const sinceMs = nowMs - this.#knownAtMs;
    const ask = {
      guard: settings,
      groups: groups(),
      known: this.#known.map((failure) => later(failure, sinceMs)),
      failed: [...this.#failed.values()],
      recovered: this.#recovered,
      gone: this.#gone,
    };
    this.#failed = new Map();
    this.#recovered = [];
    this.#gone = [];
    return ask;
  }
}

/** In whole milliseconds: it is written down, and asked again it must be the same. */
const later = (failure: KnownFailure, ms: number): KnownFailure => ({
  ...failure,
  failedAgoMs: Math.round(failure.failedAgoMs + ms),
  heldForMs: failure.heldForMs === null ? null : Math.round(failure.heldForMs + ms),
});
