import type { GuardSettings } from "../../../api/model/probe-guard.ts";
import type { ProbeCounters } from "../../status/probe-counters.ts";
import type { Attempt, ProbePorts } from "./attempt.ts";
import type { ProbeHistory } from "./history.ts";
import type { Guarded, GuardMemory } from "./liveness-storm-guard.ts";
import type { ProbeClock } from "./probe-time.ts";
import type { ProbeChange, ProbeWarning } from "./probed.ts";

export interface ManagerPorts {
  readonly attempt: Attempt;
  /** The port that runs a command in a container. */
  readonly runtime: ProbePorts;
  readonly clock: ProbeClock;
  /** From 0 to below 1. */
  readonly random: () => number;
  readonly counters: ProbeCounters;
  readonly history: Pick<ProbeHistory, "add" | "flush">;
  /** Told of changes only, initial results with them. Must not call back. */
  readonly onResult: (change: ProbeChange) => void;
  readonly onEvent: (warning: ProbeWarning) => void;
  /** Called when the guard holds other things than before. */
  readonly onGuard: (guarded: Guarded) => void;
  /** Absent: a daemon that starts again does not know what the guard held. */
  readonly guardMemory?: Pick<GuardMemory, "read" | "persist">;
}
export interface ManagerSettings {
  /** When the daemon started, on the wall clock. */
  readonly startedAtMs: number;
  /** The documented behaviour in the place of the kubelet's quirks. */
  readonly strict: boolean;
  /** Probes of one period are spread evenly over it; off: the kubelet's jitter, while the daemon is young. */
  readonly spread: boolean;
  /** Execs at the same time. */
  readonly execLimit: number;
  /** Null: every failed liveness probe kills at once, as the kubelet's do. */
  readonly guard: GuardSettings | null;
}
