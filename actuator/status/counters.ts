import type { Kind } from "../../api/model/decision.ts";
import type { DriftCause } from "../plan/drift.ts";

/** What the daemon counts while it works; everything else that is measured is read from its NodeStatus. */
export interface Counters {
  pass(tookMs: number, cpuMs: number): void;
  decided(kind: Kind, by: "api" | "here"): void;
  /** Cgroup files written, and directories made or removed. */
  wrote(steps: number): void;
  drifted(cause: DriftCause, files: number): void;
  /** The CRI's name of the call, and gRPC's of the fault. */
  runtimeCallFailed(call: string, code: string): void;
  /** A container was started again. */
  restarted(): void;
  /** A pod was not let in: the reason of its status. */
  refused(reason: string): void;
  /** The signal that ordered it. */
  evicted(signal: string): void;
  preempted(): void;
  eventsDropped(events: number): void;
  /** What waits to be sent to the API. */
  outbox(entries: number): void;
}

/** For a daemon that nobody asks. */
export const noCounters: Counters = {
  pass() {},
  decided() {},
  wrote() {},
  drifted() {},
  runtimeCallFailed() {},
  restarted() {},
  refused() {},
  evicted() {},
  preempted() {},
  eventsDropped() {},
  outbox() {},
};
