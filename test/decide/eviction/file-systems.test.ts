import { describe, expect, test } from "vitest";
import type { FileSystems } from "../../../api/model/eviction.ts";
import { requesting } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, codes, type Disk, disk, Gi, lowOn, Passes, START, underDisk } from "./eviction-kit.ts";

const HIGH = 50 * Gi;
const BOTH = { evictionHard: { "nodefs.available": "10%", "imagefs.available": "15%" } };
const CONTAINERS = "delete-unused-containers";
const IMAGES = "delete-unused-images";
/** Three pods, each with the largest usage in one category. */
const part = (bytes: number): Json => ({ usedBytes: bytes, inodesUsed: 1 });
const stats = (name: string, rootfs: number, logs: number, volume: number): Json => ({
  podRef: { name, uid: `uid-${name}` },
  containers: [{ name: "c", rootfs: part(rootfs), logs: part(logs) }],
  volume: [{ name: "d", ...part(volume) }],
});
const withVolume = (name: string): Json => requesting(name, {}, { volumes: [{ name: "d", emptyDir: {} }] });
const PODS = [
  [withVolume("layers"), stats("layers", 9 * Gi, 1, 1)],
  [withVolume("logs"), stats("logs", 1, 5 * Gi, 1)],
  [withVolume("volumes"), stats("volumes", 1, 1, 7 * Gi)],
] as const;
const decide = (layout: FileSystems, low: Disk, config: Json = BOTH): Answer =>
  answer(underDisk(config, lowOn(layout, low), PODS));
const order = ({ decision }: Answer, signal: string): readonly string[] | undefined =>
  decision.rankings.find((r) => r.signals.some((s) => s === signal))?.pods.map((p) => p.pod.name);

describe("the layout of nodefs, imagefs and containerfs", () => {
  test.each<[FileSystems, Disk, readonly string[]]>([
    ["one", "nodefs", [CONTAINERS, IMAGES]],
    ["one", "imagefs", [CONTAINERS, IMAGES]],
    ["dedicated", "nodefs", []],
    ["dedicated", "imagefs", [CONTAINERS, IMAGES]],
    ["split", "nodefs", [CONTAINERS]],
    ["split", "imagefs", [IMAGES]],
  ])("%s: pressure on %s runs the node-level reclaim functions %j", (layout, low, functions) => {
    expect(decide(layout, low).decision.reclaim?.nodeLevel).toEqual(functions);
  });
  test.each<[FileSystems, string, readonly string[]]>([
    ["one", "nodefs.available", ["layers", "volumes", "logs"]],
    ["one", "imagefs.available", ["layers", "volumes", "logs"]],
    ["dedicated", "nodefs.available", ["volumes", "logs", "layers"]],
    ["dedicated", "imagefs.available", ["layers", "logs", "volumes"]],
    ["split", "nodefs.available", ["layers", "volumes", "logs"]],
  ])("%s: pods are ranked for %s as %j", (layout, signal, names) => {
    expect(order(decide(layout, "nodefs"), signal)).toEqual(names);
  });
  test("ties all pods on a split imagefs, as images belong to no pod", () => {
    const ranking = decide("split", "imagefs").decision.rankings.find((r) => r.signals.includes("imagefs.available"));
    expect(ranking?.pods.map((p) => [p.usage, p.tie])).toEqual([0, 0, 0].map((n) => [n, true]));
  });

  test.each<[FileSystems, string | undefined]>([
    ["one", "nodefs.available"],
    ["dedicated", "imagefs.available"],
    ["split", "nodefs.available"],
  ])("%s: containerfs.available is that of %s, from the second pass on", (layout, source) => {
    const passes = new Passes();
    const at = (now: number): Json => ({
      ...underDisk(BOTH, lowOn(layout, "containerfs", now), PODS),
      observedAt: new Date(now).toISOString(),
    });
    const derived = (a: Answer) => a.decision.thresholds.find((t) => t.signal === "containerfs.available");
    const first = passes.after(0, at);
    expect(derived(first)).toMatchObject({ derivedFrom: source, state: "unwatched" });
    expect(first.verdict).toBe("calm");
    const second = passes.after(10_000, at);
    expect(derived(second)).toMatchObject({ state: "below" });
    expect(second.decision.reclaim?.threshold.signal).toBe("containerfs.available");
  });
  test("overrides a configured containerfs threshold, with the kubelet's warning", () => {
    const config = { evictionHard: { ...BOTH.evictionHard, "containerfs.available": "1%" } };
    const decided = decide("one", "containerfs", config);
    expect(decided.decision.warnings).toEqual(["found containerfs.available for hard eviction. ignoring"]);
    expect(decided.decision.thresholds.find((t) => t.signal === "containerfs.available")?.value).toBe("10%");
    expect(codes(decided)).toContain("containerfs_overridden");
  });

  const sized = (fs: Json, imageFs: Json, containerFs?: Json): FileSystems => {
    const runtime = containerFs === undefined ? { imageFs } : { imageFs, containerFs };
    return answer(underDisk(BOTH, { fs, runtime })).decision.fileSystems;
  };
  test("is one file system when sizes are equal and available bytes are close", () => {
    const big = disk(HIGH, START);
    const drifted = disk(HIGH - Gi / 2, START);
    const other = disk(HIGH, START, { capacityBytes: 200 * Gi });
    expect(sized(big, drifted, drifted)).toBe("one");
    expect(sized(big, other, other)).toBe("dedicated");
    expect(sized(big, other)).toBe("dedicated");
    expect(sized(big, other, big)).toBe("split");
    expect(sized(big, disk(2 * Gi, START))).toBe("dedicated");
  });
  test("is determined once and remembered over passes", () => {
    const passes = new Passes();
    const at = (fileSystems: FileSystems) => (now: number) => ({
      ...underDisk(BOTH, { ...lowOn("one", "nodefs", now), fileSystems }),
      observedAt: new Date(now).toISOString(),
    });
    passes.after(0, at("dedicated"));
    expect(passes.after(1000, at("split")).decision.fileSystems).toBe("dedicated");
  });
});

describe("node-level reclaim before pod eviction", () => {
  const config = { evictionHard: { "nodefs.available": "10%" }, evictionMinimumReclaim: { "nodefs.available": "2Gi" } };
  const snapshot = underDisk(config, lowOn("one", "nodefs"), PODS);
  const freedTo = (available: number): Json => ({ statsAfterReclaim: { node: { fs: disk(available, START) } } });
  const goal = 10_737_418_400 + 2 * Gi;
  test("frees nothing while its result is unknown, and the answer contains the target", () => {
    const decided = answer(snapshot);
    expect(decided.decision.reclaim).toMatchObject({
      afterNodeLevel: "unknown",
      mustReach: [{ signal: "nodefs.available", available: goal }],
    });
    expect(decided.needs).toContain("ask.statsAfterReclaim");
    expect(decided.verdict).toBe("evicts");
  });
  test("evicts no pod when it reached threshold plus minimum reclaim", () => {
    const decided = answer(snapshot, undefined, freedTo(goal));
    expect([decided.verdict, decided.decision.evicted]).toEqual(["reclaims", []]);
  });
  test("evicts a pod when it falls a byte short, with the amounts from before in the message", () => {
    const decided = answer(snapshot, undefined, freedTo(goal - 1));
    expect(decided.decision.reclaim?.afterNodeLevel).toBe("not-enough");
    expect(decided.decision.evicted[0]?.message).toContain("Threshold quantity: 10737418400, available: 1Gi. ");
  });
  test("does not suffice while a soft threshold is met, even in its grace period", () => {
    const soft = {
      evictionSoft: { "nodefs.inodesFree": "95%" },
      evictionSoftGracePeriod: { "nodefs.inodesFree": "1h" },
    };
    const decided = answer(underDisk({ ...config, ...soft }, lowOn("one", "nodefs"), PODS), undefined, freedTo(HIGH));
    expect(decided.decision.reclaim?.afterNodeLevel).toBe("not-enough");
  });
});
