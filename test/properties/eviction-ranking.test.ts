import { describe, expect, test } from "vitest";
import type { Counterfactual, EvictionDecision, Ranking } from "../../api/model/eviction.ts";
import { answer, disk, Gi, iso, memory, START } from "../decide/eviction/eviction-kit.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { type Draws, draws, shuffled } from "./draws.ts";

/** A pod as a few numbers, each of which a test can change. */
interface Sketch {
  readonly name: string;
  readonly priority: number;
  readonly isStatic: boolean;
  readonly hasStats: boolean;
  readonly request: Readonly<Record<"memory" | "ephemeral-storage", number | undefined>>;
  readonly usage: Readonly<Record<"memory" | "ephemeral-storage" | "inodes" | "pids", number>>;
}
interface NodeSketch {
  readonly pods: readonly Sketch[];
  readonly config: Json;
  readonly stats: Json;
}
/** Only few values, so that pods are often equal in one property or in all. */
function sketch(name: string, d: Draws): Sketch {
  const amount = (): number => d.pick([0, 1, 1000, Gi, Gi, d.spread(4 * Gi)]);
  return {
    name,
    priority: d.pick([0, 0, 0, -10, 100, 1000, 2_000_000_000]),
    isStatic: d.chance(15),
    hasStats: !d.chance(10),
    request: {
      memory: d.chance(3) ? undefined : amount(),
      "ephemeral-storage": d.chance(2) ? undefined : amount(),
    },
    usage: { memory: amount(), "ephemeral-storage": amount(), inodes: d.below(50), pids: d.below(20) },
  };
}
function sketchedPod({ name, isStatic, priority, request }: Sketch): Json {
  const requests = Object.entries(request).flatMap(([k, v]) => (v === undefined ? [] : [[k, String(v)]]));
  return pod(name, {
    metadata: isStatic ? { annotations: { "kubernetes.io/config.source": "file" } } : {},
    spec: { priority, containers: [container("c", Object.fromEntries(requests))] },
  });
}
const statsOf = ({ name, usage }: Sketch): Json => ({
  podRef: { name, uid: `uid-${name}` },
  containers: [
    {
      name: "c",
      rootfs: { usedBytes: usage["ephemeral-storage"], inodesUsed: usage.inodes },
      memory: { workingSetBytes: 1 },
    },
  ],
  memory: { workingSetBytes: usage.memory },
  process_stats: { process_count: usage.pids },
});
function nodeSketch(d: Draws): NodeSketch {
  const low = (): boolean => d.chance(3);
  const node = {
    memory: memory(low() ? Gi / 2 : 5 * Gi, START),
    fs: disk(low() ? Gi : 50 * Gi, START, { inodesFree: low() ? 10 : 900_000 }),
    rlimit: { time: iso(START), maxpid: 1000, curproc: low() ? 990 : 5 },
    fileSystems: "one",
  };
  const signals = {
    "memory.available": "1Gi",
    "nodefs.available": "5%",
    "nodefs.inodesFree": "5%",
    "pid.available": "5%",
  };
  const some = Object.fromEntries(Object.entries(signals).filter(() => !d.chance(4)));
  const soft = d.chance(2)
    ? { evictionHard: {}, evictionSoft: some, evictionSoftGracePeriod: grace(some) }
    : { evictionHard: some };
  const pods = Array.from({ length: 1 + d.below(9) }, (_, i) => sketch(`p${i}`, d));
  return {
    pods,
    config: { ...soft, enforceNodeAllocatable: ["none"], localStorageCapacityIsolation: false },
    stats: node,
  };
}
const grace = (signals: Json): Json => Object.fromEntries(Object.keys(signals).map((s) => [s, "30s"]));
const decide = ({ pods, config, stats }: NodeSketch, facts?: unknown): EvictionDecision =>
  answer(
    {
      observedAt: iso(START),
      kubeletConfiguration: config,
      pods: pods.map(sketchedPod),
      stats: { node: stats, pods: pods.filter((p) => p.hasStats).map(statsOf) },
    },
    facts,
  ).decision;

/** The pod after the change that a counterfactual describes. */
function changed(s: Sketch, { change, to }: Counterfactual, resource: Ranking["resource"]): Sketch {
  if (change === "priority") return { ...s, priority: to };
  return change === "usage"
    ? { ...s, usage: { ...s.usage, [resource]: to } }
    : { ...s, request: { ...s.request, [resource]: to } };
}
const NODES = 400;
const nodes = (seed: number) => Array.from({ length: NODES }, (_, i) => draws(seed * 10_000 + i));

describe("eviction rankings of random nodes", { timeout: 60_000 }, () => {
  test("contain every pod once, independent of the list's order, and mark ties", () => {
    let ties = 0;
    for (const d of nodes(1)) {
      const node = nodeSketch(d);
      const decision = decide(node);
      const again = decide({ ...node, pods: shuffled(node.pods, d) });
      expect(again.rankings, `seed ${d.seed}`).toEqual(decision.rankings);
      expect(again.evicted, `seed ${d.seed}`).toEqual(decision.evicted);
      for (const { pods, total } of decision.rankings) {
        expect(total).toBe(node.pods.length);
        expect(new Set(pods.map((p) => p.pod.uid)).size, `seed ${d.seed}`).toBe(total);
        ties += pods.filter((p) => p.tie).length;
        for (const p of pods.filter((x) => x.tie)) {
          const same = pods.filter((q) => q.priority === p.priority && q.aboveRequest === p.aboveRequest);
          expect(same.length, `seed ${d.seed}`).toBeGreaterThan(1);
        }
      }
    }
    expect(ties).toBeGreaterThan(100);
  });

  test("evict no critical pod, and no pod at all while no threshold is met beyond its grace period", () => {
    const seen = { evicted: 0, spared: 0, inGrace: 0, calm: 0 };
    for (const d of nodes(2)) {
      const node = nodeSketch(d);
      const decision = decide(node);
      const drives = decision.thresholds.some((t) => t.state === "below" && t.graceLeftMs === 0);
      const critical = new Set(node.pods.filter((p) => p.isStatic || p.priority >= 2e9).map((p) => p.name));
      for (const { pod } of decision.evicted) expect(critical.has(pod.name), `seed ${d.seed}`).toBe(false);
      for (const pod of decision.spared) expect(critical.has(pod.name), `seed ${d.seed}`).toBe(true);
      if (!drives) expect(decision.evicted, `seed ${d.seed}`).toEqual([]);
      else expect(decision.evicted.length, `seed ${d.seed}`).toBe(critical.size === node.pods.length ? 0 : 1);
      seen.evicted += decision.evicted.length;
      seen.spared += decision.spared.length;
      if (decision.thresholds.some((t) => (t.graceLeftMs ?? 0) > 0)) seen.inGrace++;
      if (decision.conditions.length === 0) seen.calm++;
    }
    for (const [name, count] of Object.entries(seen)) expect(count, name).toBeGreaterThan(20);
  });

  test("have counterfactuals that come true when carried out, and not with one unit less", () => {
    const tried = { request: 0, usage: 0, priority: 0 };
    for (const d of nodes(3)) {
      const node = nodeSketch(d);
      for (const ranking of decide(node).rankings) {
        for (const c of ranking.counterfactuals) {
          const with_ = (to: number) => {
            const pods = node.pods.map((p) => (p.name === c.pod.name ? changed(p, { ...c, to }, ranking.resource) : p));
            return decide({ ...node, pods }).rankings.find((r) => r.resource === ranking.resource) as Ranking;
          };
          const strictPlace = ({ pods }: Ranking): number => {
            const own = pods.findIndex((p) => p.pod.uid === c.pod.uid);
            let first = own;
            // equal pods before it are skipped, since the kubelet could order them after it
            while (first > 0 && sameStanding(pods[first - 1], pods[own], ranking.resource)) first--;
            return first + 1;
          };
          const what = `seed ${d.seed} ${ranking.resource} ${c.change} ${c.from} to ${c.to}`;
          const done = with_(c.to);
          expect(strictPlace(done), what).toBe(c.place);
          const first = done.pods.find((p) => !p.critical);
          const reported = done.pods.find((p) => p.pod.uid === c.victim?.uid);
          if (!sameStanding(first, reported, ranking.resource)) expect(first, what).toEqual(reported);
          const less = c.to + (c.change === "usage" ? 1 : -1);
          expect(strictPlace(with_(less)), `${what}, a unit less`).toBeLessThan(c.place);
          tried[c.change]++;
        }
      }
    }
    for (const [name, count] of Object.entries(tried)) expect(count, name).toBeGreaterThan(200);
  });
});

type Ranked = Ranking["pods"][number];
function sameStanding(a: Ranked | undefined, b: Ranked | undefined, resource: Ranking["resource"]): boolean {
  if (a === undefined || b === undefined) return false;
  const amount = (p: Ranked) => (resource === "pids" ? p.usage : p.aboveRequest);
  return a.priority === b.priority && a.exceedsRequest === b.exceedsRequest && amount(a) === amount(b);
}

describe("eviction forecasts of random observations", () => {
  const levels = (d: Draws, from: number): number[] => Array.from({ length: 6 }, (_, i) => from - i * d.spread(Gi));
  const forecastOf = (available: readonly number[], threshold = "1Gi") => {
    const samples = available.map((level, i) => ({
      atMs: START - 10_000 * (available.length - i),
      signal: "memory.available",
      available: level,
    }));
    const pods = [sketch("p", draws(1))];
    const config = { evictionHard: { "memory.available": threshold }, enforceNodeAllocatable: ["none"] };
    const first = answer({
      observedAt: iso(START - 100_000),
      kubeletConfiguration: config,
      pods: [],
      stats: { node: {} },
    });
    const facts = { ...(first.next as Json), samples };
    const stats = { memory: memory(available.at(-1) ?? 0, START) };
    return decide({ pods, config, stats }, facts).forecast[0];
  };
  test("meet a higher threshold no later, and a faster fall no later either", () => {
    let falling = 0;
    for (let seed = 0; seed < 300; seed++) {
      const d = draws(seed);
      const available = levels(d, 9 * Gi);
      const [low, high] = [forecastOf(available, "1Gi"), forecastOf(available, "2Gi")];
      const steeper = forecastOf(available.map((level, i) => level - i * 100_000));
      if (low?.belowInMs === null || low === undefined) continue;
      falling++;
      expect(high?.belowInMs, `seed ${seed}`).toBeLessThanOrEqual(low.belowInMs);
      expect(steeper?.belowInMs, `seed ${seed}`).toBeLessThanOrEqual(low.belowInMs);
      expect(low.evictsInMs).toBe(low.belowInMs);
    }
    expect(falling).toBeGreaterThan(200);
  });
});
