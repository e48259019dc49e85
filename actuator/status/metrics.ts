import type { Counters } from "./counters.ts";
import { nodeGauges } from "./node-gauges.ts";
import type { NodeStatus } from "./node-status.ts";
import { probeCountersIn } from "./probe-counters.ts";
import { Counter, Gauge, Histogram, Registry } from "./prom-parts.ts";

export interface Rendered {
  readonly type: string;
  readonly text: string;
}
export interface DaemonMetrics {
  readonly counters: Counters;
  /** In the Prometheus text format. */
  render(status: NodeStatus): Promise<Rendered>;
}

/** Of one label: callers' words (`OutOfexample.com/gpu`) are not bounded by themselves. */
const MOST_VALUES = 64;

/** Counters and gauges in a registry of their own. Nothing runs while nobody asks. */
export function daemonMetrics(): DaemonMetrics {
  const registry = new Registry();
  const registers = [registry];
  const fill = nodeGauges(registry);
  processGauges(registry);
  return {
    counters: countersIn(registers),
    render: async (status) => {
      fill(status);
      return { type: registry.contentType, text: await registry.metrics() };
    },
  };
}

function countersIn(registers: Registry[]): Counters {
  const counter = <L extends string>(name: string, help: string, ...labelNames: readonly L[]) =>
    new Counter({ name, help, labelNames, registers });
  const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
  const took = new Histogram({ name: "nodewise_pass_duration_seconds", help: "Time of a pass", buckets, registers });
  const cpu = new Histogram({ name: "nodewise_pass_cpu_seconds", help: "CPU time of a pass", buckets, registers });
  const decided = counter("nodewise_decisions_total", "Decisions by kind, and who made them", "kind", "by");
  const wrote = counter("nodewise_cgroup_writes_total", "Cgroup files written, directories made and removed");
  const drifted = counter("nodewise_drift_total", "Files found with another value than wanted, by cause", "cause");
  const failed = counter("nodewise_runtime_call_failures_total", "Failed calls of the runtime", "call", "code");
  const restarted = counter("nodewise_restarts_total", "Containers started again");
  const refused = counter("nodewise_pod_refusals_total", "Pods not let in, by reason", "reason");
  const evicted = counter("nodewise_evictions_total", "Pods evicted, by signal", "signal");
  const preempted = counter("nodewise_preemptions_total", "Pods ended to make room for a critical one");
  const dropped = counter("nodewise_events_dropped_total", "Events that had to make room for newer ones");
  const asked = counter("nodewise_device_allocations_total", "Allocate calls to device plugins", "resource", "result");
  const came = counter("nodewise_device_plugin_registrations_total", "Registrations of device plugins", "result");
  const outbox = new Gauge({ name: "nodewise_outbox_entries", help: "What waits to be sent to the API", registers });
  const [call, code, reason, signal, device] = [bounded(), bounded(), bounded(), bounded(), bounded()];
  return {
    pass: (tookMs, cpuMs) => {
      took.observe(tookMs / 1000);
      cpu.observe(cpuMs / 1000);
    },
    decided: (kind, by) => decided.inc({ kind, by }),
    wrote: (steps) => wrote.inc(steps),
    drifted: (cause, files) => drifted.inc({ cause }, files),
    runtimeCallFailed: (fault) => failed.inc({ call: call(fault.call), code: code(fault.code) }),
    restarted: (containers) => restarted.inc(containers),
    refused: (reasonName) => refused.inc({ reason: reason(reasonName) }),
    evicted: (signalName) => evicted.inc({ signal: signal(signalName) }),
    preempted: () => preempted.inc(),
    eventsDropped: (events) => dropped.inc(events),
    deviceAllocated: (resource, isDone) =>
      asked.inc({ resource: device(resource), result: isDone ? "allocated" : "failed" }),
    devicePluginRegistered: (isTaken) => came.inc({ result: isTaken ? "registered" : "refused" }),
    outbox: (entries) => outbox.set(entries),
    ...probeCountersIn(registers),
  };
}

/** The first values of a label as they are, later ones as `other`. */
function bounded(): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.size < MOST_VALUES) known.add(value);
    return known.has(value) ? value : "other";
  };
}

/** By the names that every Prometheus client uses. The client's own collector would wake an idle daemon 100 times a second. */
function processGauges(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: "process_start_time_seconds",
    help: "Start of the process since 1970",
    registers,
  }).set(Math.round(performance.timeOrigin / 1000));
  new Gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory",
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Counter({
    name: "process_cpu_seconds_total",
    help: "CPU time of the process",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
}
