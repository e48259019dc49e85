import { describe, expect, test } from "vitest";
import { requesting } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, disk, Gi, Mi, START, underDisk, victims } from "./eviction-kit.ts";

const used = (bytes: number): Json => ({ usedBytes: bytes, inodesUsed: 1 });
const stats = (name: string, more: Json): Json => ({ podRef: { name, uid: `uid-${name}` }, ...more });
const limited = (name: string, limits: Json, spec: Json = {}): Json =>
  requesting(name, {}, { containers: [{ name: "c", resources: { limits } }], ...spec });
const decide = (pods: readonly (readonly [Json, Json])[], more: Json = {}, config: Json = {}): Answer =>
  answer(underDisk({ evictionHard: {}, ...config }, { fs: disk(50 * Gi, START), ...more }, pods));
const messages = ({ decision }: Answer): readonly string[] => decision.evicted.map((e) => e.message);

describe("local storage limits", () => {
  const emptyDir = (sizeLimit: string, more: Json = {}): Json =>
    requesting("p", {}, { volumes: [{ name: "d", emptyDir: { sizeLimit, ...more } }] });
  const volume = (bytes: number): Json => stats("p", { volume: [{ name: "d", ...used(bytes) }] });

  test("evict for an emptyDir above its sizeLimit, in memory too; a limit of 0 is no limit", () => {
    expect(messages(decide([[emptyDir("512Mi"), volume(512 * Mi + 1)]]))).toEqual([
      'Usage of EmptyDir volume "d" exceeds the limit "512Mi". ',
    ]);
    expect(messages(decide([[emptyDir("0.5Gi", { medium: "Memory" }), volume(Gi)]]))).toEqual([
      'Usage of EmptyDir volume "d" exceeds the limit "512Mi". ',
    ]);
    expect(messages(decide([[emptyDir("512Mi"), volume(512 * Mi)]]))).toEqual([]);
    expect(messages(decide([[emptyDir("0"), volume(512 * Mi)]]))).toEqual([]);
  });
  test("count a container's logs, and its writable layer only when it is on nodefs", () => {
    const p = limited("p", { "ephemeral-storage": "1e9" });
    const s = stats("p", { containers: [{ name: "c", rootfs: used(999_999_999), logs: used(2) }] });
    expect(messages(decide([[p, s]]))).toEqual(['Container c exceeded its local ephemeral storage limit "1e9". ']);
    expect(messages(decide([[p, s]], { fileSystems: "dedicated" }))).toEqual([]);
  });
  test("of a pod are the sum of its containers' limits, compared with the pod's total usage", () => {
    const containers = [
      { name: "c", resources: { limits: { "ephemeral-storage": "1G" } } },
      { name: "d", resources: { limits: { "ephemeral-storage": "1Gi" } } },
      { name: "free" },
    ];
    const p = requesting("p", {}, { containers });
    expect(messages(decide([[p, stats("p", { "ephemeral-storage": used(2_073_741_825) })]]))).toEqual([
      "Pod ephemeral local storage usage exceeds the total limit of containers 2073741824. ",
    ]);
    expect(messages(decide([[p, stats("p", { "ephemeral-storage": used(2_073_741_824) })]]))).toEqual([]);
  });
  test("evict several pods in one pass, immediately, and end the pass", () => {
    const node = { fs: disk(Gi, START) };
    const over = (name: string): readonly [Json, Json] => [
      { ...limited(name, { "ephemeral-storage": "1Gi" }) },
      stats(name, { "ephemeral-storage": used(2 * Gi) }),
    ];
    const decided = decide([over("a"), over("b")], node, { evictionHard: { "nodefs.available": "10Gi" } });
    expect(victims(decided)).toEqual(["a", "b"]);
    expect(decided.decision.reclaim).toBeNull();
    expect(decided.decision.conditions.map((c) => c.type)).toEqual(["DiskPressure"]);
    expect(decided.decision.evicted[0]).toMatchObject({
      gracePeriodSeconds: 1,
      condition: null,
      annotations: {},
      cause: "pod-ephemeral-storage",
    });
  });
  test("spare critical pods, and thresholds are checked afterwards", () => {
    const critical = limited("crit", { "ephemeral-storage": "1Gi" }, { priority: 2_000_000_000 });
    const rest = [requesting("rest"), stats("rest", { containers: [] })] as const;
    const pods = [[critical, stats("crit", { "ephemeral-storage": used(2 * Gi) })], rest] as const;
    const decided = decide(pods, { fs: disk(Gi, START) }, { evictionHard: { "nodefs.available": "10Gi" } });
    expect(victims(decided)).toEqual(["rest"]);
  });
  test("are ignored without LocalStorageCapacityIsolation", () => {
    const p = limited("p", { "ephemeral-storage": "1Gi" });
    const pods = [[p, stats("p", { "ephemeral-storage": used(2 * Gi) })]] as const;
    expect(victims(decide(pods, {}, { localStorageCapacityIsolation: false }))).toEqual([]);
  });
});
