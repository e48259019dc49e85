import { join } from "node:path";
import { expect, test } from "vitest";
import { ApiClient, redactingClient } from "../../../../actuator/client/client.ts";
import { Outbox } from "../../../../actuator/client/outbox.ts";
import { FactsStore } from "../../../../actuator/core/facts-file.ts";
import { daemonMetrics } from "../../../../actuator/status/metrics.ts";
import { nodeStatus } from "../../../kit/node-status.ts";
import { scratch } from "../../manifests/scratch.ts";
import { appPod, SimulatedPodsNode, type SimulatedPodsNodeOptions } from "./simulated-node.ts";

const CRITICAL = 2_000_000_000;

/** A node whose daemon counts; `reportOf` returns the lines of one counter in /metrics. */
function counted(options: SimulatedPodsNodeOptions = {}) {
  const metrics = daemonMetrics();
  const world = new SimulatedPodsNode({ ...options, counters: metrics.counters });
  const reportOf = async (name: string): Promise<readonly string[]> => {
    const { text } = await metrics.render(nodeStatus());
    return text.split("\n").filter((line) => line.startsWith(name));
  };
  return { world, reportOf, metrics };
}

test("restarts of a container are counted, its first start is not", async () => {
  const { world, reportOf } = counted();
  world.runtime.programOf = () => ({ runsMs: 2_000, exitCode: 1, stopsMs: 0 });
  world.pods = [appPod("crash", { cpu: "100m" })];
  await world.run(2);
  expect(await reportOf("nodewise_restarts_total")).toEqual(["nodewise_restarts_total 0"]);
  await world.run(30);
  const starts = world.events.filter(({ reason }) => reason === "Started").length;
  expect(starts).toBeGreaterThan(2);
  expect(await reportOf("nodewise_restarts_total")).toEqual([`nodewise_restarts_total ${starts - 1}`]);
});

test("a refused pod is counted once, however often it is retried for the same reason", async () => {
  const { world, reportOf } = counted();
  world.pods = [appPod("large", { cpu: "64" }), appPod("small", { cpu: "1" })];
  await world.run(70);
  expect(world.pod("large").record.refusal?.tries).toBeGreaterThan(1);
  expect(await reportOf("nodewise_admission_rejections_total")).toEqual([
    'nodewise_admission_rejections_total{reason="OutOfcpu"} 1',
  ]);
  expect(await reportOf("nodewise_preemptions_total")).toEqual(["nodewise_preemptions_total 0"]);
});

test("a pod preempted for a critical pod is counted, and the wait is no refusal", async () => {
  const { world, reportOf } = counted();
  world.pods = [appPod("one", { cpu: "3" }), appPod("other", { cpu: "3" })];
  await world.run(4);
  world.pods = [...world.pods, appPod("critical", { cpu: "4" }, { spec: { priority: CRITICAL } })];
  await world.run(10);
  expect(world.pod("critical").record.state).toBe("active");
  expect(await reportOf("nodewise_preemptions_total")).toEqual(["nodewise_preemptions_total 1"]);
  // waiting for its victims is not a refusal
  expect(await reportOf("nodewise_admission_rejections_total")).toEqual([]);
});

test("evictions are counted by the signal that caused them, or by the limit that the pod exceeded", async () => {
  const Gi = 2 ** 30;
  const free = { memory: 8 * Gi, volume: 0 };
  const { world, reportOf } = counted({
    configuration: { evictionHard: { "memory.available": "1Gi" } },
    stats: async () => {
      const time = new Date(world.time.nowMs()).toISOString();
      const memory = { time, availableBytes: free.memory, workingSetBytes: 32 * Gi - free.memory };
      const volumed = {
        podRef: { name: "volumed", namespace: "default", uid: "volumed" },
        startTime: time,
        containers: [{ name: "app", startTime: time }],
        volume: [{ name: "data", time, usedBytes: free.volume }],
        "ephemeral-storage": { time, usedBytes: free.volume },
      };
      return { node: { nodeName: "sim", memory, systemContainers: [] }, pods: [volumed] };
    },
  });
  const volumes = [{ name: "data", emptyDir: { sizeLimit: "1Mi" } }];
  world.pods = [appPod("hungry", { memory: "1Gi" }), appPod("volumed", { memory: "1Gi" }, { spec: { volumes } })];
  await world.run(4);
  expect(await reportOf("nodewise_evictions_total")).toEqual([]);
  free.volume = 2 ** 21;
  await world.run(12);
  expect(await reportOf("nodewise_evictions_total")).toEqual(['nodewise_evictions_total{signal="emptyDir"} 1']);
  free.memory = Gi / 2;
  await world.run(12);
  expect(world.pod("hungry").record.end?.cause).toBe("evicted");
  expect(await reportOf("nodewise_evictions_total")).toContain('nodewise_evictions_total{signal="memory.available"} 1');
});

test("decisions are counted by kind and maker, and the outbox has a gauge while the API is unreachable", async () => {
  const { reportOf, metrics } = counted();
  const dir = scratch({});
  const outbox = Outbox.open(join(dir, "outbox.jsonl"));
  const heard: string[] = [];
  const access = {
    url: "http://api.example",
    token: undefined,
    timeoutMs: 1000,
    fetch: () => Promise.reject(new Error("it is away")),
  };
  const client = new ApiClient(access, outbox, new FactsStore(dir, () => {}), () => {});
  const world = new SimulatedPodsNode({
    client: () => redactingClient(client, metrics.counters, (kind) => heard.push(kind)),
    configuration: { cpuManagerPolicy: "static" },
  });
  world.pods = [appPod("one", { cpu: "1", memory: "1Gi" })];
  await world.run(4);
  expect(world.pod("one").record.state).toBe("active");
  for (const kind of ["allocatable", "cgroups", "admission"]) {
    const count = heard.filter((one) => one === kind).length;
    expect(count).toBeGreaterThan(0);
    const name = `nodewise_decisions_total{kind="${kind}"`;
    expect(await reportOf(name)).toEqual([`${name},by="here"} ${count}`]);
  }
  expect(outbox.size).toBeGreaterThan(0);
  expect(await reportOf("nodewise_outbox_entries")).toEqual([`nodewise_outbox_entries ${outbox.size}`]);
});

test("the gauge of outbox entries includes from the start what an earlier daemon left", async () => {
  const { reportOf, metrics } = counted();
  const left = { decide: () => Promise.reject(), commit: async () => {}, report: async () => {}, waiting: 7 };
  redactingClient(left, metrics.counters);
  expect(await reportOf("nodewise_outbox_entries")).toEqual(["nodewise_outbox_entries 7"]);
});
