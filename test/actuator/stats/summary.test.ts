import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DiskUsage } from "../../../actuator/stats/disk-usage.ts";
import {
  cgroupStatsTargets,
  diskStatsTargets,
  type PodStatsTarget,
  podStatsOf,
  podsCgroupStats,
  podUsageOf,
  type StatsObservation,
  UsageHistory,
  type WritableLayer,
} from "../../../actuator/stats/summary.ts";
import { readUsages } from "../../../actuator/stats/usage.ts";
import { answer, Mi, START } from "../../decide/eviction/eviction-kit.ts";
import { requesting as asked } from "../../kit/pods.ts";
import { du, mountedBelow, scratch } from "./scratch.ts";
import { FACTS, type Facts, filesOf, type TextTree, textTree } from "./text-tree.ts";

const PODS = "/kubepods";
const KiB = 1024;
const DISK_AT = "2026-01-31T11:59:30.250Z";
const at = (ms: number): Date => new Date(START + ms);

/** A pod `name` with one container `c`, and its directories below `dir`. */
function lookAt(name: string, dir: string, more: Partial<PodStatsTarget> = {}): PodStatsTarget {
  const cgroup = `${PODS}/burstable/pod${name}`;
  return {
    namespace: "default",
    name,
    uid: `uid-${name}`,
    createdAtMs: START - 60_000,
    cgroup,
    containers: [{ name: "c", id: `id-${name}`, createdAtMs: START - 59_000, cgroup: `${cgroup}/id-${name}` }],
    volumes: [],
    logDirectory: join(dir, `default_${name}_uid-${name}`),
    hostsFile: null,
    ...more,
  };
}

/** One measurement of all these pods. */
async function lookAround(
  { hierarchy }: TextTree,
  pods: readonly PodStatsTarget[],
  ms = 0,
  history = new UsageHistory(),
  layers: ReadonlyMap<string, WritableLayer> = new Map(),
): Promise<StatsObservation> {
  const usages = readUsages(hierarchy, cgroupStatsTargets(PODS, pods));
  const disk = new DiskUsage({ now: () => new Date(DISK_AT) });
  await disk.count(diskStatsTargets(pods));
  return { at: at(ms), usages, rates: history.rates(usages, ms), diskOf: (path) => disk.of(path), layers };
}
/** The value as a snapshot contains it. */
const json = (value: unknown) => JSON.parse(JSON.stringify(value));

function plantPod(tree: TextTree, version: 1 | 2, look: PodStatsTarget, facts: Partial<Facts>): void {
  const files = filesOf(version, { ...FACTS, inactiveFile: 0, ...facts });
  tree.plant(look.cgroup, files);
  for (const { cgroup } of look.containers) tree.plant(cgroup, files);
}

describe.each([1, 2] as const)("pod stats, cgroup v%i,", (version) => {
  test("have the fields and times of stats/v1alpha1", async () => {
    const tree = textTree(version);
    const dir = scratch();
    const look = lookAt("a", dir, {
      volumes: [
        { name: "data", path: join(dir, "data"), inMemory: false },
        { name: "not-made-yet", path: join(dir, "none"), inMemory: false },
      ],
      hostsFile: join(dir, "etc-hosts"),
    });
    plantPod(tree, version, look, { inactiveFile: 100_000_000 });
    mkdirSync(join(dir, "data"));
    writeFileSync(join(dir, "data/file"), "x".repeat(64 * KiB));
    writeFileSync(join(dir, "etc-hosts"), "127.0.0.1 localhost\n");
    mkdirSync(join(look.logDirectory, "c"), { recursive: true });
    writeFileSync(join(look.logDirectory, "c/0.log"), "x".repeat(10 * KiB));
    const history = new UsageHistory();
    await lookAround(tree, [look], 0, history);
    const later = { cpuMicros: FACTS.cpuMicros + 5_000_000, periods: 50, throttled: 13 };
    plantPod(tree, version, look, { inactiveFile: 100_000_000, ...later });
    const layers = new Map([["id-a", { usedBytes: 8192, inodesUsed: 5 }]]);
    const seen = await lookAround(tree, [look], 10_000, history, layers);

    const data = du(join(dir, "data"));
    const log = du(join(look.logDirectory, "c/0.log"));
    const hosts = du(join(dir, "etc-hosts"));
    const time = "2026-01-31T12:00:10.000Z";
    const cgroup = {
      cpu: { time, usageNanoCores: 500_000_000, usageCoreNanoSeconds: 17_345_678_000 },
      memory: { time, usageBytes: 300_000_000, workingSetBytes: 200_000_000, rssBytes: 150_000_000 },
      swap: { time, swapUsageBytes: 4096 },
    };
    expect(json(podStatsOf(look, seen))).toEqual({
      podRef: { name: "a", namespace: "default", uid: "uid-a" },
      startTime: "2026-01-31T11:59:00.000Z",
      containers: [
        {
          name: "c",
          startTime: "2026-01-31T11:59:01.000Z",
          ...cgroup,
          rootfs: { time, usedBytes: 8192, inodesUsed: 5 },
          logs: { time: DISK_AT, ...log },
        },
      ],
      ...cgroup,
      cpu: { ...cgroup.cpu, throttledPermille: 300 },
      volume: [{ name: "data", time: DISK_AT, ...data }],
      "ephemeral-storage": {
        time,
        usedBytes: 8192 + log.usedBytes + data.usedBytes + hosts.usedBytes,
        inodesUsed: 5 + 1 + 2 + 1,
      },
      process_stats: { process_count: 3 },
    });
  });

  test("are null for a pod without running containers, as in the kubelet", async () => {
    const look = lookAt("a", scratch(), { containers: [] });
    expect(podStatsOf(look, await lookAround(textTree(version), [look]))).toBe(null);
  });

  test("decide allocatable memory pressure by the limit of kubepods, and rank by use above request", async () => {
    const tree = textTree(version);
    const dir = scratch();
    const [a, b] = [lookAt("a", dir), lookAt("b", dir)];
    tree.plant(PODS, filesOf(version, { ...FACTS, memory: 1000 * Mi, inactiveFile: 50 * Mi, limit: 1024 * Mi }));
    plantPod(tree, version, a, { memory: 500 * Mi });
    plantPod(tree, version, b, { memory: 600 * Mi, inactiveFile: 200 * Mi });
    const stats = (seen: StatsObservation) =>
      json({
        node: { systemContainers: [podsCgroupStats(PODS, seen)] },
        pods: [podStatsOf(a, seen), podStatsOf(b, seen)],
      });
    const decide = (ms: number, seen: StatsObservation, facts?: unknown) =>
      answer(
        {
          observedAt: at(ms).toISOString(),
          kubeletConfiguration: { evictionHard: { "memory.available": "100Mi" } },
          pods: [asked("a", { memory: "450Mi" }), asked("b", { memory: "100Mi" })],
          stats: stats(seen),
        },
        facts,
      );
    const first = await lookAround(tree, [a, b]);
    const evicts = decide(0, first);
    expect(evicts.decision.evicted.map(({ pod, message }) => [pod.name, message])).toEqual([
      [
        "b",
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 74Mi. " +
          "Container c was using 400Mi, request is 100Mi, has larger consumption of memory. ",
      ],
    ]);
    // the same measurement causes no second eviction; one that is a millisecond later does
    expect(decide(5, first, evicts.next).decision.evicted).toEqual([]);
    const later = await lookAround(tree, [a, b], 1);
    expect(decide(5, later, evicts.next).decision.evicted.map(({ pod }) => pod.name)).toEqual(["b"]);
    // the usage exceeds the limit: 0 bytes are available, which is still a number
    tree.plant(PODS, filesOf(version, { ...FACTS, memory: 1100 * Mi, inactiveFile: 0, limit: 1024 * Mi }));
    expect(decide(9, await lookAround(tree, [a, b], 9)).decision.thresholds[1]).toMatchObject({
      signal: "allocatableMemory.available",
      available: 0,
    });
    // without a limit this signal does not exist
    tree.plant(PODS, filesOf(version, { ...FACTS, limit: null }));
    expect(decide(9, await lookAround(tree, [a, b], 9)).decision.thresholds[1]?.state).toBe("unobserved");
  });

  test("rank pods by their number of processes under PID pressure", async () => {
    const tree = textTree(version);
    const dir = scratch();
    const [a, b] = [lookAt("a", dir), lookAt("b", dir)];
    plantPod(tree, version, a, { processes: [1, 2], tasks: 900 });
    plantPod(tree, version, b, { processes: [3, 4, 5], tasks: 3 });
    const seen = await lookAround(tree, [a, b]);
    const { decision } = answer({
      observedAt: at(0).toISOString(),
      kubeletConfiguration: { evictionHard: { "pid.available": "100" }, enforceNodeAllocatable: ["none"] },
      pods: [asked("a"), asked("b")],
      stats: json({
        node: { rlimit: { time: at(0).toISOString(), maxpid: 1000, curproc: 950 } },
        pods: [podStatsOf(a, seen), podStatsOf(b, seen)],
      }),
    });
    expect(decision.rankings[0]?.pods.map(({ pod, usage }) => [pod.name, usage])).toEqual([
      ["b", 3],
      ["a", 2],
    ]);
  });

  test("give rows for display with rates, throttling and pressure", async () => {
    const tree = textTree(version);
    const look = lookAt("a", scratch());
    plantPod(tree, version, look, { inactiveFile: 100_000_000 });
    const history = new UsageHistory();
    const first = await lookAround(tree, [look], 0, history);
    const pressure = version === 1 ? null : { cpu: 1.53, memory: 0, io: 20.25 };
    const row = { memoryWorkingSetBytes: 200_000_000, pids: 7, pressure };
    expect(podUsageOf(look, first)).toEqual({ ...row, cpuMilli: null, throttledPermille: null });
    // the pod has no quota, its container has one
    const used = { inactiveFile: 100_000_000, cpuMicros: FACTS.cpuMicros + 2_500_400 };
    plantPod(tree, version, look, used);
    const [container] = look.containers;
    const held = { ...FACTS, ...used, periods: 90, throttled: 20 };
    tree.plant(container?.cgroup ?? "", filesOf(version, held));
    const second = await lookAround(tree, [look], 10_000, history);
    expect(podUsageOf(look, second)).toEqual({ ...row, cpuMilli: 250, throttledPermille: 200 });
    expect(podUsageOf({ cgroup: "/gone", containers: [] }, second)).toBe(null);
  });
});

test("an emptyDir above its limit evicts its pod; one in memory is measured, but not as disk usage", async ({
  skip,
}) => {
  const tree = textTree(1);
  const dir = scratch();
  const [large, inMemory] = [join(dir, "large"), join(dir, "memory")];
  const disk = lookAt("disk", dir, { volumes: [{ name: "v", path: large, inMemory: false }] });
  const memory = lookAt("memory", dir, { volumes: [{ name: "v", path: inMemory, inMemory: true }] });
  mkdirSync(large);
  writeFileSync(join(large, "file"), "x".repeat(600 * KiB));
  if (!mountedBelow(inMemory)) skip("this process may not mount");
  writeFileSync(join(inMemory, "file"), "x".repeat(700 * KiB));
  for (const look of [disk, memory]) plantPod(tree, 1, look, {});
  const seen = await lookAround(tree, [disk, memory]);
  const pods = [disk, memory].map((look) => json(podStatsOf(look, seen)));
  expect(pods[0]["ephemeral-storage"]).toMatchObject(du(large));
  expect(pods[1]["ephemeral-storage"]).toEqual({ time: at(0).toISOString() });
  const decide = (sizeLimit: string) =>
    answer({
      observedAt: at(0).toISOString(),
      pods: ["disk", "memory"].map((name) => asked(name, {}, { volumes: [{ name: "v", emptyDir: { sizeLimit } }] })),
      stats: { node: {}, pods },
    }).decision.evicted.map(({ pod, cause }) => [pod.name, cause]);
  expect(decide("500Ki")).toEqual([
    ["disk", "emptyDir"],
    ["memory", "emptyDir"],
  ]);
  expect(decide("650Ki")).toEqual([["memory", "emptyDir"]]);
  expect(decide("1Mi")).toEqual([]);
});
