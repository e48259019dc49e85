import { describe, expect, test } from "vitest";
import type { CgroupPlan } from "../../api/model/cgroups.ts";
import { cgroupsOf } from "../decide/ask.ts";
import type { Json } from "../kit/snapshots.ts";
import { Met } from "./draws.ts";
import { forNodes } from "./random-node.ts";
import { holds, rawPods, slowClass, slowRequest, slowShares } from "./slow.ts";

const SEED = 20_261;
const COUNT = 800;
/** Allows for a loaded machine; the test does not measure speed. */
const PATIENT = { timeout: 120_000 };
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
const must = (holds: boolean, message: () => string): void => {
  if (!holds) expect.fail(message());
};

const CPUS = /^\d+(-\d+)?(,\d+(-\d+)?)*$/;
const NUMBER = /^\d+$/;
const LIMIT = /^(\d+|max)$/;
/** Maps each file to the texts that are allowed in it. */
const TEXTS: readonly (readonly [RegExp, RegExp])[] = [
  [/^cpu\.(shares|weight|cfs_period_us)$/, NUMBER],
  [/^cpu\.cfs_quota_us$/, /^(\d+|-1)$/],
  [/^cpu\.max$/, /^(\d+|max) \d+$/],
  [/^cpuset\.(cpus|mems)$/, CPUS],
  [/^memory\.(min|low|limit_in_bytes|memsw\.limit_in_bytes)$/, NUMBER],
  [/^memory\.(max|high|swap\.max)$/, LIMIT],
  [/^memory\.oom\.group$/, /^1$/],
  [/^pids\.max$/, LIMIT],
  [/^hugetlb\.\d+[KMGT]?B\.(rsvd\.)?(max|limit_in_bytes)$/, NUMBER],
];
const wellWritten = (path: string, value: string): boolean =>
  TEXTS.some(([file, text]) => file.test(path) && text.test(value));

/** Counts the branches that a tree covers. */
function noteTree(met: Met, input: Json, cgroups: readonly CgroupPlan[]): void {
  const any = (level: string, holds: (p: CgroupPlan) => boolean) => cgroups.some((p) => p.level === level && holds(p));
  met.note("systemd", cgroups[0]?.path.endsWith(".slice") === true);
  met.note("v1", (input["cgroup"] as { version: number }).version === 1);
  met.note(
    "Guaranteed pod",
    any("pod", (p) => /\/kubepods\/pod|kubepods-podu/.test(p.path)),
  );
  met.note(
    "BestEffort pod",
    any("pod", (p) => p.path.includes("besteffort")),
  );
  met.note(
    "pod without quota",
    any("pod", (p) => p.values.cpuQuota === undefined && p.path.includes("burstable")),
  );
  met.note(
    "pod with quota off",
    any("pod", (p) => p.values.cpuQuota === -1),
  );
  met.note(
    "pod with memory limit",
    any("pod", (p) => p.values.memory !== undefined),
  );
  met.note(
    "limited swap",
    any("container", (p) => p.values.memorySwap !== undefined && p.values.memorySwap > 0),
  );
  met.note(
    "memory.high",
    any("container", (p) => p.values.memoryHigh !== undefined),
  );
  met.note(
    "own CPUs",
    any("container", (p) => p.values.cpusetCpus !== undefined && p.values.cpusetCpus !== "0-1"),
  );
  met.note(
    "huge pages",
    any("pod", (p) => p.values.hugePageLimit !== undefined),
  );
  met.note(
    "limited tiers",
    any("qos", (p) => p.values.memory !== undefined),
  );
  met.note("reserved cgroups", cgroups.filter((p) => p.level === "node").length > 1);
  met.note("no pods", !any("pod", () => true));
}

describe(`${COUNT} random nodes from seed ${SEED}`, PATIENT, () => {
  test("have a cgroup tree with parents first, unique paths and file texts that the kernel accepts", () => {
    const met = new Met();
    forNodes(SEED, COUNT, (input) => {
      const { cgroups } = cgroupsOf(input).decision;
      const seen = new Set<string>();
      for (const plan of cgroups) {
        must(!seen.has(plan.path), () => `${plan.path} twice`);
        if (plan.level !== "node") must(seen.has(parentOf(plan.path)), () => `${plan.path} before its parent`);
        seen.add(plan.path);
        for (const f of plan.files) must(wellWritten(f.path, f.value), () => `${plan.path}/${f.path} = \`${f.value}\``);
        must(
          new Set(plan.files.map((f) => f.path)).size === plan.files.length,
          () => `${plan.path} writes a file twice`,
        );
      }
      noteTree(met, input, cgroups);
    });
    expect(met.hardly(15)).toEqual([]);
  });
  test("have whole numbers, and no container memory limit above its pod's", () => {
    const met = new Met();
    forNodes(SEED, COUNT, (input) => {
      const { cgroups } = cgroupsOf(input).decision;
      const byPath = new Map(cgroups.map((p) => [p.path, p]));
      for (const { path, level, values } of cgroups) {
        for (const [field, v] of Object.entries(values)) {
          must(typeof v !== "number" || Number.isSafeInteger(v), () => `${path} ${field} is ${v}`);
        }
        const pod = level === "container" ? byPath.get(parentOf(path)) : undefined;
        const [mine, theirs] = [values.memory, pod?.values.memory];
        met.note("both limited", mine !== undefined && theirs !== undefined);
        if (mine !== undefined && theirs !== undefined) must(mine <= theirs, () => `${path}: ${mine} in ${theirs}`);
      }
    });
    expect(met.hardly(250)).toEqual([]);
  });
  test("have CPU shares that agree with a slow recount, and each pod in its QoS tier", () => {
    const met = new Met();
    forNodes(SEED, COUNT, (input) => {
      const { cgroups } = cgroupsOf(input).decision;
      const tier = cgroups.find((p) => p.level === "qos" && p.path.includes("burstable"));
      const here = rawPods(input).filter(holds);
      const milli = (of: "Burstable") =>
        here.filter((p) => slowClass(p) === of).reduce((s, p) => s + slowRequest(p, "cpu"), 0n);
      must(
        tier?.values.cpuShares === slowShares(milli("Burstable")),
        () => `burstable has ${tier?.values.cpuShares} for ${milli("Burstable")}m`,
      );
      for (const pod of here) {
        const plan = cgroups.find((p) => p.level === "pod" && p.pod?.uid === pod.metadata.uid);
        const qos = slowClass(pod);
        const want = qos === "BestEffort" ? 2 : slowShares(slowRequest(pod, "cpu"));
        must(plan?.values.cpuShares === want, () => `${plan?.path}: ${plan?.values.cpuShares} shares, not ${want}`);
        const at = plan?.path.includes("burstable")
          ? "Burstable"
          : plan?.path.includes("besteffort")
            ? "BestEffort"
            : "Guaranteed";
        must(at === qos, () => `${plan?.path} of a ${qos} pod`);
        met.note(qos);
        met.note("sidecar", pod.spec.initContainers?.some((c) => c.restartPolicy === "Always") === true);
        met.note("pod-level", pod.spec.resources !== undefined);
        met.note("overhead", pod.spec.overhead !== undefined);
      }
      met.note("gone or elsewhere", here.length < rawPods(input).length);
      met.note("many shares", (tier?.values.cpuShares ?? 0) > 20_000);
    });
    expect(met.hardly(50)).toEqual([]);
  });
});
