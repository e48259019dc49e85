import type { ProbeType } from "../../model/probe.ts";
import type { ContainerRun, ProbeNodeEvent, ProbeTiming, Span } from "../../model/probes-decision.ts";
import type { OutcomeWord } from "../../model/probes-outcomes.ts";
import type { QuirkCode } from "./quirks.ts";
import type { AttemptOutcome } from "./worker-state.ts";

/** One answer of a script, as the worker gets it. */
export interface ScriptedAttempt {
  readonly word: OutcomeWord;
  readonly outcome: AttemptOutcome;
  readonly tookMs: number;
}
export interface TimelineProbe {
  readonly type: ProbeType;
  readonly timing: ProbeTiming;
  /** Of successive attempts, whatever the container; the last repeats. At least one. */
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
  /** Of the pod, in seconds. */
  readonly graceSeconds: number;
  /** How long a container takes to end when it is asked to, and with which exit code. */
  readonly stopMs: number;
  readonly exitCode: number;
  readonly backOff: boolean;
  /** Whether making the pod's status probes readiness out of turn, as it does in a kubelet. */
  readonly statusTriggers: boolean;
  readonly kubeletRestartMs: number | null;
  readonly jitter: number;
}

export interface AttemptMade {
  readonly atMs: number;
  readonly containerId: string;
  readonly outcome: OutcomeWord;
  readonly tookMs: number;
}
export interface QuirkMet {
  readonly code: QuirkCode;
  readonly container: string;
  readonly type: ProbeType;
  times: number;
  readonly firstAtMs: number;
}
export interface LaneTrace {
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
  readonly lanes: readonly LaneTrace[];
}
export interface Timeline {
  readonly endMs: number;
  readonly truncated: boolean;
  readonly containers: readonly ContainerTrace[];
  readonly ready: readonly Span[];
  readonly events: readonly ProbeNodeEvent[];
  readonly quirks: readonly QuirkMet[];
}
