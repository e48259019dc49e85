import { describe, expect, test } from "vitest";
import { decideEviction } from "../../../api/decide/kinds/eviction.ts";
import { decodeEvictionAsk, type FileSystems, type ReclaimTakes } from "../../../api/model/eviction.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { requesting } from "../../kit/pods.ts";
import { podLabels, runtimeContainer, runtimeImage, runtimeSandbox, unixNanos } from "../../kit/runtime.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";
import { type Answer, codes, type Disk, disk, Gi, lowOn, Mi, START, underDisk, underMemory } from "./eviction-kit.ts";

const THRESHOLDS = { evictionHard: { "nodefs.available": "10%", "imagefs.available": "15%" } };

const MINUTE = 60_000;
const image = (name: string, size: number): Json => runtimeImage(`sha256:${name}`, { repoTags: [`${name}:1`], size });
const made = (id: string, of: string, imageName: string, state: string, agoMs: number): Json =>
  runtimeContainer(id, {
    podSandboxId: `sb-${of}`,
    image: { image: `sha256:${imageName}` },
    imageRef: `sha256:${imageName}`,
    state: `CONTAINER_${state}`,
    createdAt: unixNanos(START - agoMs),
    labels: podLabels(of),
  });
const sandbox = (of: string, state: string): Json =>
  runtimeSandbox(`sb-${of}`, of, { state: `SANDBOX_${state}`, createdAt: unixNanos(START - 9 * MINUTE) });
/**
 * `live` runs from the image `used`; `done` has ended, and only its container uses `held`; no container was created
 * from `free`.
 */
const RUNTIME = {
  images: [image("used", 10 * Mi), image("held", 20 * Mi), image("free", 40 * Mi)],
  containers: [made("run", "live", "used", "RUNNING", 9 * MINUTE), made("end", "done", "held", "EXITED", 8 * MINUTE)],
  sandboxes: [sandbox("live", "READY"), sandbox("done", "NOTREADY")],
  podLogDirectories: [],
  danglingLogLinks: [],
};
const LIVE = requesting("live");
const DONE = { ...requesting("done"), status: { phase: "Succeeded" } };
const PODS = [LIVE, DONE].map((p) => [p, { podRef: { name: "x", uid: "none" } }] as const);

/** An earlier pass detected both images, which were not used since. */
const IMAGE_FACTS = {
  atMs: START - MINUTE,
  beganAtMs: START - 60 * MINUTE,
  failed: false,
  records: ["used", "held", "free"].map((n) => [`sha256:${n}`, START - 60 * MINUTE, null]),
  removed: [],
};
function answer(snapshot: Json, imageFacts: unknown = IMAGE_FACTS): Answer {
  const ask = decodeEvictionAsk({ images: imageFacts });
  if (!ask.ok) throw new Error(ask.error.map((i) => i.path).join());
  const result = decideEviction({
    snapshot: effectiveSnapshot(decoded(snapshot)),
    facts: {},
    ask: ask.value,
    explain: "full",
  });
  if (!result.ok) throw new Error(`refused: ${result.error.message}`);
  return result.value;
}
const decide = (layout: FileSystems, low: Disk, more: Json = { runtime: RUNTIME }, imageFacts?: unknown): Answer =>
  answer({ ...underDisk(THRESHOLDS, lowOn(layout, low), PODS), ...more }, imageFacts);
const takes = ({ decision }: Answer): ReclaimTakes | null | undefined => decision.reclaim?.takes;
const idsOf = (list: readonly { readonly id: string }[] | undefined): readonly string[] | undefined =>
  list?.map((r) => r.id);

describe("the plan of what node-level reclaim would remove", () => {
  test.each<[FileSystems, Disk]>([
    ["one", "nodefs"],
    ["one", "imagefs"],
    ["dedicated", "imagefs"],
  ])("with layout %s and %s low: containers of ended pods, then the images that only they used", (layout, lowOne) => {
    const reported = takes(decide(layout, lowOne));
    expect(idsOf(reported?.containers?.remove)).toEqual(["end", "sb-done"]);
    expect(reported?.containers?.remove[0]?.why).toBe("pod-terminated");
    expect([...(idsOf(reported?.images?.remove) ?? [])].sort()).toEqual(["sha256:free", "sha256:held"]);
    expect(reported?.images?.freedBytes).toBe(60 * Mi);
    expect(reported?.images?.keep.map((k) => [k.id, k.why])).toEqual([["sha256:used", "in-use"]]);
    expect([reported?.containers?.operation, reported?.images?.operation]).toEqual(["delete-unused", "delete-unused"]);
  });
  test("with layout split and nodefs low: containers only", () => {
    const reported = takes(decide("split", "nodefs"));
    expect(idsOf(reported?.containers?.remove)).toEqual(["end", "sb-done"]);
    expect(reported?.images).toBeNull();
  });
  test("with layout split and imagefs low: images only, without those that ended containers use", () => {
    const reported = takes(decide("split", "imagefs"));
    expect(reported?.containers).toBeNull();
    expect(idsOf(reported?.images?.remove)).toEqual(["sha256:free"]);
    expect(reported?.images?.freedBytes).toBe(40 * Mi);
  });
  test("with layout dedicated and nodefs low: nothing", () => {
    const decided = decide("dedicated", "nodefs");
    expect(decided.decision.reclaim?.nodeLevel).toEqual([]);
    expect(takes(decided)).toBeNull();
    expect(decided.needs).not.toContain("runtime");
  });
  test("for memory: nothing, whatever the runtime holds", () => {
    const config = { evictionHard: { "memory.available": "1Gi" } };
    const decided = answer({ ...underMemory(config, Gi / 2, START, PODS), runtime: RUNTIME });
    expect(decided.decision.reclaim?.resource).toBe("memory");
    expect(takes(decided)).toBeNull();
    expect(decided.needs).not.toContain("runtime");
  });
  test("without a threshold that is met there is no reclaim in the decision", () => {
    const calm = { fs: disk(50 * Gi, START), runtime: { imageFs: disk(50 * Gi, START) }, fileSystems: "one" };
    const decided = answer({ ...underDisk(THRESHOLDS, calm, PODS), runtime: RUNTIME });
    expect(decided.decision.reclaim).toBeNull();
  });
});

describe("the plan of node-level reclaim from incomplete input", () => {
  test("is null without the runtime's lists, which are in needs", () => {
    const decided = decide("one", "nodefs", {});
    expect(takes(decided)).toBeNull();
    expect(decided.needs).toContain("runtime");
  });
  test("is null where the posted lists do not suffice, with the reason reclaim_not_told", () => {
    const { images: _, ...noImages } = RUNTIME;
    const decided = decide("one", "nodefs", { runtime: noImages });
    expect(takes(decided)?.images).toBeNull();
    expect(idsOf(takes(decided)?.containers?.remove)).toEqual(["end", "sb-done"]);
    expect(codes(decided)).toContain("reclaim_not_told");
    expect(decided.needs).toContain("runtime.images");
    const { sandboxes: __, ...noSandboxes } = RUNTIME;
    expect(takes(decide("one", "nodefs", { runtime: noSandboxes }))?.containers).toBeNull();
  });
  test("removes no image that no earlier pass has seen", () => {
    const reported = takes(decide("one", "nodefs", { runtime: RUNTIME }, null));
    expect(reported?.images?.remove).toEqual([]);
    expect(reported?.images?.keep).toHaveLength(3);
  });
  test("is refused for unreadable image records, with their path in the ask", () => {
    const asked = decodeEvictionAsk({ images: { ...IMAGE_FACTS, atMs: "now" } });
    expect(asked.ok ? [] : asked.error.map((i) => i.path)).toEqual(["ask.images.atMs"]);
  });
  test("is null for flags that no kubelet starts with, with the kubelet's message in the reason", () => {
    const decided = decide("one", "nodefs", { runtime: RUNTIME, kubelet: { minimumContainerTTLMs: -1000 } });
    const said = decided.reasons.find((r) => r.at === "delete-unused-containers")?.because;
    expect(said?.[0]?.numbers).toEqual({
      code: "invalid_configuration",
      message: "invalid minimum garbage collection age: -1s",
    });
    expect(takes(decided)?.containers).toBeNull();
  });
});

test("the plan of node-level reclaim does not change which pods are evicted", () => {
  const [withLists, without] = [decide("one", "nodefs"), decide("one", "nodefs", {})];
  expect(withLists.decision.evicted).toEqual(without.decision.evicted);
  expect(withLists.decision.reclaim?.afterNodeLevel).toBe("unknown");
  expect(withLists.verdict).toBe(without.verdict);
});
