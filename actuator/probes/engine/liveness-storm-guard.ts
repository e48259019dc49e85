import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decideProbeGuard } from "../../../api/decide/kinds/probe-guard.ts";
import {
  decodeProbeGuardAsk,
  type FailedContainer,
  type GuardSettings,
  type KnownFailure,
  type ProbeGuardAsk,
  type ProbeGuardDecision,
} from "../../../api/model/probe-guard.ts";
import { replaceFile } from "../../core/record-file.ts";
import type { ProbeClock, ProbeTime } from "./probe-time.ts";
import type { ProbeWorker } from "./probe-worker.ts";

interface GuardStateFileOptions {
  readonly stateDir: string;
  /** The wall clock. */
  readonly nowMs: () => number;
  /** Called once when writing fails, and again only after it has worked. */
  readonly onFault: (message: string) => void;
}

/** Keeps the guard's knowledge in a file, so that a restarted daemon continues to hold what the previous one held. */
export class GuardStateFile {
  readonly #options: GuardStateFileOptions;
  readonly #file: string;
  #isBroken = false;

  constructor(options: GuardStateFileOptions) {
    this.#options = options;
    this.#file = join(options.stateDir, "probe-guard.json");
  }

  /** The known failures, as of now; empty if there is no readable file. */
  read(): readonly KnownFailure[] {
    try {
      const { atMs, known } = JSON.parse(readFileSync(this.#file, "utf8")) as Readonly<Record<string, unknown>>;
      const decoded = decodeProbeGuardAsk({ known });
      if (!decoded.ok || typeof atMs !== "number") return [];
      // a clock that was set back must not make failures younger
      const sinceMs = Math.max(0, this.#options.nowMs() - atMs);
      return decoded.value.known.map((failure) => later(failure, sinceMs));
    } catch {
      return [];
    }
  }

  persist(known: readonly KnownFailure[]): void {
    const { nowMs, onFault } = this.#options;
    const written = replaceFile(this.#file, [JSON.stringify({ atMs: nowMs(), known })]);
    if (!written.ok && !this.#isBroken)
      onFault(`${written.error.message}: after a restart the probe guard would not know what it holds`);
    this.#isBroken = !written.ok;
  }
}

/** Adds whole milliseconds, so that the recorded input gives the same decision again. */
const later = (failure: KnownFailure, ms: number): KnownFailure => ({
  ...failure,
  failedAgoMs: Math.round(failure.failedAgoMs + ms),
  heldForMs: failure.heldForMs === null ? null : Math.round(failure.heldForMs + ms),
});

/** Containers whose last attempt failed, and which are below their failure threshold. */
class FailingContainers {
  readonly #windowMs: number;
  readonly #last = new Map<string, FailedContainer & { readonly atMs: number }>();

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  record(failure: FailedContainer, atMs: number): void {
    this.#last.set(failure.containerId, { ...failure, atMs });
  }
  forget(containerId: string): void {
    this.#last.delete(containerId);
  }

  /** `known` plus the containers that failed within the window; a held kill stays held. */
  among(known: readonly KnownFailure[], nowMs: number): readonly KnownFailure[] {
    const all = new Map(known.map((failure) => [failure.containerId, failure]));
    for (const [containerId, { atMs, ...failure }] of this.#last) {
      const failedAgoMs = Math.round(nowMs - atMs);
      if (failedAgoMs > this.#windowMs) this.#last.delete(containerId);
      else if ((all.get(containerId)?.heldForMs ?? null) === null)
        all.set(containerId, { ...failure, failedAgoMs, heldForMs: null });
    }
    return [...all.values()];
  }
}

/** A guard decision that changed what is held, with its input. */
export interface Guarded {
  readonly ask: ProbeGuardAsk;
  readonly decision: ProbeGuardDecision;
  /** When holding begins: the containers killed in the window before, while there were too few failures. */
  readonly killedBefore: readonly string[];
}
interface LivenessStormGuardDeps {
  readonly settings: GuardSettings;
  readonly time: Pick<ProbeTime, "now">;
  readonly after: ProbeClock["after"];
  /** The number of pod groups that have a liveness probe. */
  readonly groups: () => number;
  /** Ids of the containers that have a liveness probe. */
  readonly containers: () => ReadonlySet<string>;
  /** Undefined: a restart loses the known failures. */
  readonly stateFile: Pick<GuardStateFile, "read" | "persist"> | undefined;
  /** Called when the container's kill may go ahead. */
  readonly onKill: (worker: ProbeWorker) => void;
  readonly onGuarded: (guarded: Guarded) => void;
}
/** Failures within this time are judged together; no kill waits longer because of it. */
const GATHER_MS = 100;
/** While kills are held, a longer gathering time does no harm, and fewer decisions are reported. */
const GATHER_HOLDING_MS = 1000;

/** Gathers failures for the guard's decisions, and remembers what the guard knows. */
export class LivenessStormGuard {
  readonly #deps: LivenessStormGuardDeps;
  /** The known failures as of `#knownAtMs`. */
  #known: readonly KnownFailure[];
  #knownIds: ReadonlySet<string>;
  #knownAtMs: number;
  readonly #failing: FailingContainers;
  /** Failures that the previous daemon knew, of containers not probed since. */
  readonly #inherited: Map<string, KnownFailure>;
  /** The killed containers by id, with the time of the kill. */
  readonly #killed = new Map<string, { readonly container: string; readonly atMs: number }>();
  /** Workers whose failures the guard knows, or will judge next. */
  readonly #workers = new Map<string, ProbeWorker>();
  #holding: ProbeGuardDecision | null = null;
  /** New failures by container id. */
  #failed = new Map<string, FailedContainer>();
  #recovered: string[] = [];
  #gone: string[] = [];
  #disarm: (() => void) | null = null;

  constructor(deps: LivenessStormGuardDeps) {
    this.#deps = deps;
    const { settings, time, stateFile } = deps;
    this.#failing = new FailingContainers(settings.windowSeconds * 1000);
    this.#known = (stateFile?.read() ?? []).filter(({ failedAgoMs, heldForMs }) =>
      heldForMs === null ? failedAgoMs <= settings.windowSeconds * 1000 : heldForMs < settings.holdSeconds * 1000,
    );
    this.#knownIds = idsOf(this.#known);
    this.#knownAtMs = time.now();
    this.#inherited = new Map(this.#known.map((failure) => [failure.containerId, failure]));
  }

  /** The last decision about held kills; null: no kill is held. */
  get holding(): ProbeGuardDecision | null {
    return this.#holding;
  }

  /** Takes over what the previous daemon knew about a container that is probed for the first time; null: nothing. */
  inherited(containerId: string, worker: ProbeWorker): ProbeWorker["reported"] {
    const failure = this.#inherited.get(containerId);
    if (failure === undefined) return null;
    this.#inherited.delete(containerId);
    this.#workers.set(containerId, worker);
    return failure.heldForMs === null ? "failing" : "failed";
  }

  /** Notes a failed attempt below the failure threshold: it is judged together with another container's failure. */
  failing(failure: FailedContainer): void {
    this.#failing.record(failure, this.#deps.time.now());
  }
  /** Judges a container whose failure threshold is reached. */
  failed(failure: FailedContainer, worker: ProbeWorker): void {
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
    this.#disarm ??= this.#deps.after(gatherMs, () => this.#judge());
  }
  #judge(): void {
    const { time, stateFile, onKill, onGuarded } = this.#deps;
    this.#disarm = null;
    const nowMs = time.now();
    const ask = this.#ask(nowMs);
    // a kill does not wait for the API, which is told this local decision afterwards
    const decided = decideProbeGuard({ snapshot: {}, facts: {}, ask, explain: "off" });
    if (!decided.ok) return;
    const { decision } = decided.value;
    this.#known = decision.known;
    this.#knownIds = idsOf(decision.known);
    this.#knownAtMs = nowMs;
    const isChange = decision.released.length > 0 || decision.hold.some(({ heldForMs }) => heldForMs === 0);
    if (isChange || decision.kill.length > 0) stateFile?.persist(decision.known);
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

  /** Names of the containers that were killed within the window. */
  #killedSince(nowMs: number): readonly string[] {
    const sinceMs = nowMs - this.#deps.settings.windowSeconds * 1000;
    for (const [containerId, { atMs }] of this.#killed) if (atMs < sinceMs) this.#killed.delete(containerId);
    return [...this.#killed.values()].map(({ container }) => container);
  }

  #ask(nowMs: number): ProbeGuardAsk {
    const { settings, groups } = this.#deps;
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
  /** Drops inherited failures of containers that ended while no daemon ran. */
  #dropInherited(): void {
    if (this.#inherited.size === 0) return;
    const there = this.#deps.containers();
    for (const containerId of this.#inherited.keys()) {
      if (there.has(containerId)) continue;
      this.#inherited.delete(containerId);
      this.#gone.push(containerId);
    }
  }
}

const idsOf = (known: readonly KnownFailure[]): ReadonlySet<string> =>
  new Set(known.map(({ containerId }) => containerId));
