import { describe, expect, test } from "vitest";
import { takeCpus } from "../../../api/decide/cpus/policy.ts";
import { cpuText } from "../../../api/decide/cpus/sets.ts";
import { combinations, spreadSearch } from "../../../api/decide/cpus/spread.ts";
import type { CpuTopology } from "../../../api/decide/cpus/topology.ts";
import { cpus, evenMachine, policyOn } from "./kit.ts";

function taken(topology: CpuTopology, count: number, options: readonly string[], available?: string): string {
  const policy = policyOn(topology, options);
  const set = takeCpus(policy, available === undefined ? topology.all : cpus(available), count);
  return set.ok ? cpuText(set.value) : set.error;
}

describe("taking CPUs packed", () => {
  const machine = evenMachine({ sockets: 2, cores: 8 });
  test("takes whole sockets first, then whole cores, then threads where the fewest are free", () => {
    expect(taken(machine, 8, [])).toBe("0-3,8-11");
    expect(taken(machine, 11, [])).toBe("0-5,8-12");
    expect(taken(machine, 1, [], "0-7,9-15")).toBe("0");
    expect(taken(machine, 2, [], "0,2,4-7,12-15")).toBe("4,12");
    expect(taken(machine, 3, ["distribute-cpus-across-cores"])).toBe("0-2");
  });
  test("takes whole uncore caches first, then one with room for the rest", () => {
    const caches = evenMachine({ caches: 4, cores: 16 });
    const byCache = ["prefer-align-cpus-by-uncorecache"];
    expect(taken(caches, 10, byCache)).toBe("0-4,16-20");
    // the first cache has fewer free cores than requested, the next one has enough
    expect(taken(caches, 8, [], "1-8,17-24")).toBe("1-4,17-20");
    expect(taken(caches, 8, byCache, "1-8,17-24")).toBe("4-7,20-23");
    expect(taken(caches, 5, byCache, "1-3,5-7,17-19,21-23")).toBe("1-3,17-18");
  });
});

describe("distributing CPUs across NUMA nodes", () => {
  const machine = evenMachine({ nodes: 4, cores: 16 });
  const across = ["distribute-cpus-across-numa"];
  test("uses one node if it has room, else equal shares of as few nodes as possible", () => {
    expect(taken(machine, 8, across)).toBe("0-3,16-19");
    expect(taken(machine, 10, across)).toBe("0-2,4-6,16-17,20-21");
    expect(taken(machine, 10, [])).toBe("0-4,16-20");
    expect(taken(machine, 10, [...across, "full-pcpus-only"])).toBe("0-2,4-5,16-18,20-21");
  });
  test("repeats the kubelet's flaw that a combination can change while it is being visited", () => {
    const seen: (readonly number[])[] = [];
    combinations([0, 1, 2, 3, 4, 5], 4, (choice) => {
      seen.push(choice);
      return seen.length === 2;
    });
    expect(seen).toEqual([
      [0, 1, 2, 4],
      [0, 1, 2, 4],
    ]);
    const triples: (readonly number[])[] = [];
    combinations([0, 1, 2, 3], 3, (choice) => triples.push(choice) > 9);
    expect(triples).toEqual([
      [0, 1, 2],
      [0, 1, 3],
      [0, 2, 3],
      [1, 2, 3],
    ]);
  });
  test("fails where the kubelet would search for ever, as nodes cannot give the rest in groups", () => {
    const search = spreadSearch({ nodes: [0, 1, 2, 3], free: [5, 5, 8, 8], count: 14, group: 2 });
    expect(search(4)).toEqual({
      ok: false,
      error:
        "the kubelet would not come back: it looks for 6 more CPUs in groups of 2 on NUMA nodes that have none left",
    });
  });
  test("gives up a search over too many combinations", () => {
    const nodes = Array.from({ length: 31 }, (_, i) => i);
    const search = spreadSearch({ nodes, free: nodes.map((i) => 16 - ((i * 7) % 5)), count: 130, group: 1 });
    const sizes = nodes.slice(8).map((size) => search(size));
    expect(sizes.find((found) => !found.ok)).toEqual({
      ok: false,
      error: "distributing 130 CPUs over 31 NUMA nodes takes more than 4194304 steps",
    });
  });
});
