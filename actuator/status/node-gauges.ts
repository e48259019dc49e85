import { deviceGauges } from "./device-gauges.ts";
import type { NodeStatus, PodRow } from "./node-status.ts";
import { Counter, Gauge, type Registry } from "./prom-parts.ts";

const PHASES = ["Pending", "Running", "Succeeded", "Failed", "Unknown"] as const;
const STATES = ["waits", "lives", "ends", "ended"] as const;
/** Pods with series of their own; those that live come first. */
const MOST_PODS = 256;

/** What a NodeStatus tells, as gauges of a registry; the function fills them anew. */
export function nodeGauges(registry: Registry): (status: NodeStatus) => void {
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, ...labelNames: readonly L[]) =>
    new Gauge({ name, help, labelNames, registers });
  const info = gauge("nodewise_node_info", "The node, and what its daemon does", "node", "mode", "runtime", "version");
  const runtimeUp = gauge("nodewise_runtime_up", "1: the container runtime answers");
  const lastPass = gauge("nodewise_last_pass_timestamp_seconds", "When the last pass was");
  const lastDrift = gauge("nodewise_drift_files", "Files with another value than wanted in the last pass");
  const problems = gauge("nodewise_problems", "Faults and notices that hold now");
  const refused = gauge("nodewise_refused_manifests", "Manifests that are not run");
  const pods = gauge("nodewise_pods", "Pods by phase, and by what the daemon does with them", "phase", "state");
  const fillPods = podGauges(registry);
  const fillDevices = deviceGauges(registry);
  return (status) => {
    info.reset();
    const { name: runtime, version } = status.runtime ?? { name: "", version: "" };
    info.set({ node: status.nodeName, mode: status.mode, runtime, version }, 1);
    runtimeUp.set(status.runtime === null ? 0 : 1);
    if (status.pass !== null) {
      lastPass.set(Date.parse(status.pass.at) / 1000);
      // no series is not the same as no drift
      if (status.pass.compared === false) lastDrift.remove();
      else lastDrift.set(status.pass.drift);
    }
    problems.set(status.problems.length);
    refused.set(status.refusedManifests.length);
    for (const phase of PHASES) for (const state of STATES) pods.set({ phase, state }, 0);
    for (const { phase, state } of status.pods) pods.inc({ phase, state });
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
  const memory = gauge("nodewise_pod_memory_working_set_bytes", "Memory of a pod that cannot be taken back easily");
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
    const shown = [...pods.filter(isLiving), ...pods.filter((pod) => !isLiving(pod))].slice(0, MOST_PODS);
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
const isLiving = ({ state }: PodRow): boolean => state === "lives" || state === "ends";

function setKnown(
  gauge: Gauge<"namespace" | "pod">,
  labels: { readonly namespace: string; readonly pod: string },
  value: number | null,
  divisor: number,
): void {
  if (value !== null) gauge.set(labels, value / divisor);
}
