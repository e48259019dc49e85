import { createRequire } from "node:module";
import type * as client from "prom-client";
import type { ProbeType, StoredResult } from "../../api/model/probe.ts";

const require = createRequire(import.meta.url);

// The parts of prom-client that count and render: the whole also loads clients for HTTPS and clusters, some MB of a small
// daemon.
export const Counter = require("prom-client/lib/counter.js") as typeof client.Counter;
export const Gauge = require("prom-client/lib/gauge.js") as typeof client.Gauge;
export const Histogram = require("prom-client/lib/histogram.js") as typeof client.Histogram;
export const Registry = require("prom-client/lib/registry.js") as typeof client.Registry;
export type Gauge<T extends string = string> = client.Gauge<T>;
export type Registry = client.Registry;

/** The daemon's counts of its probes. */
export interface ProbeCounters {
  /** An attempt ended. `error`: the container could not be asked. */
  probed(type: ProbeType, result: AttemptResult, seconds: number): void;
  /** The stored result of a container is another one now. */
  probeResult(type: ProbeType, result: StoredResult): void;
  /** A probe had its turn so long after it was due. */
  probeLate(seconds: number): void;
  /** An exec waited for one of the places longer than its period. */
  execProbeWaited(): void;
  /** The guard began to hold kills. */
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

/** As the kubelet's prober_probe_duration_seconds has them. */
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
  const held = counter("nodewise_probe_kills_held_total", "Liveness kills that the guard held");
  const took = new Histogram({
    name: "nodewise_probe_duration_seconds",
    help: "Time of an attempt",
    labelNames: ["type"],
    buckets: SECONDS,
    registers,
  });
  const late = new Histogram({
    name: "nodewise_probe_late_seconds",
    help: "How long after it was due a probe had its turn",
    buckets: LATE_SECONDS,
    registers,
  });
  // there may be thousands a second: each is found by its labels once
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
    probeKillsHeld: (containers) => held.inc(containers),
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
