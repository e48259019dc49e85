import type { CgroupPlan, CgroupsDecision } from "../../../api/model/cgroups.ts";
import { cgroup, decide } from "./decisions.ts";
import type { Draws } from "./draws.ts";

const PERIODS = [10_000, 20_000, 50_000, 100_000];
const TIERS = ["/kubepods", "/kubepods/burstable", "/kubepods/besteffort"];

/** The upper bounds for a cgroup's children; null: no limit above. */
interface Room {
  /** Hundredths of a CPU. */
  readonly cpu: number | null;
  readonly memory: number | null;
  readonly memsw: number | null;
  readonly pids: number | null;
}
const OPEN: Room = { cpu: null, memory: null, memsw: null, pids: null };

export interface TreeOptions {
  readonly version: 1 | 2;
  /** Every tree has all pods, so that no cgroup is ever removed. */
  readonly allPods?: boolean;
  readonly cpusets: "none" | "any" | "shifting";
}

/**
 * A random decision whose children fit into their parents. Each call with the same draws returns another decision.
 * `shifting`: every container has exclusive CPUs, which move by one place in the ring from one `turn` to the next.
 */
export function randomTree(d: Draws, turn: number, options: TreeOptions): CgroupsDecision {
  const plans: CgroupPlan[] = [];
  const rooms = new Map<string, Room>();
  const add = (path: string, parent: string, extra: Record<string, string>): void => {
    const room = within(d, rooms.get(parent) ?? OPEN);
    rooms.set(path, room.left);
    plans.push(cgroup(path, { ...filesOf(d, options.version, room.own), ...extra }));
  };
  const all =
    options.cpusets === "any"
      ? { "cpuset.cpus": d.pick(["0-7", "0-3", "0-1,4-7"]), "cpuset.mems": d.pick(["0", "0-1"]) }
      : {};
  add("/kubepods", "/", all);
  for (const tier of TIERS.slice(1)) add(tier, "/kubepods", {});
  let number = 0;
  for (const [index, tier] of TIERS.entries()) {
    for (let pod = 0; pod < 2; pod++) {
      if (options.allPods !== true && d.chance(3)) continue;
      const path = `${tier}/pod${index}-${pod}`;
      add(path, tier, {});
      for (let c = 0; c < 2; c++) {
        if (options.allPods !== true && d.chance(4)) continue;
        const cpus = cpusetOf(d, options.cpusets, all["cpuset.cpus"], (number++ * 2 + turn) % 24);
        add(`${path}/c${c}`, path, cpus);
      }
    }
  }
  return decide(options.version, plans);
}

/** Each of twelve containers has two of 24 CPUs in a ring; "any" is one or two of the CPUs of kubepods. */
function cpusetOf(
  d: Draws,
  cpusets: TreeOptions["cpusets"],
  all: string | undefined,
  place: number,
): Record<string, string> {
  if (cpusets === "none" || (cpusets === "any" && d.chance(3))) return {};
  if (cpusets === "shifting") return { "cpuset.cpus": `${place},${(place + 1) % 24}` };
  const free = all === "0-7" ? [0, 1, 2, 3, 4, 5, 6, 7] : all === "0-3" ? [0, 1, 2, 3] : [0, 1, 4, 5, 6, 7];
  return {
    "cpuset.cpus": d
      .shuffled(free)
      .slice(0, 1 + d.below(3))
      .join(","),
  };
}

interface Drawn {
  /** The cgroup's own limits; null: none. */
  readonly own: Room;
  /** The bounds into which the cgroup's children must fit. */
  readonly left: Room;
}

function within(d: Draws, room: Room): Drawn {
  const limit = (above: number | null, most: number, least: number): number | null => {
    if (d.chance(3)) return null;
    const top = above ?? most;
    return d.chance(4) ? top : least + d.below(top - least + 1);
  };
  const memory = limit(room.memory, 2 ** 33, 4096);
  const swapped = memory === null ? null : memory + d.below((room.memsw ?? 2 ** 34) - memory + 1);
  const own: Room = {
    cpu: limit(room.cpu, 800, 10),
    memory,
    memsw: swapped,
    pids: limit(room.pids, 10_000, 1),
  };
  const left: Room = {
    cpu: own.cpu ?? room.cpu,
    memory: own.memory ?? room.memory,
    memsw: own.memsw ?? room.memsw,
    pids: own.pids ?? room.pids,
  };
  return { own, left };
}

function filesOf(d: Draws, version: 1 | 2, { cpu, memory, memsw, pids }: Room): Record<string, string> {
  const period = d.pick(PERIODS);
  const quota = cpu === null ? null : (cpu * period) / 100;
  if (version === 1) {
    return {
      "cpu.shares": String(d.below(300_000)),
      "cpu.cfs_quota_us": String(quota ?? -1),
      "cpu.cfs_period_us": String(period),
      "memory.limit_in_bytes": String(memory ?? -1),
      "memory.memsw.limit_in_bytes": String(memsw ?? -1),
      "pids.max": String(pids ?? "max"),
    };
  }
  return {
    "cpu.weight": String(1 + d.below(10_000)),
    "cpu.max": `${quota ?? "max"} ${period}`,
    "memory.max": String(memory ?? "max"),
    "memory.high": String(memory === null ? "max" : d.below(memory)),
    "memory.swap.max": String(memsw ?? "max"),
    "memory.oom.group": String(d.below(2)),
    "pids.max": String(pids ?? "max"),
    "hugetlb.2MB.max": String(d.pick([0, 2 ** 21, 3 * 2 ** 20, 2n ** 62n])),
  };
}
