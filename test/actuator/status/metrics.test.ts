import { expect, test } from "vitest";
import { daemonMetrics } from "../../../actuator/status/metrics.ts";
import { decodeStatus } from "../../../actuator/status/node-status.ts";
import { deviceRow, nodeStatus, podRow, WEB } from "../../kit/node-status.ts";

const lines = async (metrics: ReturnType<typeof daemonMetrics>, status = nodeStatus()): Promise<readonly string[]> =>
  (await metrics.render(status)).text.split("\n").filter((line) => !line.startsWith("#") && line !== "");

test("counters are exported with their counts", async () => {
  const metrics = daemonMetrics();
  const { counters } = metrics;
  counters.pass(48, 31);
  counters.pass(3000, 2);
  counters.decided("cgroups", "here");
  counters.decided("cgroups", "api");
  counters.decided("cgroups", "api");
  counters.wrote(5);
  counters.drifted("other_writer", 2);
  counters.runtimeCallFailed({ call: "RunPodSandbox", code: "UNAVAILABLE" });
  counters.restarted(1);
  counters.stoppedByOthers("sandbox", 2);
  counters.refused("OutOfcpu");
  counters.evicted("memory.available");
  counters.preempted();
  counters.eventsDropped(3);
  counters.outbox(4);
  counters.outbox(1);
  const messages = await lines(metrics);
  for (const line of [
    "nodewise_pass_duration_seconds_count 2",
    "nodewise_pass_duration_seconds_sum 3.048",
    'nodewise_pass_duration_seconds_bucket{le="0.05"} 1',
    'nodewise_pass_cpu_seconds_bucket{le="0.05"} 2',
    'nodewise_decisions_total{kind="cgroups",by="here"} 1',
    'nodewise_decisions_total{kind="cgroups",by="api"} 2',
    "nodewise_cgroup_writes_total 5",
    'nodewise_drift_total{cause="other_writer"} 2',
    'nodewise_runtime_call_failures_total{call="RunPodSandbox",code="UNAVAILABLE"} 1',
    "nodewise_restarts_total 1",
    'nodewise_containers_stopped_by_others_total{how="sandbox"} 2',
    'nodewise_containers_stopped_by_others_total{how="signal"} 0',
    'nodewise_admission_rejections_total{reason="OutOfcpu"} 1',
    'nodewise_evictions_total{signal="memory.available"} 1',
    "nodewise_preemptions_total 1",
    "nodewise_events_dropped_total 3",
    "nodewise_outbox_entries 1",
  ])
    expect(messages).toContain(line);
});

test("another kubelet at the runtime is exported by its signs, and read back from a status", async () => {
  const metrics = daemonMetrics();
  const otherKubelet = { since: "2026-11-23T14:04:47Z", signs: ["process", "stops"], message: "one is here" } as const;
  const status = nodeStatus({ otherKubelet });
  const reportOf = async (): Promise<readonly string[]> => {
    const { text } = await metrics.render(status);
    return text.split("\n").filter((line) => line.startsWith("nodewise_other_kubelet{"));
  };
  expect(await reportOf()).toEqual([
    'nodewise_other_kubelet{sign="process"} 1',
    'nodewise_other_kubelet{sign="sandboxes"} 0',
    'nodewise_other_kubelet{sign="stops"} 1',
    'nodewise_other_kubelet{sign="listener"} 0',
  ]);
  expect(decodeStatus(JSON.stringify(status))).toMatchObject({ ok: true, value: { otherKubelet } });
  const odd = JSON.stringify({ ...status, otherKubelet: { ...otherKubelet, signs: ["guess"] } });
  expect(decodeStatus(odd)).toMatchObject({ ok: false, error: expect.stringContaining("otherKubelet.signs.0") });
});

test("a pass that compared nothing exports no drift figure, rather than 0", async () => {
  const metrics = daemonMetrics();
  const { pass } = nodeStatus();
  if (pass === null) throw new Error("no pass");
  const isDrift = (line: string): boolean => line.startsWith("nodewise_drift_files");
  expect((await lines(metrics)).filter(isDrift)).toEqual(["nodewise_drift_files 1"]);
  const blind = nodeStatus({ pass: { ...pass, drift: 0, compared: false } });
  expect((await lines(metrics, blind)).filter(isDrift)).toEqual([]);
  expect((await lines(metrics)).filter(isDrift)).toEqual(["nodewise_drift_files 1"]);
});

test("gauges follow the status, and removed pods disappear", async () => {
  const metrics = daemonMetrics();
  const messages = await lines(metrics);
  for (const line of [
    'nodewise_node_info{node="n1",mode="enforce",runtime="containerd",version="2.1.4"} 1',
    "nodewise_runtime_up 1",
    "nodewise_drift_files 1",
    'nodewise_working_pods{phase="Running",state="active"} 2',
    'nodewise_working_pods{phase="Pending",state="pending"} 1',
    'nodewise_working_pods{phase="Succeeded",state="terminated"} 1',
    'nodewise_working_pods{phase="Failed",state="terminated"} 0',
    'nodewise_pod_restarts_total{namespace="shop",pod="crashing"} 9',
    'nodewise_pod_cpu_usage_cores{namespace="shop",pod="web"} 0.25',
    `nodewise_pod_memory_working_set_bytes{namespace="shop",pod="web"} ${240 * 2 ** 20}`,
    'nodewise_pod_cpu_throttled_ratio{namespace="shop",pod="web"} 0.312',
    'nodewise_pod_pressure_ratio{namespace="shop",pod="web",resource="io"} 0.12',
  ])
    expect(messages).toContain(line);
  expect(messages.filter((line) => line.startsWith("nodewise_pod_processes"))).toHaveLength(1);
  const later = await lines(metrics, nodeStatus({ pods: [], runtime: null }));
  expect(later.filter((line) => line.includes('pod="'))).toEqual([]);
  expect(later).toContain("nodewise_runtime_up 0");
  expect(later).toContain('nodewise_working_pods{phase="Running",state="active"} 0');
  expect(later.filter((line) => line.startsWith("nodewise_node_info"))).toHaveLength(1);
});

test("the number of series is bounded, with running pods first", async () => {
  const metrics = daemonMetrics();
  for (let i = 0; i < 500; i++) metrics.counters.refused(`OutOfexample.com/gpu-${i}`);
  const ended = Array.from({ length: 400 }, (_, i) => podRow(`old-${i}`, { state: "terminated", phase: "Failed" }));
  const messages = await lines(metrics, nodeStatus({ pods: [...ended, WEB] }));
  expect(messages.filter((line) => line.startsWith("nodewise_admission_rejections_total"))).toHaveLength(65);
  expect(messages).toContain('nodewise_admission_rejections_total{reason="other"} 436');
  expect(messages.filter((line) => line.startsWith("nodewise_pod_restarts_total"))).toHaveLength(256);
  expect(messages).toContain('nodewise_pod_restarts_total{namespace="shop",pod="web"} 9');
  expect(messages).toContain("nodewise_pods_without_series 145");
});

test("renamed metrics are also exported under their old names, with the same values", async () => {
  const metrics = daemonMetrics();
  const { counters } = metrics;
  counters.refused("OutOfcpu");
  counters.refused("OutOfcpu");
  counters.refused("Evicted");
  counters.probeKillsHeld(4);
  const devices = [deviceRow("vendor.com/gpu", { flips: 3 }), deviceRow("vendor.com/nic")];
  const pods = [podRow("a", { state: "terminating", phase: "Running" }), podRow("b", { state: "pending" }), WEB];
  const { text } = await metrics.render(nodeStatus({ pods, devices }));
  const samplesOf = (name: string): readonly string[] =>
    text.split("\n").flatMap((line) => (/^\w+/.exec(line)?.[0] === name ? [line.slice(name.length)] : []));
  for (const [old, now, count] of [
    ["nodewise_pod_refusals_total", "nodewise_admission_rejections_total", 2],
    ["nodewise_probe_kills_held_total", "nodewise_liveness_probe_kills_deferred_total", 1],
    ["nodewise_device_health_flips_total", "nodewise_device_health_changes_total", 2],
  ] as const) {
    expect(samplesOf(now)).toHaveLength(count);
    expect(samplesOf(old)).toEqual(samplesOf(now));
    expect(text).toContain(`# HELP ${old} Deprecated: renamed to ${now}\n`);
  }
  const oldWord = { pending: "waits", active: "lives", terminating: "ends", terminated: "ended" } as const;
  const renamed = samplesOf("nodewise_working_pods").map((line) =>
    line.replace(/state="(\w+)"/, (_, state: keyof typeof oldWord) => `state="${oldWord[state]}"`),
  );
  expect(renamed).toHaveLength(20);
  expect(samplesOf("nodewise_pods")).toEqual(renamed);
  expect(renamed).toContain('{phase="Running",state="ends"} 1');
  expect(renamed).toContain('{phase="Running",state="lives"} 1');
  // a second scrape counts nothing twice, and a resource that is no longer listed has no series under either name
  expect(await lines(metrics, nodeStatus({ devices }))).toContain('nodewise_pod_refusals_total{reason="OutOfcpu"} 2');
  expect((await lines(metrics)).filter((line) => line.startsWith("nodewise_device_health_"))).toEqual([]);
});

test("pod names are escaped", async () => {
  const pods = [podRow('x"} 1\nevil{a="b', { containers: [] })];
  const messages = await lines(daemonMetrics(), nodeStatus({ pods }));
  expect(messages).toContain('nodewise_pod_restarts_total{namespace="shop",pod="x\\"} 1\\nevil{a=\\"b"} 0');
});

test("devices are exported with capacity, holders, plugin state and allocations", async () => {
  const metrics = daemonMetrics();
  const { counters } = metrics;
  counters.deviceAllocated("vendor.com/gpu", true);
  counters.deviceAllocated("vendor.com/gpu", true);
  counters.deviceAllocated("vendor.com/gpu", false);
  counters.devicePluginRegistered(true);
  counters.devicePluginRegistered(false);
  counters.devicePluginRegistered(false);
  const nic = deviceRow("vendor.com/nic", { plugin: "stopped", allocatable: 0, pending: 2 });
  const devices = [deviceRow("vendor.com/gpu", { flips: 3 }), nic];
  const of = async (status = nodeStatus({ devices })) =>
    (await lines(metrics, status)).filter((line) => line.startsWith("nodewise_device_"));
  const messages = await of();
  for (const line of [
    'nodewise_device_capacity{resource="vendor.com/gpu"} 4',
    'nodewise_device_allocatable{resource="vendor.com/gpu"} 3',
    'nodewise_device_allocatable{resource="vendor.com/nic"} 0',
    'nodewise_device_allocated{resource="vendor.com/gpu"} 2',
    'nodewise_device_pending{resource="vendor.com/nic"} 2',
    'nodewise_device_plugin_up{resource="vendor.com/gpu"} 1',
    'nodewise_device_plugin_up{resource="vendor.com/nic"} 0',
    'nodewise_device_health_changes_total{resource="vendor.com/gpu"} 3',
    'nodewise_device_allocations_total{resource="vendor.com/gpu",result="allocated"} 2',
    'nodewise_device_allocations_total{resource="vendor.com/gpu",result="failed"} 1',
    'nodewise_device_plugin_registrations_total{result="registered"} 1',
    'nodewise_device_plugin_registrations_total{result="refused"} 2',
  ])
    expect(messages).toContain(line);
  // the second scrape does not count a change again
  expect(await of()).toEqual(messages);
  const gone = await of(nodeStatus());
  expect(gone.filter((line) => line.includes("capacity") || line.includes("_up{"))).toEqual([]);
});

test("device series are bounded, with registered plugins first", async () => {
  const metrics = daemonMetrics();
  const old = Array.from({ length: 300 }, (_, i) => deviceRow(`old.com/r${i}`, { plugin: "unregistered" }));
  for (let i = 0; i < 100; i++) metrics.counters.deviceAllocated(`vendor.com/r${i}`, true);
  const messages = await lines(metrics, nodeStatus({ devices: [...old, deviceRow("new.com/r")] }));
  expect(messages.filter((line) => line.startsWith("nodewise_device_capacity"))).toHaveLength(256);
  expect(messages).toContain('nodewise_device_plugin_up{resource="new.com/r"} 1');
  expect(messages).toContain("nodewise_device_resources_without_series 45");
  expect(messages).toContain('nodewise_device_allocations_total{resource="other",result="allocated"} 36');
});

test("each drifting file is a series, at most 50 of them, until it is corrected", async () => {
  const metrics = daemonMetrics();
  const { pass } = nodeStatus();
  if (pass === null) throw new Error("no pass");
  const drifted = Array.from({ length: 60 }, (_, i) => {
    return {
      path: `/kubepods/pod${i}`,
      file: "cpu.shares",
      actual: "77",
      wanted: "102",
      cause: "never_written",
    } as const;
  });
  const isDrift = (line: string): boolean => line.startsWith("nodewise_drifted_file{");
  const messages = (await lines(metrics, nodeStatus({ pass: { ...pass, drift: 60, drifted } }))).filter(isDrift);
  expect(messages).toHaveLength(50);
  expect(messages[0]).toBe('nodewise_drifted_file{cgroup="/kubepods/pod0",file="cpu.shares",cause="never_written"} 1');
  expect((await lines(metrics)).filter(isDrift)).toEqual([]);
  const full = await lines(metrics, nodeStatus({ unwritable: ["/s: ENOSPC"] }));
  expect(full).toContain("nodewise_unwritable_files 1");
});
