import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { CgroupPlan } from "../../api/model/cgroups.ts";
import { cgroupsOf } from "../decide/ask.ts";
import { bestEffort, guaranteed } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { draws, Met, shuffled } from "./draws.ts";
import { forNodes } from "./random-node.ts";
import { rawPods } from "./slow.ts";

const SEED = 4242;
const COUNT = 200;
/** Allows for a loaded machine; the test does not measure speed. */
const PATIENT = { timeout: 120_000 };
const treeOf = (input: Json): readonly CgroupPlan[] => cgroupsOf(input).decision.cgroups;
const byPath = (tree: readonly CgroupPlan[]): Record<string, unknown> =>
  Object.fromEntries(tree.map((p) => [p.path, p.values]));
const must = (holds: boolean, message: () => string): void => {
  if (!holds) expect.fail(message());
};
const withPods = (input: Json, pods: unknown[]): Json => ({ ...input, pods });
const reconfigured = (input: Json, config: Json): Json => ({
  ...input,
  kubeletConfiguration: { ...(input["kubeletConfiguration"] as Json), ...config },
});

/** Over random nodes, a change of the input must change some values and must not change others. */
describe(`${COUNT} random nodes from seed ${SEED}, changed`, PATIENT, () => {
  test("have the same values whatever the order of pods", () => {
    forNodes(SEED, COUNT, (input, seed) => {
      const other = withPods(input, shuffled(rawPods(input), draws(seed)));
      must(isDeepStrictEqual(byPath(treeOf(input)), byPath(treeOf(other))), () => "a value moved");
    });
  });
  test("are not affected by a finished pod or a pod of another node", () => {
    forNodes(SEED, COUNT, (input) => {
      const finished = { ...guaranteed("finished", "1", "1Gi"), status: { phase: "Succeeded" } };
      const away = guaranteed("away", "1", "1Gi");
      const elsewhere = { ...away, spec: { ...(away["spec"] as Json), nodeName: "far" } };
      const more = withPods(input, [...rawPods(input), finished, elsewhere]);
      must(isDeepStrictEqual(treeOf(input), treeOf(more)), () => "it left a trace");
    });
  });
  test("get only its own cgroups from another BestEffort pod", () => {
    forNodes(SEED, COUNT, (input) => {
      const before = byPath(treeOf(input));
      const after = byPath(treeOf(withPods(input, [...rawPods(input), bestEffort("extra")])));
      for (const [path, values] of Object.entries(before))
        must(isDeepStrictEqual(values, after[path]), () => `${path} changed`);
      must(Object.keys(after).length === Object.keys(before).length + 2, () => "not two more cgroups");
    });
  });
  test("have other paths but the same values with the other cgroup driver", () => {
    forNodes(SEED, COUNT, (input) => {
      const cgroup = input["cgroup"] as Json;
      const [a, b] = ["cgroupfs", "systemd"].map((driver) => treeOf({ ...input, cgroup: { ...cgroup, driver } }));
      must(a?.length === b?.length, () => "another number of cgroups");
      const pathless = (tree: readonly CgroupPlan[] = []): unknown => tree.map(({ path: _path, ...rest }) => rest);
      must(isDeepStrictEqual(pathless(a), pathless(b)), () => "a value differs");
    });
  });
  test("have the same shares, quota, memory and pids limits with the other cgroup version", () => {
    const kept = ({ values: v }: CgroupPlan): unknown[] => [
      v.cpuShares,
      v.cpuQuota,
      v.cpuPeriod,
      v.memory,
      v.pidsLimit,
      v.oomScoreAdj,
      v.hugePageLimit,
    ];
    forNodes(SEED, COUNT, (input) => {
      const [one, two] = [1, 2].map((version) =>
        treeOf({ ...input, cgroup: { ...(input["cgroup"] as Json), version } }),
      );
      must(isDeepStrictEqual(one?.map(kept), two?.map(kept)), () => "v1 and v2 differ");
      must(one?.every((p) => p.values.cpuWeight === undefined) === true, () => "a weight on v1");
      const weighed = (p: CgroupPlan): boolean =>
        (p.values.cpuWeight === undefined) === (p.values.cpuShares === undefined);
      must(two?.every(weighed) === true, () => "no weight for shares on v2");
    });
  });
  test("have only other path prefixes with another cgroupRoot", () => {
    forNodes(SEED, COUNT, (input) => {
      const at = (cgroupRoot: string) =>
        treeOf(reconfigured({ ...input, cgroup: { version: 2, driver: "cgroupfs" } }, { cgroupRoot }));
      const strip = (tree: readonly CgroupPlan[], root: string): unknown =>
        tree.map((p) => ({ ...p, path: p.path.startsWith(`${root}/kubepods`) ? p.path.slice(root.length) : p.path }));
      must(isDeepStrictEqual(strip(at("/"), ""), strip(at("/a/b"), "/a/b")), () => "it changed more");
    });
  });
  test("have no quota but the same other pod values with cpuCFSQuota off", () => {
    const met = new Met();
    forNodes(SEED, COUNT, (input) => {
      const off = treeOf(reconfigured(input, { cpuCFSQuota: false }));
      const on = byPath(treeOf(reconfigured(input, { cpuCFSQuota: true })));
      for (const { path, values } of off) {
        must(values.cpuQuota === undefined || values.cpuQuota === -1, () => `${path} keeps a quota`);
        const { cpuQuota: before, cpuPeriod: _p, ...rest } = on[path] as CgroupPlan["values"];
        const { cpuQuota: _q, cpuPeriod: _r, ...now } = values;
        must(isDeepStrictEqual(rest, now), () => `${path} changed more`);
        met.note("a quota went", before !== undefined && before > 0);
      }
    });
    expect(met.hardly(100)).toEqual([]);
  });
  test("have the same cgroups with a larger hard eviction threshold", () => {
    forNodes(SEED, COUNT, (input) => {
      const [a, b] = ["1%", "40%"].map((percent) =>
        treeOf(reconfigured(input, { evictionHard: { "memory.available": percent } })),
      );
      must(isDeepStrictEqual(a, b), () => "it did");
    });
  });
});

/**
 * A test helper that cannot fail proves nothing: these claims are false, and the helper must report that with a seed.
 */
describe("the property test helpers", PATIENT, () => {
  const plainSum = (input: Json): void => {
    const tier = treeOf(input).find((p) => p.level === "qos" && p.path.includes("burstable"));
    expect(tier?.values.cpuShares).toBe(2);
  };
  test("report a false claim with its seed", () => {
    expect(() => forNodes(SEED, COUNT, plainSum)).toThrow(/^node of seed \d+: /);
  });
  test("report a branch that was hardly met", () => {
    const met = new Met();
    met.note("often");
    met.note("never", false);
    expect(met.hardly(1)).toEqual(["never: 0"]);
  });
  test.fails("fail on a property that is false", () =>
    forNodes(SEED, COUNT, (input) => must(treeOf(input).length < 5, () => "larger")));
});
