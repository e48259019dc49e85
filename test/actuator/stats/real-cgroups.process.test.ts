import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { podUsageOf, UsageHistory } from "../../../actuator/stats/summary.ts";
import { type CgroupStatsTarget, type CgroupUsage, readUsages } from "../../../actuator/stats/usage.ts";
import { openOwn } from "../../e2e/own-cgroups.ts";

const CONTROLLERS = ["cpu", "cpuacct", "memory", "pids"];
const PODS = "/kubepods";
const POD = `${PODS}/pod1`;
const CONTAINER = `${POD}/c1`;
const LOOKS: readonly CgroupStatsTarget[] = [
  { path: PODS, level: "pods" },
  { path: POD, level: "pod" },
  { path: CONTAINER, level: "container" },
];
const MiB = 2 ** 20;
const HELD_BYTES = 64 * MiB;
const LIMIT_BYTES = 512 * MiB;
/** Allocates memory, reports it, and then uses all the CPU time that it gets. */
const BURNER = `globalThis.held = Buffer.alloc(${HELD_BYTES}, 1); process.stdout.write("held"); for (;;);`;

const opened = openOwn("stats");
const canMake =
  opened.ok &&
  opened.value.version === 1 &&
  process.getuid?.() === 0 &&
  CONTROLLERS.every((name) => opened.value.support().controllers.includes(name));
if (!canMake)
  console.warn("skipped the use of real cgroups: they need root and cgroup v1 with cpu, cpuacct, memory, pids");

describe.skipIf(!canMake)("the use of real cgroups", { timeout: 180_000 }, () => {
  if (!opened.ok) return;
  const hierarchy = opened.value;
  let child: ChildProcess | undefined;

  beforeEach(async () => {
    for (const path of ["/", PODS, POD, CONTAINER]) {
      const made = await hierarchy.create(path, CONTROLLERS);
      if (!made.ok) throw new Error(made.error.message);
    }
    await write(PODS, "memory.limit_in_bytes", String(LIMIT_BYTES));
  });
  afterEach(async () => {
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    child = undefined;
    for (const path of hierarchy.paths().toReversed()) await hierarchy.remove(path);
    expect(hierarchy.paths()).toEqual([]);
  });
  async function write(path: string, file: string, value: string): Promise<void> {
    const written = await hierarchy.write(path, file, value);
    if (!written.ok) throw new Error(written.error.message);
  }
  const look = (): ReadonlyMap<string, CgroupUsage> => readUsages(hierarchy, LOOKS);
  const at = (usages: ReadonlyMap<string, CgroupUsage>, path: string): CgroupUsage => usages.get(path) as CgroupUsage;

  /** Starts a shell, moves it into the container's cgroup, and executes the burner there. */
  async function startBurner(): Promise<ChildProcess> {
    const script = `read go && exec "${process.execPath}" -e '${BURNER}'`;
    const started = spawn("sh", ["-c", script], { stdio: ["pipe", "pipe", "inherit"] });
    child = started;
    for (const controller of CONTROLLERS) {
      const directory = `/sys/fs/cgroup/${controller}${opened.root}${CONTAINER}`;
      if (existsSync(directory)) writeFileSync(`${directory}/cgroup.procs`, String(started.pid));
    }
    started.stdin?.end("go\n");
    await once(started.stdout as NonNullable<typeof started.stdout>, "data");
    return started;
  }

  test("is near zero for an empty cgroup", () => {
    const usages = look();
    expect(at(usages, CONTAINER)).toMatchObject({ cpuNanos: 0, processes: 0, pids: null, pressure: null });
    expect(at(usages, POD)).toMatchObject({ pids: 0, processes: null, throttling: { throttledPeriods: 0 } });
    expect(at(usages, PODS).memory).toMatchObject({ limitBytes: LIMIT_BYTES, rssBytes: 0 });
    expect(at(usages, POD).memory?.limitBytes).toBe(null);
  });

  test("includes the memory of a process, also in the cgroups above", async () => {
    const { pid } = await startBurner();
    const resident = (): number =>
      Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
    // the kernel sums up its per-CPU counters only from time to time
    const off = (path: string): number => Math.abs((at(look(), path).memory?.rssBytes ?? 0) - resident());
    for (const path of [CONTAINER, POD, PODS]) await expect.poll(() => off(path)).toBeLessThan(16 * MiB);
    expect(resident()).toBeGreaterThan(HELD_BYTES);
    const usages = look();
    for (const path of [CONTAINER, POD, PODS]) {
      const { memory } = at(usages, path);
      expect(memory?.usageBytes).toBeGreaterThanOrEqual(HELD_BYTES);
      expect(memory?.workingSetBytes).toBeGreaterThanOrEqual(HELD_BYTES);
      expect(memory?.workingSetBytes).toBeLessThanOrEqual(memory?.usageBytes ?? 0);
    }
    expect(at(usages, CONTAINER).processes).toBe(1);
    expect(at(usages, POD).pids).toBeGreaterThan(1);
    expect(at(usages, POD).processes).toBe(null);
  });

  test("includes the CPU time of a process and its throttling by a quota", async () => {
    await startBurner();
    // a quota of a tenth of a CPU
    await write(CONTAINER, "cpu.cfs_quota_us", "10000");
    const history = new UsageHistory();
    const first = look();
    history.rates(first, performance.now());
    const started = performance.now();
    let row = null;
    let usages = first;
    while (!(row?.throttledPermille ?? 0) && performance.now() - started < 120_000) {
      await sleep(500);
      usages = look();
      row = podUsageOf(
        { cgroup: POD, containers: [{ name: "c", id: "c1", createdAtMs: 0, cgroup: CONTAINER }] },
        {
          usages,
          rates: history.rates(usages, performance.now()),
        },
      );
    }
    expect(row?.throttledPermille).toBeGreaterThan(0);
    expect(row?.cpuMilli).toBeGreaterThan(0);
    // above the quota, since the process continues for a moment when the quota is set; far below a whole CPU
    expect(row?.cpuMilli).toBeLessThan(500);
    expect(at(usages, CONTAINER).throttling?.throttledNanos).toBeGreaterThan(0);
    expect(at(usages, POD).throttling?.throttledPeriods).toBe(0);
    expect(at(usages, POD).cpuNanos).toBeGreaterThan(at(first, POD).cpuNanos as number);
    // the process uses more CPU time between the reads of two files
    expect(at(look(), POD).cpuNanos).toBeGreaterThanOrEqual(at(usages, CONTAINER).cpuNanos as number);
  });
});
