import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_EXEC_LIMIT } from "../../actuator/core/config.ts";
import { OptimizingCompilers } from "../../actuator/pods/probing/open-probes.ts";
import { attempt } from "../../actuator/probes/engine/attempt.ts";
import { ProbeHistory } from "../../actuator/probes/engine/history.ts";
import { ProbeManager } from "../../actuator/probes/engine/probe-manager.ts";
import { systemProbeClock } from "../../actuator/probes/engine/probe-time.ts";
import type { ProbedContainer, ProbedPod } from "../../actuator/probes/engine/probed.ts";
import { daemonMetrics } from "../../actuator/status/metrics.ts";
import { probeRows } from "../../actuator/status/probe-row.ts";
import type { ProbeSpec } from "../../api/model/probe-spec.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";

/**
 * The figures that the daemon's process sends each time it is asked. They cover the time since its last answer and
 * `SETTLED_MS` after it.
 */
export interface ProbesSeen {
  readonly seconds: number;
  readonly attempts: number;
  readonly failures: number;
  readonly cpuMicros: number;
  readonly rssBytes: number;
  /** Memory in use after a garbage collection. */
  readonly heldBytes: number;
  /**
   * Element i: the number of workers that ran i whole milliseconds late. The last element also counts all later ones.
   */
  readonly late: readonly number[];
}
const [count = "", ...ports] = process.argv.slice(2);
const LOOK_MS = 1000;
/** The interval at which the status is read, as Prometheus and people read it. */
const SHOWN_MS = 5000;

const LATEST_MS = 10_000;
/** The time to catch up on what a forced garbage collection delayed. A daemon never forces one. */
const SETTLED_MS = 1000;

const stateDir = mkdtempSync(join(tmpdir(), "nodewise-bench-probes-"));
const metrics = daemonMetrics();
const late = new Uint32Array(LATEST_MS + 1);
const seenNow = () => ({ attempts: 0, failures: 0, cpu: process.cpuUsage(), atMs: performance.now() });
let seen = seenNow();
const counters: typeof metrics.counters = {
  ...metrics.counters,
  probed: (type, result, seconds) => {
    metrics.counters.probed(type, result, seconds);
    seen.attempts++;
    if (result !== "success") seen.failures++;
  },
  probeLate: (seconds) => {
    metrics.counters.probeLate(seconds);
    const ms = Math.min(Math.floor(seconds * 1000), LATEST_MS);
    late[ms] = (late[ms] ?? 0) + 1;
  },
};
const startedAtMs = Date.now();
const manager = new ProbeManager(
  {
    ...{ attempt, counters, clock: systemProbeClock, random: Math.random },
    runtime: { exec: () => Promise.reject(new Error("no runtime here")) },
    history: new ProbeHistory({ stateDir, clock: systemProbeClock, onFault: console.error }),
    ...{ onResult() {}, onEvent() {}, onGuard() {} },
  },
  { startedAtMs, strict: false, spread: true, execLimit: DEFAULT_EXEC_LIMIT, guard: null, profile: v1_36 },
);

const livenessAt = (port: number): ProbeSpec => ({
  handler: { http: { scheme: "HTTP", host: "", port, path: "/healthz", headers: [] } },
  ...{ initialDelaySeconds: 0, timeoutSeconds: 1, periodSeconds: 1, successThreshold: 1, failureThreshold: 3 },
  terminationGracePeriodSeconds: null,
});
/** The specs of the pods are parsed once. */
const SPECS = Array.from({ length: Number(count) }, (_, i) => ({
  ports: [],
  env: [],
  probes: { startup: null, liveness: livenessAt(Number(ports[i % ports.length])), readiness: null },
}));
const probedContainer = (i: number): ProbedContainer => ({
  ...{ ports: [], env: [], probes: { startup: null, liveness: null, readiness: null } },
  ...SPECS[i],
  ...{ name: "app", isSidecar: false, id: `id-${i}`, state: "running", startedAtMs },
  ...{ willRestart: true, wasStarted: null },
});
const probedPod = (i: number): ProbedPod => ({
  ...{ uid: `uid-${i}`, namespace: "bench", name: `pod-${i}`, owner: null, podIP: "127.0.0.1", deletionAtMs: null },
  ...{ phase: "Running", wasReady: false, containers: [probedContainer(i)] },
});
/** New objects at each look, as a daemon makes them. */
const pods = (): readonly ProbedPod[] => Array.from({ length: Number(count) }, (_, i) => probedPod(i));
const compilers = new OptimizingCompilers();
const look = (): void => {
  manager.sync(pods());
  compilers.observe(manager.perSecond);
};
look();
setInterval(look, LOOK_MS);
setInterval(() => JSON.stringify(probeRows(manager.facts())), SHOWN_MS);

process.on("message", () => {
  const { user, system } = process.cpuUsage(seen.cpu);
  const { attempts, failures, atMs } = seen;
  const seconds = (performance.now() - atMs) / 1000;
  const rssBytes = process.memoryUsage.rss();
  const reported = { seconds, attempts, failures, cpuMicros: user + system, rssBytes, late: [...late] };
  gc?.();
  process.send?.({ ...reported, heldBytes: process.memoryUsage().heapUsed } satisfies ProbesSeen);
  setTimeout(() => {
    late.fill(0);
    seen = seenNow();
  }, SETTLED_MS);
});
process.on("disconnect", () => {
  manager.close();
  rmSync(stateDir, { recursive: true });
  process.exit();
});
process.send?.("begun");
