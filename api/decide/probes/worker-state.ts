import type { ProbeOutcome, ProbeSpec, ProbeType, StoredResult } from "../../model/probe-spec.ts";
import type { ProbeQuirk, ProbeTiming } from "../../model/probes-decision.ts";

/**
 * A behaviour of the kubelet's probe workers that users report as a bug; `strict` says what that option does instead.
 */
interface Quirk {
  readonly code: string;
  readonly what: string;
  /** Issue numbers in kubernetes/kubernetes. */
  readonly issues: readonly number[];
  /** The behaviour with `strict`; null: it is the same, since the kubelet's behaviour is documented or nothing is. */
  readonly strict: string | null;
}

/** The quirks in the order in which a worker meets them. kubelet 1.36: prober.manager, prober.worker, prober.prober. */
export const QUIRKS = [
  {
    code: "later-containers-unprobed",
    what: "when a pod is added again, the first container that is probed already ends the loop: containers after it get no workers",
    issues: [],
    strict: null,
  },
  {
    code: "ticks-together",
    what: "probes are spread by chance only right after the kubelet's start; later all workers of a pod probe at the same moment",
    issues: [],
    strict: null,
  },
  {
    code: "sleep-ignores-stop",
    what: "a worker that is stopped in its start jitter sleeps on, and may still probe once",
    issues: [],
    strict: "it ends at once",
  },
  {
    code: "counters-carry-over",
    what: "a new container keeps the run of equal results of the old one, so its first answers can reach a threshold too soon",
    issues: [53530, 46371, 62853],
    strict: "a new container starts with no run",
  },
  {
    code: "hang-discarded",
    what: "an HTTP answer whose body breaks off or never ends is an error, not a failure: the threshold is not touched, liveness never fires",
    issues: [122591, 113938],
    strict: "after three tries it counts as a failure",
  },
  {
    code: "error-discarded",
    what: "when the container cannot be asked at all (the runtime's exec fails, no such port name) three tries are thrown away and the result stays as it was",
    issues: [106682],
    strict: "after three tries it counts as a failure",
  },
  {
    code: "readiness-out-of-turn",
    what: "readiness is probed out of turn each time the pod's status is made while the container is not ready, and its period starts anew",
    issues: [118815],
    strict: null,
  },
  {
    code: "ready-kept-on-restart",
    what: "when the kubelet restarts, containers started more than 10 s before keep their readiness unprobed; those started later are unready at once",
    issues: [100277],
    strict: null,
  },
] as const satisfies readonly Quirk[];

/** The part of a worker that never changes. Times here and below are milliseconds since 1970, all of one clock. */
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
export interface PodForProbe {
  /** True: the pod's phase is Failed or Succeeded. */
  readonly ended: boolean;
  /** True: the pod is being deleted. The kubelet reads this from the pod as it was when the worker was created. */
  readonly deleting: boolean;
  /** The container; null: the status has no container id yet. */
  readonly container: ContainerSeen | null;
}
export interface ContainerSeen {
  readonly id: string;
  readonly state: "waiting" | "running" | "terminated";
  /** The start of a running container. */
  readonly startedAtMs: number | null;
  /** status.started. */
  readonly started: boolean;
  /**
   * For a terminated container. True: it restarts, by its restart policy and rules, or because all containers of the
   * pod restart.
   */
  readonly willRestart: boolean;
}

export type AttemptOutcome = ProbeOutcome;

export type WorkerEvent =
  /**
   * The time of the last `wake` has come; a tick that comes early is postponed, one that comes late has missed ticks.
   */
  | { readonly on: "tick"; readonly atMs: number; readonly pod: PodForProbe | null }
  /** Out of turn, and the period counts from here; the kubelet does this to readiness alone. */
  | { readonly on: "trigger"; readonly atMs: number; readonly pod: PodForProbe | null }
  /** The requested attempt has ended. */
  | { readonly on: "attempted"; readonly atMs: number; readonly outcome: AttemptOutcome }
  | { readonly on: "stop"; readonly atMs: number };

export type WorkerEffect =
  /** Ask the container once; `attempted` answers. `tries` counts those of this tick from 1. */
  | { readonly kind: "attempt"; readonly containerId: string; readonly tries: number }
  /** The stored result has changed. */
  | { readonly kind: "set"; readonly containerId: string; readonly result: StoredResult }
  /** The stored result of this container is removed. */
  | { readonly kind: "forget"; readonly containerId: string }
  /** Send `tick` then (at once, when it has passed). The newest counts, and there is none while an attempt runs. */
  | { readonly kind: "wake"; readonly atMs: number }
  /** A Warning event of the container, in the kubelet's words. */
  | { readonly kind: "event"; readonly reason: "Unhealthy" | "ProbeWarning"; readonly message: string }
  /** One of the kubelet's quirks affected this step. */
  | { readonly kind: "quirk"; readonly code: ProbeQuirk }
  /** The worker has ended; it answers no event any more. */
  | { readonly kind: "stop" };

/** The part of the spec that `step` reads: not how the probe asks. */
export type TimedWorkerSpec = WorkerSpec<ProbeTiming>;

/** The whole state of a worker: plain data that can be stored or sent. */
export interface Worker {
  /** `sleeping`: before its first turn, for the start jitter. */
  readonly at: "sleeping" | "waiting" | "probing" | "ended";
  /** The next tick of the period's ticker; while sleeping, the end of the sleep. */
  readonly nextTickMs: number;
  readonly containerId: string | null;
  /** The stored result; null: none for this container. */
  readonly stored: StoredResult | null;
  readonly lastResult: StoredResult;
  /** The number of consecutive `lastResult`s; it carries over to a new container. */
  readonly resultRun: number;
  /** The part of that number from before this container. */
  readonly carried: number;
  readonly onHold: boolean;
  /** The number of attempts of this tick, including the running one. */
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
