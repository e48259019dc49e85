import { POD_STATES, STATE_WORDS } from "../lifecycle/record.ts";
import { Counter, type Counters, exportUnderOldName, Gauge, Histogram, probeCountersIn, Registry } from "./counters.ts";
import type { DeviceRow, NodeStatus, PodRow } from "./node-status.ts";

/** Resources with series of their own; those with registered plugins come first. */
const MAX_RESOURCES = 256;

/** Makes gauges of the devices in a NodeStatus. INVARIANT: the number of series is bounded, whatever registers. */
function deviceGauges(registry: Registry): (rows: readonly DeviceRow[]) => void {
  const registers = [registry];
  const labelNames = ["resource"] as const;
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers });
  const capacity = gauge("nodewise_device_capacity", "Devices that a plugin lists");
  const allocatable = gauge("nodewise_device_allocatable", "Those of them that are healthy");
  const allocated = gauge("nodewise_device_allocated", "Devices that containers hold");
  const pending = gauge("nodewise_device_pending", "Containers with devices and without their plugin's answer");
  const up = gauge("nodewise_device_plugin_up", "1: the resource's plugin is registered");
  const name = "nodewise_device_health_changes_total";
  const changes = new Counter({ name, help: "Changes of devices' health", labelNames, registers });
  exportUnderOldName("nodewise_device_health_flips_total", { name, counter: changes, labelNames }, registers);
  const omitted = new Gauge({
    name: "nodewise_device_resources_without_series",
    help: "Resources beyond the limit",
    registers,
  });
  return (rows) => {
    for (const one of [capacity, allocatable, allocated, pending, up, changes]) one.reset();
    const shown = [...rows.filter(isUp), ...rows.filter((row) => !isUp(row))].slice(0, MAX_RESOURCES);
    omitted.set(rows.length - shown.length);
    for (const row of shown) {
      const labels = { resource: row.resource };
      capacity.set(labels, row.capacity);
      allocatable.set(labels, row.allocatable);
      allocated.set(labels, row.allocated);
      pending.set(labels, row.pending);
      up.set(labels, Number(isUp(row)));
      changes.inc(labels, row.flips);
    }
  };
}
const isUp = ({ plugin }: DeviceRow): boolean => plugin === "registered";

const PHASES = ["Pending", "Running", "Succeeded", "Failed", "Unknown"] as const;
const SIGNS = ["process", "sandboxes", "stops", "listener"] as const;
/** Pods with series of their own; living ones come first. */
const MAX_PODS = 256;
/** Drifted files with series of their own; another series has their full number. */
const MAX_FILES = 50;

/** Makes a registry's gauges of a NodeStatus; the returned function fills them anew. */
function nodeGauges(registry: Registry): (status: NodeStatus) => void {
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, ...labelNames: readonly L[]) =>
    new Gauge({ name, help, labelNames, registers });
  const info = gauge("nodewise_node_info", "The node, and what its daemon does", "node", "mode", "runtime", "version");
  const runtimeUp = gauge("nodewise_runtime_up", "1: the container runtime answers");
  const notReady = gauge(
    "nodewise_runtime_not_ready",
    "What the runtime reports that keeps it from running pods, such as its network",
  );
  const lastPass = gauge("nodewise_last_pass_timestamp_seconds", "When the last pass was");
  const lastDrift = gauge("nodewise_drift_files", "Files with a wrong value in the last pass");
  const drifted = gauge(
    "nodewise_drifted_file",
    "A cgroup file with a wrong value, and the cause; at most 50",
    "cgroup",
    "file",
    "cause",
  );
  const unwritable = gauge("nodewise_unwritable_files", "Own files and directories that cannot be written now");
  const problems = gauge("nodewise_problems", "Current problems and notices");
  const otherKubelet = gauge(
    "nodewise_other_kubelet",
    "1: another kubelet uses this runtime, by this evidence",
    "sign",
  );
  const refused = gauge("nodewise_refused_manifests", "Manifests that are not run");
  const pods = gauge(
    "nodewise_working_pods",
    "Pods by phase, and by state: pending (not admitted yet), active, terminating or terminated",
    "phase",
    "state",
  );
  const oldPods = gauge(
    "nodewise_pods",
    "Deprecated: renamed to nodewise_working_pods, whose states have other names: pending for waits, active for lives, terminating for ends, terminated for ended",
    "phase",
    "state",
  );
  const fillPods = podGauges(registry);
  const fillDevices = deviceGauges(registry);
  return (status) => {
    info.reset();
    const { name: runtime, version } = status.runtime ?? { name: "", version: "" };
    info.set({ node: status.nodeName, mode: status.mode, runtime, version }, 1);
    runtimeUp.set(status.runtime === null ? 0 : 1);
    notReady.set(status.runtime?.notReady?.length ?? 0);
    if (status.pass !== null) {
      lastPass.set(Date.parse(status.pass.at) / 1000);
      // no series is not the same as no drift
      if (status.pass.compared === false) lastDrift.remove();
      else lastDrift.set(status.pass.drift);
    }
    drifted.reset();
    for (const { path: cgroup, file, cause } of (status.pass?.drifted ?? []).slice(0, MAX_FILES))
      drifted.set({ cgroup, file, cause }, 1);
    unwritable.set(status.unwritable?.length ?? 0);
    problems.set(status.problems.length);
    refused.set(status.refusedManifests.length);
    if (status.runsPods !== false)
      for (const sign of SIGNS) otherKubelet.set({ sign }, status.otherKubelet?.signs.includes(sign) ? 1 : 0);
    for (const phase of PHASES)
      for (const state of POD_STATES) {
        pods.set({ phase, state }, 0);
        oldPods.set({ phase, state: STATE_WORDS[state] }, 0);
      }
    for (const { phase, state } of status.pods) {
      pods.inc({ phase, state });
      oldPods.inc({ phase, state: STATE_WORDS[state] });
    }
    fillPods(status.pods);
    fillDevices(status.devices ?? []);
  };
}

/** INVARIANT: the number of series is bounded, whatever the node runs. */
function podGauges(registry: Registry): (pods: readonly PodRow[]) => void {
  const registers = [registry];
  const labelNames = ["namespace", "pod"] as const;
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers });
  const help = "Restarts of a pod's containers";
  const restarts = new Counter({ name: "nodewise_pod_restarts_total", help, labelNames, registers });
  const cpu = gauge("nodewise_pod_cpu_usage_cores", "CPU that a pod uses");
  const memory = gauge(
    "nodewise_pod_memory_working_set_bytes",
    "Working set of a pod: memory that cannot be reclaimed easily",
  );
  const pids = gauge("nodewise_pod_processes", "Processes and threads of a pod");
  const throttled = gauge("nodewise_pod_cpu_throttled_ratio", "Periods in which its quota held a pod back");
  const pressure = new Gauge({
    name: "nodewise_pod_pressure_ratio",
    help: "Time of the last ten seconds in which some of a pod's tasks waited",
    labelNames: [...labelNames, "resource"],
    registers,
  });
  const omitted = new Gauge({ name: "nodewise_pods_without_series", help: "Pods beyond the limit", registers });
  return (pods) => {
    for (const one of [restarts, cpu, memory, pids, throttled, pressure]) one.reset();
    const shown = [...pods.filter(isLiving), ...pods.filter((pod) => !isLiving(pod))].slice(0, MAX_PODS);
    omitted.set(pods.length - shown.length);
    for (const { namespace, name: pod, containers, usage } of shown) {
      const labels = { namespace, pod };
      restarts.inc(
        labels,
        containers.reduce((sum, { restarts }) => sum + restarts, 0),
      );
      if (usage === null) continue;
      setKnown(cpu, labels, usage.cpuMilli, 1000);
      setKnown(memory, labels, usage.memoryWorkingSetBytes, 1);
      setKnown(pids, labels, usage.pids, 1);
      setKnown(throttled, labels, usage.throttledPermille, 1000);
      for (const [resource, percent] of Object.entries(usage.pressure ?? {}))
        pressure.set({ ...labels, resource }, percent / 100);
    }
  };
}
const isLiving = ({ state }: PodRow): boolean => state === "active" || state === "terminating";

function setKnown(
  gauge: Gauge<"namespace" | "pod">,
  labels: { readonly namespace: string; readonly pod: string },
  value: number | null,
  divisor: number,
): void {
  if (value !== null) gauge.set(labels, value / divisor);
}

interface Rendered {
  readonly type: string;
  readonly text: string;
}
export interface DaemonMetrics {
  readonly counters: Counters;
  /** In the Prometheus text format. */
  render(status: NodeStatus): Promise<Rendered>;
}

/** The maximum number of values of one label: values from callers (`OutOfexample.com/gpu`) are unbounded. */
const MAX_VALUES = 64;

/** Counters and gauges in a registry of their own. Gauges are computed only on request. */
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
  const drifted = counter("nodewise_drift_total", "Files found with a wrong value, by cause", "cause");
  const failed = counter("nodewise_runtime_call_failures_total", "Failed calls of the runtime", "call", "code");
  const restarted = counter("nodewise_restarts_total", "Containers started again");
  const stopped = counter(
    "nodewise_containers_stopped_by_others_total",
    "Containers that another program stopped",
    "how",
  );
  for (const how of ["sandbox", "removed", "signal"]) stopped.inc({ how }, 0);
  const name = "nodewise_admission_rejections_total";
  const rejected = counter(name, "Pods that were not admitted, by reason", "reason");
  exportUnderOldName("nodewise_pod_refusals_total", { name, counter: rejected, labelNames: ["reason"] }, registers);
  const evicted = counter("nodewise_evictions_total", "Pods evicted, by signal", "signal");
  const preempted = counter("nodewise_preemptions_total", "Pods preempted to admit a critical pod");
  const rotated = counter("nodewise_container_log_rotations_total", "Logs of containers that were rotated");
  const unrotated = counter("nodewise_container_log_rotation_failures_total", "Errors while rotating them");
  const dropped = counter("nodewise_events_dropped_total", "Events that had to make room for newer ones");
  const asked = counter("nodewise_device_allocations_total", "Allocate calls to device plugins", "resource", "result");
  const came = counter("nodewise_device_plugin_registrations_total", "Registrations of device plugins", "result");
  const outbox = new Gauge({
    name: "nodewise_outbox_entries",
    help: "Entries that wait to be sent to the API",
    registers,
  });
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
    stoppedByOthers: (how, containers) => stopped.inc({ how }, containers),
    refused: (reasonName) => rejected.inc({ reason: reason(reasonName) }),
    evicted: (signalName) => evicted.inc({ signal: signal(signalName) }),
    preempted: () => preempted.inc(),
    logRotated: () => rotated.inc(),
    logRotationFailed: () => unrotated.inc(),
    eventsDropped: (events) => dropped.inc(events),
    deviceAllocated: (resource, isDone) =>
      asked.inc({ resource: device(resource), result: isDone ? "allocated" : "failed" }),
    devicePluginRegistered: (isTaken) => came.inc({ result: isTaken ? "registered" : "refused" }),
    outbox: (entries) => outbox.set(entries),
    ...probeCountersIn(registers),
  };
}

/** Keeps the first values of a label; later ones become `other`. */
function bounded(): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.size < MAX_VALUES) known.add(value);
    return known.has(value) ? value : "other";
  };
}

/** Process metrics under the names of every Prometheus client. The client's own collector would wake an idle daemon 100 times a second. */
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
