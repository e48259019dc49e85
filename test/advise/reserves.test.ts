import { describe, expect, test } from "vitest";
import type { AdviceNoteCode } from "../../api/model/advice.ts";
import { reservesAdvice } from "../../api/model/advice.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { type Measurement, measurementIn } from "../../api/service/advise/measurement.ts";
import { adviseReserves, percentileOf, type ReservesQuestion } from "../../api/service/advise/reserves.ts";
import { allocatableOf } from "../decide/ask.ts";
import { configured, decoded, type Json, many } from "../kit/snapshots.ts";
import { CONTAINERS, MI, summary, WHOLE } from "../kit/summary.ts";
import { draws } from "../properties/draws.ts";

function measured(stats: Json): Measurement {
  const measurement = measurementIn(decoded({ stats }));
  if (measurement === null) throw new Error("no measurement");
  return measurement;
}
const NODE = configured({ kubeReserved: { cpu: "100m", memory: "512Mi" }, systemReserved: { memory: "256Mi" } });
const ask = (stats: readonly Json[], over: Partial<ReservesQuestion> = {}) =>
  reservesAdvice.parse(
    adviseReserves({
      measurements: stats.map(measured),
      withoutStats: 0,
      everyMs: null,
      snapshot: decoded(NODE),
      profile: v1_36,
      percentile: 99,
      marginPercent: 0,
      ...over,
    }),
  );
const codes = ({ notes }: ReturnType<typeof ask>): readonly AdviceNoteCode[] => notes.map(({ code }) => code);
const recommended = ({ reserves }: ReturnType<typeof ask>): Readonly<Record<string, string | null>> =>
  Object.fromEntries(reserves.map(({ field, resource, recommended: text }) => [`${field}.${resource}`, text]));

const { kubelet, runtime, pods } = CONTAINERS;

describe("advised cpu and memory reserves", () => {
  test("are kubelet plus runtime for kubeReserved, and the rest without pods for systemReserved", () => {
    const advice = ask([summary(0, WHOLE, { kubelet, runtime, pods })]);
    expect(recommended(advice)).toEqual({
      "kubeReserved.cpu": "70m",
      "kubeReserved.memory": "250Mi",
      "systemReserved.cpu": "30m",
      "systemReserved.memory": "250Mi",
    });
    expect(advice.patch).toEqual({
      kubeReserved: { cpu: "70m", memory: "250Mi" },
      systemReserved: { cpu: "30m", memory: "250Mi" },
    });
    expect(advice.reserves.map(({ now }) => now)).toEqual(["100m", "512Mi", null, "256Mi"]);
  });

  test("add kubelet and runtime usage of the same time, not their separate peaks", () => {
    const other = { kubelet: { cpu: 10, memoryMi: 400 }, runtime: { cpu: 90, memoryMi: 10 } };
    const advice = ask([summary(0, WHOLE, { kubelet, runtime, pods }), summary(1, WHOLE, { ...other, pods })], {
      percentile: 100,
    });
    expect(recommended(advice)).toMatchObject({ "kubeReserved.cpu": "100m", "kubeReserved.memory": "410Mi" });
  });

  test("count an unmeasured runtime in systemReserved, with a note", () => {
    const advice = ask([summary(0, WHOLE, { kubelet, pods })]);
    expect(recommended(advice)).toMatchObject({ "kubeReserved.memory": "100Mi", "systemReserved.memory": "400Mi" });
    expect(codes(advice)).toContain("no-runtime-container");
    expect(codes(advice)).not.toContain("no-kubelet-container");
  });

  test("ignore measurements without a container that others have", () => {
    const advice = ask([summary(0, WHOLE, { kubelet, runtime, pods }), summary(1, WHOLE, { kubelet, pods })]);
    const memory = advice.reserves.find(({ field, resource }) => field === "kubeReserved" && resource === "memory");
    expect(memory).toMatchObject({ measurements: 1, recommended: "250Mi" });
  });

  test("keep kubeReserved without its containers, and systemReserved fills up the need", () => {
    const advice = ask([summary(0, { cpu: 1200, memoryMi: 3000 }, { pods })], { marginPercent: 10 });
    // 300m and 1000Mi plus 10 %, minus the 100m and 512Mi of kubeReserved
    expect(advice.patch).toEqual({ systemReserved: { cpu: "230m", memory: "588Mi" } });
    expect(codes(advice)).toEqual(
      expect.arrayContaining(["no-kubelet-container", "no-runtime-container", "kube-reserved-kept"]),
    );
    const less = ask([summary(0, { cpu: 950, memoryMi: 2100 }, { pods })]);
    expect(less.patch).toEqual({ systemReserved: { cpu: "0", memory: "0" } });
  });

  test("use systemCgroups for the system when pods are not measured, and are absent without both", () => {
    const misc = { cpu: 25, memoryMi: 300 };
    expect(recommended(ask([summary(0, WHOLE, { kubelet, runtime, misc })]))).toMatchObject({
      "systemReserved.cpu": "25m",
      "systemReserved.memory": "300Mi",
    });
    const none = ask([summary(0, WHOLE, { kubelet, runtime })]);
    expect(none.patch).toEqual({ kubeReserved: { cpu: "70m", memory: "250Mi" } });
    expect(none.notes.find(({ code }) => code === "not-measured")?.message).toBe(
      "systemReserved.cpu, systemReserved.memory, systemReserved.ephemeral-storage and systemReserved.pid are not measured, and stay as they are",
    );
  });

  test("are never negative when containers were measured at different moments", () => {
    const advice = ask([summary(0, { cpu: 900, memoryMi: 2100 }, { kubelet, runtime, pods })]);
    expect(recommended(advice)).toMatchObject({ "systemReserved.cpu": "0", "systemReserved.memory": "0" });
  });
});

describe("advised ephemeral-storage and pid reserves", () => {
  const disk = { capacityBytes: 100_000 * MI, availableBytes: 50_000 * MI, inodes: 9 };
  const fs = { ...disk, usedBytes: 40_000 * MI };
  const podWith = (usedMi: number, process_count?: number): Json => ({
    podRef: { name: "web", namespace: "shop", uid: "u" },
    "ephemeral-storage": { usedBytes: usedMi * MI },
    ...(process_count === undefined ? {} : { process_stats: { process_count } }),
  });

  test("do not count images on nodefs, with a note", () => {
    const runtimeFs = { imageFs: { ...disk, usedBytes: 10_000 * MI }, containerFs: disk };
    const advice = ask([summary(0, WHOLE, { pods }, { fs, runtime: runtimeFs }, [podWith(1000)])]);
    expect(recommended(advice)["systemReserved.ephemeral-storage"]).toBe("29000Mi");
    expect(advice.notes.find(({ code }) => code === "images-on-node-fs")?.message).toContain("9.8 GiB");
    const elsewhere = {
      imageFs: { ...disk, capacityBytes: 7 * MI, usedBytes: 5 * MI },
      containerFs: { ...disk, capacityBytes: 7 * MI },
    };
    const other = ask([summary(0, WHOLE, { pods }, { fs, runtime: elsewhere }, [podWith(1000)])]);
    expect(recommended(other)["systemReserved.ephemeral-storage"]).toBe("39000Mi");
    expect(codes(other)).not.toContain("images-on-node-fs");
  });

  test("are absent when a pod's share is unknown", () => {
    const advice = ask([
      summary(0, WHOLE, { pods }, { fs, rlimit: { curproc: 400 } }, [{ podRef: { name: "a", uid: "u" } }]),
    ]);
    expect(Object.keys(recommended(advice))).not.toContain("systemReserved.ephemeral-storage");
    expect(Object.keys(recommended(advice))).not.toContain("systemReserved.pid");
  });

  test("are the node's processes minus those of pods, noted as an upper bound", () => {
    const advice = ask([
      summary(0, WHOLE, { kubelet, pods }, { rlimit: { curproc: 400, maxpid: 32_768 } }, [podWith(1, 60)]),
    ]);
    expect(recommended(advice)["systemReserved.pid"]).toBe("340");
    expect(codes(advice)).toContain("pid-at-most");
  });
});

describe("percentile and margin of the advice", () => {
  test("the percentile is the smallest value that so many percent of measurements do not exceed", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const d = draws(seed);
      const values = many(1 + d.below(200), () => d.below(50)).sort((a, b) => a - b);
      const percentile = d.pick([0.1, 1, 25, 50, 90, 95, 99, 99.9, 100]);
      const enough = (value: number): boolean =>
        values.filter((one) => one <= value).length * 1000 >= Math.round(percentile * 10) * values.length;
      const expected = values.find(enough);
      expect(percentileOf(values, percentile), `seed ${seed}: ${percentile} of ${values.length}`).toBe(expected);
    }
    expect(
      percentileOf(
        many(1000, (i) => i + 1),
        99.9,
      ),
    ).toBe(999);
  });

  test("the margin is added to the percentile, and the result is rounded up", () => {
    const stats = many(100, (i) => summary(i, { cpu: 1000 + i, memoryMi: 2500 + i }, { kubelet, runtime, pods }));
    const advice = ask(stats, { percentile: 90, marginPercent: 15 });
    const [cpu] = advice.reserves.filter(({ field }) => field === "systemReserved");
    expect(cpu).toMatchObject({
      measurements: 100,
      median: "79m",
      atPercentile: "119m",
      peak: "129m",
      recommended: "137m",
    });
    expect(advice.measurements).toEqual({
      count: 100,
      from: "2026-11-14T00:00:00.000Z",
      to: "2026-11-18T03:00:00.000Z",
    });
  });
});

describe("the effect of the advice on the node", () => {
  const stats = [summary(0, WHOLE, { kubelet, runtime, pods })];

  test("is the allocatable that is decided with the advised patch", () => {
    const { allocatable, patch } = ask(stats);
    const is = allocatableOf({
      ...NODE,
      kubeletConfiguration: { kubeReserved: patch.kubeReserved, systemReserved: patch.systemReserved },
    });
    for (const { resource, to } of allocatable) expect(to).toBe(is.decision.allocatable[resource]);
    // 768Mi are reserved now, and 500Mi after the advice
    expect(allocatable).toEqual([
      { resource: "cpu", from: "3900m", to: "3900m", change: "0" },
      { resource: "memory", from: "7324Mi", to: "7592Mi", change: "268Mi" },
    ]);
  });

  test("includes lint findings that keep the kubelet from starting", () => {
    const { findings } = ask([summary(0, { cpu: 9000, memoryMi: 2500 }, { kubelet, runtime, pods })]);
    expect(findings).toContainEqual(expect.objectContaining({ severity: "refuses-start", field: "kubeReserved" }));
  });

  test("is absent without a node", () => {
    const advice = ask(stats, { snapshot: decoded({}) });
    expect(advice).toMatchObject({ node: null, allocatable: [] });
    expect(codes(advice)).toContain("no-capacity");
  });

  test("leaves cpu out when reservedSystemCPUs replaces it", () => {
    const advice = ask(stats, { snapshot: decoded(configured({ reservedSystemCPUs: "0-1" })) });
    expect(recommended(advice)).toMatchObject({ "kubeReserved.cpu": null, "systemReserved.cpu": null });
    expect(advice.patch).toEqual({ kubeReserved: { memory: "250Mi" }, systemReserved: { memory: "250Mi" } });
    expect(codes(advice)).toContain("reserved-system-cpus");
  });

  test("has a note when a reserve is enforced as a limit of the daemons", () => {
    const enforced = { enforceNodeAllocatable: ["pods", "kube-reserved"], kubeReservedCgroup: "/kube.slice" };
    expect(codes(ask(stats, { snapshot: decoded(configured(enforced)) }))).toContain("enforced-as-limits");
  });
});

describe("notes about the measurements of the advice", () => {
  const at = (hours: number) => summary(hours, WHOLE, { kubelet, runtime, pods });
  test("name few measurements and a short time span", () => {
    expect(codes(ask(many(3, at)))).toEqual(expect.arrayContaining(["few-measurements", "short-span"]));
    const long = codes(ask(many(100, at)));
    expect(long).not.toContain("few-measurements");
    expect(long).not.toContain("short-span");
    expect(codes(ask(many(2, at), { percentile: 50 }))).not.toContain("few-measurements");
  });
  test("name skipped measurements, snapshots without stats, and no measurement at all", () => {
    const advice = ask(many(100, at), { everyMs: 300_000, withoutStats: 4 });
    expect(advice.notes.find(({ code }) => code === "sampled")?.message).toContain("every 5m");
    expect(advice.notes.find(({ code }) => code === "without-stats")?.message).toContain("4 snapshots");
    const none = ask([], {});
    expect(none).toMatchObject({ measurements: { count: 0, from: null, to: null }, reserves: [], patch: {} });
    expect(codes(none)).toEqual(["not-measured"]);
  });
});
