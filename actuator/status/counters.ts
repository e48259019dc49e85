import { createRequire } from "node:module";
import type * as client from "prom-client";
import type { Kind } from "../../api/model/decision.ts";
import type { ProbeType, StoredResult } from "../../api/model/probe-spec.ts";
import type { RuntimeFault } from "../containerd/cri.ts";
import type { Problem } from "../core/interfaces.ts";
import type { PassReport } from "../pass/loop.ts";
import { type Difference, type DriftCause, isForeign, isReported } from "../plan/drift.ts";
import type { DriftRow } from "./node-status.ts";

const require = createRequire(import.meta.url);

// The parts of prom-client that count and render: the whole also loads clients for HTTPS and clusters, some MB of a small
// daemon.
export const Counter = require("prom-client/lib/counter.js") as typeof client.Counter;
export const Gauge = require("prom-client/lib/gauge.js") as typeof client.Gauge;
export const Histogram = require("prom-client/lib/histogram.js") as typeof client.Histogram;
export const Registry = require("prom-client/lib/registry.js") as typeof client.Registry;
export type Gauge<T extends string = string> = client.Gauge<T>;
export type Registry = client.Registry;

/**
 * Exports a renamed counter under its old name too, with the same samples, so that queries that use the old name keep working.
 * `labelNames` are the counter's.
 */
export function exportUnderOldName<L extends string>(
  oldName: string,
  {
    name,
    counter,
    labelNames,
  }: { readonly name: string; readonly counter: client.Counter<L>; readonly labelNames: readonly L[] },
  registers: Registry[],
): void {
  new Counter({
    name: oldName,
    help: `Deprecated: renamed to ${name}`,
    labelNames,
    registers,
    async collect() {
      const { values } = await counter.get();
      this.reset();
      for (const { labels, value } of values) this.inc(labels, value);
    },
  });
}

/** The daemon's counts of its probes. */
export interface ProbeCounters {
  /** Called when an attempt ended. `error`: the container could not be probed. */
  probed(type: ProbeType, result: AttemptResult, seconds: number): void;
  /** The stored result of a container has changed. */
  probeResult(type: ProbeType, result: StoredResult): void;
  /** A probe ran this long after it was due. */
  probeLate(seconds: number): void;
  /** An exec waited for one of the places longer than its period. */
  execProbeWaited(): void;
  /** The probe guard began to defer kills of containers. */
  probeKillsHeld(containers: number): void;
}
export type AttemptResult = "success" | "warning" | "failure" | "error";

export const noProbeCounters: ProbeCounters = {
  probed() {},
  probeResult() {},
  probeLate() {},
  execProbeWaited() {},
  probeKillsHeld() {},
};

/** The buckets of the kubelet's prober_probe_duration_seconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LATE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** INVARIANT: the number of series is bounded, whatever is probed. */
export function probeCountersIn(registers: Registry[]): ProbeCounters {
  const counter = <L extends string>(name: string, help: string, ...labelNames: readonly L[]) =>
    new Counter({ name, help, labelNames, registers });
  const attempts = counter("nodewise_probe_attempts_total", "Attempts of probes by how they ended", "type", "result");
  const results = counter("nodewise_probe_results_total", "Changes of containers' stored results", "type", "result");
  const waited = counter(
    "nodewise_probe_exec_overdue_total",
    "Exec probes that waited longer than their period to run",
  );
  const name = "nodewise_liveness_probe_kills_deferred_total";
  const deferred = counter(name, "Kills of containers with failed liveness probes that the probe guard deferred");
  exportUnderOldName("nodewise_probe_kills_held_total", { name, counter: deferred, labelNames: [] }, registers);
  const took = new Histogram({
    name: "nodewise_probe_duration_seconds",
    help: "Time of an attempt",
    labelNames: ["type"],
    buckets: SECONDS,
    registers,
  });
  const late = new Histogram({
    name: "nodewise_probe_late_seconds",
    help: "Delay between the time when a probe was due and its attempt",
    buckets: LATE_SECONDS,
    registers,
  });
  // there may be thousands per second: each child of a metric is looked up once
  const ofType = kept((type: ProbeType) => took.labels({ type }));
  const ofAttempt = kept((type: ProbeType, result: AttemptResult) => attempts.labels({ type, result }));
  return {
    probed: (type, result, seconds) => {
      ofAttempt(type, result).inc();
      ofType(type).observe(seconds);
    },
    probeResult: (type, result) => results.inc({ type, result }),
    probeLate: (seconds) => late.observe(seconds),
    execProbeWaited: () => waited.inc(),
    probeKillsHeld: (containers) => deferred.inc(containers),
  };
}

function kept<A extends readonly string[], T>(make: (...names: A) => T): (...names: A) => T {
  const known = new Map<string, T>();
  return (...names) => {
    const key = names.join();
    const one = known.get(key) ?? make(...names);
    known.set(key, one);
    return one;
  };
}

/** Rows in a status: a kubelet of another configuration may differ in every file. */
const MAX_ROWS = 100;
/** Lines that one pass may put into the log. */
const MAX_LINES = 20;

/**
 * The figures of a pass over the cgroups for the status, and its time; null: there was none. A pass without a decision has
 * compared no file.
 */
export const passFigures = (pass: PassReport | null) => {
  const drift = driftRows(pass);
  return {
    wrote: pass?.applied?.results.filter(({ status }) => status === "applied").length ?? 0,
    drift: drift.length,
    ...(drift.length > 0 && { drifted: drift.slice(0, MAX_ROWS) }),
    decidedBy: pass?.decidedBy ?? null,
    ...((pass === null || pass.differs === null) && { compared: false as const }),
    ...(pass !== null && { cgroupsAt: pass.at }),
  };
};

const driftRows = (pass: PassReport | null): readonly DriftRow[] =>
  (pass?.drift ?? [])
    .filter(isForeign)
    .map(({ path, file, actual, wanted, cause }) => ({ path, file, actual, wanted, cause }));

/** The drift of a pass, one line per file, for the log: reported once while it lasts. */
export function driftNotices(pass: PassReport | null): readonly Problem[] {
  const rows = driftRows(pass);
  const lines = rows
    .slice(0, MAX_LINES)
    .map(
      ({ path, file, actual, wanted, cause }) => `drift: ${path} ${file}: found ${actual}, wanted ${wanted} (${cause})`,
    );
  const left = rows.length - lines.length;
  const more = left > 0 ? [`drift: ${left} more files have another value than wanted: see \`nodewise pods\``] : [];
  return [...lines, ...more].map((message) => ({ from: "cgroupfs", message }));
}

/** Counts the results of passes over the cgroups; drift that lasts counts once, however often it is seen. */
export class PassCounter {
  readonly #counters: Pick<Counters, "wrote" | "drifted">;
  /** The differences that remained after the last pass that looked. */
  #standing: ReadonlySet<string> = new Set();

  constructor(counters: Pick<Counters, "wrote" | "drifted">) {
    this.#counters = counters;
  }

  count(pass: PassReport): void {
    this.#counters.wrote(passFigures(pass).wrote);
    // after a pass that could not compare, the last figure remains
    if (pass.differs === null) return;
    for (const drift of pass.drift)
      if (isReported(drift) && !this.#standing.has(keyOf(drift))) this.#counters.drifted(drift.cause, 1);
    this.#standing = new Set(pass.differs.map(keyOf));
  }
}
const keyOf = ({ path, file, cause }: Difference): string => `${path} ${file} ${cause}`;

/** The time of a sync, its duration, and its CPU time. */
export interface SyncFigures {
  readonly sequence: number;
  readonly at: string;
  readonly cpuMs: number;
  readonly tookMs: number;
}
interface Measured<T> extends Pick<SyncFigures, "cpuMs" | "tookMs"> {
  readonly value: T;
}
export async function measured<T>(work: () => Promise<T>): Promise<Measured<T>> {
  const [from, cpu] = [performance.now(), process.cpuUsage()];
  const value = await work();
  const { user, system } = process.cpuUsage(cpu);
  return { value, tookMs: performance.now() - from, cpuMs: (user + system) / 1000 };
}

/** The counts that the daemon makes while it works; everything else that is measured is read from its NodeStatus. */
export interface Counters extends ProbeCounters {
  pass(tookMs: number, cpuMs: number): void;
  decided(kind: Kind, by: "api" | "here"): void;
  /** Cgroup files written, and directories made or removed. */
  wrote(steps: number): void;
  drifted(cause: DriftCause, files: number): void;
  /** The CRI's name of the call, and gRPC's of the fault. */
  runtimeCallFailed(fault: Pick<RuntimeFault, "call" | "code">): void;
  /** Containers that were restarted. */
  restarted(containers: number): void;
  /** Containers that another process stopped: with their sandbox, by removing them, or by a signal. */
  stoppedByOthers(how: "sandbox" | "removed" | "signal", containers: number): void;
  /** A pod was refused: the reason in its status. A retry that is refused for the same reason does not count again. */
  refused(reason: string): void;
  /** The signal that caused the eviction, or the pod's own limit. */
  evicted(signal: string): void;
  preempted(): void;
  /** A container's log. */
  logRotated(): void;
  logRotationFailed(): void;
  eventsDropped(events: number): void;
  /** A device plugin was called for a container's devices. */
  deviceAllocated(resource: string, isDone: boolean): void;
  /** A device plugin wanted to register. */
  devicePluginRegistered(isTaken: boolean): void;
  /** Counts the entries that wait to be sent to the API. */
  outbox(entries: number): void;
}

/** Counters of a daemon without metrics. */
export const noCounters: Counters = {
  pass() {},
  decided() {},
  wrote() {},
  drifted() {},
  runtimeCallFailed() {},
  restarted() {},
  stoppedByOthers() {},
  refused() {},
  evicted() {},
  preempted() {},
  logRotated() {},
  logRotationFailed() {},
  eventsDropped() {},
  deviceAllocated() {},
  devicePluginRegistered() {},
  outbox() {},
  ...noProbeCounters,
};
