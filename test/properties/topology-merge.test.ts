import { describe, expect, test } from "vitest";
import { countNodes, numaNodes, type ResourceHints, type TopologyHint } from "../../api/decide/topology/hint.ts";
import { intersections, type Merged, mergeHints } from "../../api/decide/topology/merge.ts";
import type { AligningPolicy } from "../../api/decide/topology/policy.ts";
import { type Draws, draws, Met, shuffled } from "./draws.ts";
import { mergeByEnumeration } from "./topology-enumeration.ts";

const ROUNDS = 6000;

function randomPolicy(d: Draws): AligningPolicy {
  const nodes = d.chance(4) ? 5 + d.below(2) : 1 + d.below(4);
  const distances = Array.from({ length: nodes }, () =>
    Array.from({ length: nodes }, () => d.pick([10, 11, 12, 20, 31])),
  );
  return {
    name: d.pick(["best-effort", "restricted", "single-numa-node"]),
    scope: "container",
    numa: numaNodes(Array.from({ length: nodes }, (_, i) => i)),
    distances: d.chance(2) ? distances : null,
  };
}
const randomHint = (all: number, d: Draws): TopologyHint => ({
  nodes: d.chance(8) ? null : 1 + d.below(all),
  preferred: !d.chance(3),
});
function randomProviders(all: number, d: Draws): readonly ResourceHints[] {
  return Array.from({ length: d.below(5) }, (_, p) => {
    const resources = d.chance(6) ? 0 : d.chance(6) ? 2 : 1;
    return new Map(
      Array.from({ length: resources }, (_, r) => {
        const list = Array.from({ length: d.chance(12) ? 0 : 1 + d.below(5) }, () => randomHint(all, d));
        return [`example.com/p${p}r${r}`, d.chance(12) ? null : list];
      }),
    );
  });
}
function merge(policy: AligningPolicy, hints: readonly ResourceHints[]): Merged {
  const merged = mergeHints(policy, hints);
  if (!merged.ok) throw new Error(merged.error.message);
  return merged.value;
}
const drawn = (seed: number) => {
  const d = draws(seed);
  const policy = randomPolicy(d);
  return { d, policy, hints: randomProviders(policy.numa.all, d) };
};
const within = (inner: number, outer: number | null): boolean => outer === null || (inner & outer) === inner;

describe("merging random topology hints", () => {
  test("gives the same result as enumerating every combination", () => {
    const met = new Met();
    for (let seed = 0; seed < ROUNDS; seed++) {
      const { policy, hints } = drawn(seed);
      const merged = merge(policy, hints);
      expect(merged, `seed ${seed}`).toEqual(mergeByEnumeration(policy, hints));
      const { hint, admitted } = merged;
      met.note(`${policy.name} ${policy.distances === null ? "narrowest" : "closest"} ${admitted}`);
      met.note("any node", hint.nodes === null);
      met.note("several nodes, preferred", hint.preferred && hint.nodes !== null && countNodes(hint.nodes) > 1);
      met.note("several nodes, not preferred", !hint.preferred && hint.nodes !== null && countNodes(hint.nodes) > 1);
      met.note(
        "an unplaceable resource",
        hints.some((h) => [...h.values()].some((list) => list?.length === 0)),
      );
    }
    expect(met.hardly(100)).toEqual([]);
    expect(Object.keys(met.counts)).toContain("best-effort closest true");
  });

  test("does not depend on the order of providers, resources and hints", () => {
    for (let seed = 0; seed < ROUNDS / 4; seed++) {
      const { d, policy, hints } = drawn(seed);
      const mixed = shuffled(hints, d).map(
        (h) => new Map(shuffled([...h], d).map(([name, list]) => [name, list === null ? null : shuffled(list, d)])),
      );
      expect(merge(policy, mixed), `seed ${seed}`).toEqual(merge(policy, hints));
    }
  });

  test("gives NUMA nodes within some hint of every resource, preferred only if every resource prefers them", () => {
    const met = new Met();
    for (let seed = 0; seed < ROUNDS; seed++) {
      const { policy, hints } = drawn(seed);
      const { hint } = merge(policy, hints);
      const lists = hints.flatMap((h) => [...h.values()]).filter((list) => list !== null && list.length > 0);
      if (hint.preferred) {
        for (const list of lists) {
          const same = list?.some(
            (h) => h.preferred && (h.nodes === null || h.nodes === (hint.nodes ?? policy.numa.all)),
          );
          expect(same, `seed ${seed}`).toBe(true);
        }
        met.note("preferred");
      } else if (hint.nodes !== null && hint.nodes !== policy.numa.all) {
        for (const list of lists) {
          expect(
            list?.some((h) => within(hint.nodes as number, h.nodes)),
            `seed ${seed}`,
          ).toBe(true);
        }
        met.note("not preferred");
      }
    }
    expect(met.hardly(500)).toEqual([]);
  });

  test("gives under restricted the result of best-effort, admitted only when preferred", () => {
    for (let seed = 0; seed < ROUNDS / 4; seed++) {
      const { policy, hints } = drawn(seed);
      const loose = merge({ ...policy, name: "best-effort" }, hints);
      const strict = merge({ ...policy, name: "restricted" }, hints);
      const narrow = merge({ ...policy, name: "single-numa-node" }, hints);
      expect(loose.admitted).toBe(true);
      expect(strict).toEqual({ hint: loose.hint, admitted: loose.hint.preferred });
      if (narrow.admitted) expect(strict.admitted, `seed ${seed}`).toBe(true);
    }
  });

  test("stays preferred when one more hint is added", () => {
    const met = new Met();
    for (let seed = 0; seed < ROUNDS; seed++) {
      const { d, policy, hints } = drawn(seed);
      const before = merge(policy, hints);
      const more = hints.map((h) => new Map([...h].map(([name, list]) => [name, list && [...list]])));
      const lists = more.flatMap((h) => [...h.values()]).filter((list) => list !== null && list.length > 0);
      if (lists.length === 0) continue;
      d.pick(lists)?.push(randomHint(policy.numa.all, d));
      const after = merge(policy, more);
      if (before.hint.preferred) expect(after.hint.preferred, `seed ${seed}`).toBe(true);
      met.note("was preferred", before.hint.preferred);
      met.note("became preferred", !before.hint.preferred && after.hint.preferred);
    }
    expect(met.hardly(50)).toEqual([]);
  });
});

describe("intersections of random NUMA node sets", () => {
  test("are the same computed by pairs and by transform", () => {
    const met = new Met();
    for (let seed = 0; seed < 400; seed++) {
      const d = draws(seed);
      const bits = 1 + d.below(7);
      const all = 2 ** bits - 1;
      const lists = Array.from({ length: 1 + d.below(3) }, () => {
        const density = 1 + d.below(4);
        return new Set(Array.from({ length: all }, (_, i) => i + 1).filter(() => d.chance(density)));
      });
      let plain = new Set([all]);
      for (const list of lists) {
        met.note("pairs", plain.size * list.size <= 3 * bits * (all + 1));
        met.note("transform", plain.size * list.size > 3 * bits * (all + 1));
        plain = new Set([...plain].flatMap((a) => [...list].map((b) => a & b)).filter((mask) => mask !== 0));
      }
      const reached = intersections(lists, all);
      expect(reached.ok && [...reached.value].sort((a, b) => a - b), `seed ${seed}`).toEqual(
        [...plain].sort((a, b) => a - b),
      );
    }
    expect(met.hardly(40)).toEqual([]);
  });
});
