import type { ProbeOutcome, ProbeSpec, ProbeType, StoredResult } from "../../model/probe.ts";
import type { ProbeTiming } from "../../model/probes-decision.ts";
import type { QuirkCode } from "./quirks.ts";

/** What never changes for one worker. Times here and below are milliseconds since 1970, all of one clock. */
export interface WorkerSpec<P extends ProbeTiming = ProbeSpec> {
  readonly type: ProbeType;
  readonly probe: P;
  /** A restartable init container's. */
  readonly sidecar: boolean;
  /** When the daemon's probe manager started. */
  readonly managerStartMs: number;
  /** The documented behaviour in the place of each quirk that has one (`QUIRKS`). */
  readonly strict: boolean;
}

/** The pod as its status is known at the moment of the event. */
export interface PodSeen {
  /** Its phase is Failed or Succeeded. */
  readonly ended: boolean;
  /** Its deletion was asked for. The kubelet reads this of the pod as it was when the worker was made. */
  readonly deleting: boolean;
  /** Null: the status tells no id of the container yet. */
  readonly container: ContainerSeen | null;
}
export interface ContainerSeen {
  readonly id: string;
  readonly state: "waiting" | "running" | "terminated";
  /** Of a running one. */
  readonly startedAtMs: number | null;
  /** status.started. */
  readonly started: boolean;
  /** Of a terminated one: by its restart policy and rules, or because all containers of the pod restart. */
  readonly willRestart: boolean;
}

export type AttemptOutcome = ProbeOutcome;

export type WorkerEvent =
  /** The time of the last `wake` has come; one that comes sooner is told to wait on, one that comes late has missed ticks. */
  | { readonly on: "tick"; readonly atMs: number; readonly pod: PodSeen | null }
  /** Out of turn, and the period counts from here; the kubelet does this to readiness alone. */
  | { readonly on: "trigger"; readonly atMs: number; readonly pod: PodSeen | null }
  /** The attempt that was asked for has ended. */
  | { readonly on: "attempted"; readonly atMs: number; readonly outcome: AttemptOutcome }
  | { readonly on: "stop"; readonly atMs: number };

export type WorkerEffect =
  /** Ask the container once; `attempted` answers. `tries` counts those of this tick from 1. */
  | { readonly kind: "attempt"; readonly containerId: string; readonly tries: number }
  /** The stored result has changed. */
  | { readonly kind: "set"; readonly containerId: string; readonly result: StoredResult }
  /** Nothing is stored for this container any more. */
  | { readonly kind: "forget"; readonly containerId: string }
  /** Send `tick` then (at once, when it has passed). The newest counts, and there is none while an attempt runs. */
  | { readonly kind: "wake"; readonly atMs: number }
  /** An event of type Warning, of the container, in the kubelet's words. */
  | { readonly kind: "event"; readonly reason: "Unhealthy" | "ProbeWarning"; readonly message: string }
  /** This step went by one of the kubelet's quirks. */
  | { readonly kind: "quirk"; readonly code: QuirkCode }
  /** The worker has ended; it answers no event any more. */
  | { readonly kind: "stop" };

/** What `step` reads of it: not how the probe asks. */
export type TimedWorkerSpec = WorkerSpec<ProbeTiming>;

/** All that a worker remembers; plain data, to be kept or sent as it is. */
export interface Worker {
  /** `sleeping`: before its first turn, for the start jitter. */
  readonly at: "sleeping" | "waiting" | "probing" | "ended";
  /** Of the period's ticker; while sleeping, the end of the sleep. */
  readonly nextTickMs: number;
  readonly containerId: string | null;
  /** Null: none is stored for that container. */
  readonly stored: StoredResult | null;
  readonly lastResult: StoredResult;
  /** How many times in a row `lastResult` came; kept when the container is another. */
  readonly resultRun: number;
  /** How many of that run came before this container. */
  readonly carried: number;
  readonly onHold: boolean;
  /** Attempts of this tick, the one that runs included. */
  readonly tries: number;
  /** Came while the worker could not heed it. */
  readonly triggered: boolean;
  readonly stopping: boolean;
}

/** The answer to one event. */
export interface WorkerStep {
  readonly next: Worker;
  readonly effects: readonly WorkerEffect[];
}
