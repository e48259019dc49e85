import { describe, expect, onTestFinished, test } from "vitest";
import { type Draws, draws } from "../actuator/cgroups/draws.ts";
import { exceeding } from "../actuator/cgroups/invariants.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { SimApi } from "./api.ts";
import { SimClock } from "./clock.ts";
import { SimNode, type SimPod } from "./node.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

function newWorld(version: 1 | 2) {
  const dir = scratchFolder(RAM_DISK);
  const clock = new SimClock(START);
  const api = new SimApi(clock);
  onTestFinished(() => api.store.close());
  return { clock, api, node: new SimNode(version, clock, dir, api.fetch) };
}
type World = ReturnType<typeof newWorld>;

let uids = 0;
function randomPod(d: Draws): SimPod {
  const uid = `${++uids}`.padStart(8, "0");
  const containers = Array.from({ length: 1 + d.below(3) }, (_, i) => {
    const cpu = `${d.pick([10, 100, 250, 1000, 2000])}m`;
    const memory = `${d.pick([16, 64, 256, 1024])}Mi`;
    const requests = d.chance(4) ? {} : { cpu, memory };
    const limits = d.chance(3) ? {} : { cpu, memory };
    return container(`c${i}`, requests, limits, { image: "app" });
  });
  return pod(`pod-${uid}`, { metadata: { uid }, spec: { containers } });
}

/** Lets one event happen to the node; returns its name. */
async function happen(world: World, d: Draws): Promise<string> {
  const { node, api } = world;
  switch (d.below(9)) {
    case 0:
    case 1:
      node.pods = [...node.pods, randomPod(d)];
      return "a pod comes";
    case 2:
      node.pods = node.pods.filter(() => !d.chance(3));
      return "pods go";
    case 3:
      node.kubeletConfiguration = {
        podPidsLimit: d.pick([-1, 100, 4096]),
        cpuCFSQuota: !d.chance(3),
        kubeReserved: { cpu: d.pick(["0", "500m", "1"]), memory: d.pick(["0", "1Gi", "4Gi"]) },
      };
      return "another configuration";
    case 4:
      api.reachable = !api.reachable;
      return api.reachable ? "the API is back" : "the API goes away";
    case 5:
      node.pods = [...node.pods, randomPod(d)];
      return (await node.passAndDie(d.below(8)))
        ? "the daemon dies half-way"
        : "the daemon had too little to do to die";
    case 6:
      await node.reboot();
      return "the machine reboots";
    case 7:
      return otherWriter(world, d) ? "somebody else writes" : "there was nothing to overwrite";
    default:
      node.podsReadable = !node.podsReadable;
      return node.podsReadable ? "pods can be listed again" : "pods cannot be listed";
  }
}

function otherWriter({ node: { kernel } }: World, d: Draws): boolean {
  const file = kernel.rules.version === 1 ? "cpu.shares" : "cpu.weight";
  const cgroups = [...(kernel.tops.get(kernel.rules.version === 1 ? "cpu" : "")?.subtree() ?? [])].filter((c) =>
    c.path.includes("/kubepods"),
  );
  if (cgroups.length === 0) return false;
  const victim = d.pick(cgroups);
  return kernel.write(kernel.rules.version === 1 ? "cpu" : "", victim.path, file, "77") === null;
}

describe.each([1, 2] as const)("a node of cgroup v%i over simulated hours", (version) => {
  test("keeps its invariants under random events, and every decision reaches the history", {
    timeout: 600_000,
  }, async () => {
    const met = new Map<string, number>();
    for (let seed = 1; seed <= 12; seed++) {
      const world = newWorld(version);
      const { node, api, clock } = world;
      const d = draws(seed * 7919 + version);
      for (let step = 1; step <= 30; step++) {
        await clock.advanceTo(START + step * MINUTE);
        const what = await happen(world, d);
        met.set(what, (met.get(what) ?? 0) + 1);
        const at = `seed ${seed}, step ${step}: ${what}`;
        const before = node.kernel.dump();
        const pass = await node.pass();
        expect(exceeding(node.kernel), at).toEqual([]);
        if (!node.podsReadable) {
          expect(pass.cgroups, at).toBeNull();
          expect(node.kernel.dump(), at).toBe(before);
          continue;
        }
        expect(pass.problems, at).toEqual([]);
        expect(pass.applied?.complete, at).toBe(true);
        const again = await node.pass();
        expect(again.applied?.results, `${at}: the second pass has nothing to do`).toEqual([]);
        expect(
          again.drift.filter((f) => f.cause === "other_writer"),
          at,
        ).toEqual([]);
      }
      api.reachable = true;
      node.podsReadable = true;
      for (let i = 0; i < 10 && (i === 0 || node.outboxSize > 0); i++) {
        await clock.advanceTo(clock.nowMs + MINUTE);
        await node.pass();
      }
      expect(node.outboxSize, `seed ${seed}: everything was sent`).toBe(0);
    }
    // the test proves nothing unless every kind of event happened
    for (const [what, times] of met) expect(times, what).toBeGreaterThan(3);
    expect(met.size).toBeGreaterThanOrEqual(11);
  });

  test("records decisions made while the API was away once it is back, each once", async () => {
    const { node, api, clock } = newWorld(version);
    node.pods = [randomPod(draws(1))];
    api.reachable = false;
    await clock.advanceTo(START + MINUTE);
    const away = await node.pass();
    expect(away.decidedBy).toBe("here");
    expect(away.decisionId).toBeNull();
    expect(node.outboxSize).toBe(1);
    await node.restart();
    api.reachable = true;
    // each pass has other pods, because the history only counts an unchanged decision
    for (const minute of [2, 3]) {
      await clock.advanceTo(START + minute * MINUTE);
      node.pods = [...node.pods, randomPod(draws(minute))];
      await node.pass();
    }
    expect(node.outboxSize).toBe(0);
    const page = await api.store.listDecisions({ kind: "cgroups", limit: 100 });
    if (!page.ok) throw new Error(page.error.message);
    // one pass without the API and two passes with it
    expect(page.value.items.length).toBe(3);
    const reported = await Promise.all(page.value.items.map((item) => api.store.listResults(item.id)));
    expect(reported.map((r) => (r.ok ? r.value.length : -1)).sort()).toEqual([1, 1, 1]);
  });
});
