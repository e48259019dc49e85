import type { Kind } from "../../api/model/decision.ts";
import type { RuntimeFault } from "../containerd/port.ts";
import type { DriftCause } from "../plan/drift.ts";
import { noProbeCounters, type ProbeCounters } from "./probe-counters.ts";

/** What the daemon counts while it works; everything else that is measured is read from its NodeStatus. */
export interface Counters extends ProbeCounters {
  pass(tookMs: number, cpuMs: number): void;
  decided(kind: Kind, by: "api" | "here"): void;
  /** Cgroup files written, and directories made or removed. */
  wrote(steps: number): void;
  drifted(cause: DriftCause, files: number): void;
  /** The CRI's name of the call, and gRPC's of the fault. */
  runtimeCallFailed(fault: Pick<RuntimeFault, "call" | "code">): void;
  /** Containers that were started again. */
  restarted(containers: number): void;
  /** A pod was not let in: the reason of its status. One that is tried again for the same reason is counted once. */
  refused(reason: string): void;
  /** The signal that ordered it, or which of its own limits the pod broke. */
  evicted(signal: string): void;
  preempted(): void;
  eventsDropped(events: number): void;
  /** A device plugin was asked for what comes with a container's devices. */
  deviceAllocated(resource: string, isDone: boolean): void;
  /** A device plugin wanted to register. */
  devicePluginRegistered(isTaken: boolean): void;
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
  deviceAllocated() {},
  devicePluginRegistered() {},
  outbox() {},
  ...noProbeCounters,
};
