import type { PodRef } from "./managers.ts";
import type { ProbeSpec, ProbeType, StoredResult } from "./probe.ts";
import type { OutcomeWord } from "./probes-outcomes.ts";

/** When a probe is asked and what counts; all but how it asks. */
export type ProbeTiming = Omit<ProbeSpec, "handler">;
export const PROBE_HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc"] as const;
export type ProbeHandlerName = (typeof PROBE_HANDLERS)[number];

/** Times of a dry run: milliseconds since the pod's workers began. */
export interface Span {
  readonly fromMs: number;
  /** Null: it still holds at the end. */
  readonly toMs: number | null;
}
export interface ProbeAttempt {
  readonly atMs: number;
  /** `c0` is the first container of its name, `c1` that after one restart. */
  readonly containerId: string;
  readonly outcome: OutcomeWord;
  readonly tookMs: number;
}
export interface ProbeResultChange {
  readonly atMs: number;
  readonly containerId: string;
  readonly result: StoredResult;
}
/** What the settings alone say. */
export interface ProbeReach {
  /** The soonest that it can fail after the container's start, when every attempt fails at once. */
  readonly soonestFailureMs: number;
  /** The longest that it may take to notice, from the moment that nothing answers any more. */
  readonly slowestFailureMs: number;
  /** The longest that it may take to notice that all is well again. */
  readonly slowestSuccessMs: number;
  /** With a restart: until the container is ended for sure. Null: it ends none. */
  readonly slowestEndMs: number | null;
}
export interface ProbeRun extends ProbeTiming {
  readonly type: ProbeType;
  readonly handler: ProbeHandlerName;
  readonly reach: ProbeReach;
  readonly attempts: readonly ProbeAttempt[];
  /** In order, the initial value first: told on change only. */
  readonly results: readonly ProbeResultChange[];
  /** When it waited for another container. */
  readonly onHold: readonly Span[];
}
export interface ContainerRun {
  readonly id: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  /** Which probe ended it. */
  readonly endedBy: ProbeType | null;
}
export interface ProbedContainer {
  readonly container: string;
  readonly sidecar: boolean;
  readonly restarts: number;
  readonly firstRestartAtMs: number | null;
  readonly runs: readonly ContainerRun[];
  /** status.started. */
  readonly started: readonly Span[];
  readonly ready: readonly Span[];
  readonly probes: readonly ProbeRun[];
}

export const FINDING_LEVELS = ["error", "warning", "hint"] as const;
/** What of the settings is likely to go wrong. */
export interface ProbeFinding {
  readonly code: ProbeFindingCode;
  readonly level: (typeof FINDING_LEVELS)[number];
  /** Of the pod: `spec.containers[0].livenessProbe.timeoutSeconds`. */
  readonly path: string;
  readonly container: string;
  readonly type: ProbeType;
  readonly numbers: Readonly<Record<string, string | number>>;
}
export const PROBE_FINDINGS = [
  "unknown-port-name",
  "liveness-before-started",
  "startup-too-short",
  "liveness-not-after-readiness",
  "same-as-readiness",
  "one-failure-restarts",
  "one-failure-unready",
  "timeout-over-period",
  "exec-often",
  "long-delay",
  "delay-beside-startup",
  "success-threshold-carries",
  "grace-over-pod",
  "grace-below-least",
  "long-grace",
  "host-outside-pod",
  "never-restarted",
] as const;
export type ProbeFindingCode = (typeof PROBE_FINDINGS)[number];

/** A kubelet's quirk that this dry run went by. */
export interface QuirkHit {
  readonly code: string;
  readonly what: string;
  readonly issues: readonly number[];
  readonly container: string;
  readonly type: ProbeType;
  readonly times: number;
  readonly firstAtMs: number;
}
/** As the kubelet records it for the container, the same ones counted together. */
export interface ProbeNodeEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly container: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}
export interface ProbesDecision {
  readonly pod: PodRef;
  readonly strict: boolean;
  /** How far the dry run went. */
  readonly endMs: number;
  /** It stopped there, before its end, for it had become too long. */
  readonly truncated: boolean;
  readonly restarts: number;
  readonly firstRestartAtMs: number | null;
  /** When all containers were ready. */
  readonly ready: readonly Span[];
  readonly containers: readonly ProbedContainer[];
  readonly events: readonly ProbeNodeEvent[];
  readonly quirks: readonly QuirkHit[];
  readonly findings: readonly ProbeFinding[];
}
