import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runtimeContainer } from "../../kit/runtime.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, kept, next } from "./asking.ts";

interface RealRun {
  readonly kubeletConfiguration: Json;
  readonly kubeletStart: string;
  readonly at: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly images: readonly { readonly id: string; readonly repoTags: readonly string[] }[];
  readonly containers: readonly { readonly container: string; readonly pod: string; readonly imageRef: string }[];
  readonly log: {
    readonly usage: number;
    readonly amountToFree: number;
    readonly removed: readonly { readonly id: string; readonly size: number }[];
  };
  readonly left: readonly string[];
}
const run = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../data/real-image-gc/partial.json"), "utf8"),
) as RealRun;
const idOf = (name: string): string => run.images.find((i) => i.repoTags[0] === `localhost/${name}:1`)?.id as string;

const using = (pods: readonly { pod: string; container: string; imageRef: string }[]) =>
  pods.map(({ pod, container, imageRef }) =>
    runtimeContainer(pod, {
      metadata: { name: container },
      imageRef,
      state: "CONTAINER_RUNNING",
      labels: { "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": pod },
    }),
  );
const at = (observedAt: string, images: readonly unknown[], containers: readonly unknown[]): Json => ({
  observedAt,
  pods: [],
  kubelet: { startedAt: run.kubeletStart },
  kubeletConfiguration: run.kubeletConfiguration,
  stats: {
    node: { runtime: { imageFs: { capacityBytes: run.capacityBytes, availableBytes: run.availableBytes } } },
  },
  runtime: { images, containers },
});
const userOf = (name: string) => ({ pod: name, container: "c", imageRef: idOf(name) });

/** The kubelet's passes as the capture describes them: at its start, with gc-d gone, and the one that it logged. */
function passes(): Answer {
  const atStart = run.images.filter((i) => i.id !== idOf("gc-f"));
  const first = answer(at(run.kubeletStart, atStart, using([...run.containers, userOf("gc-d"), userOf("gc-g")])));
  const later = new Date(Date.parse(run.kubeletStart) + 60_000).toISOString();
  const second = answer(at(later, atStart, using([...run.containers, userOf("gc-g")])), first.next);
  return answer(at(run.at, run.images, using(run.containers)), second.next);
}

describe("a collection of a real kubelet", () => {
  const real = passes();
  const { remove, fileSystem, freedBytes, error, events } = real.decision;
  const never = ["gc-a", "gc-b", "gc-c"].map(idOf);

  test("wants as many bytes", () => {
    expect(fileSystem).toMatchObject({ usagePercent: run.log.usage, wantedBytes: run.log.amountToFree });
    expect({ error, events, verdict: real.verdict }).toEqual({ error: null, events: [], verdict: "removes" });
  });
  test("removes the same images: three that are equal in any order, then the one used earlier", () => {
    const logged = run.log.removed.map((r) => r.id);
    expect(logged).toHaveLength(4);
    expect(remove.map((r) => r.id).sort()).toEqual([...logged].sort());
    expect(new Set(remove.slice(0, 3).map((r) => r.id))).toEqual(new Set(never));
    expect(remove.slice(0, 3).map((r) => r.id)).toEqual([...never].sort());
    expect(remove[3]?.id).toBe(logged[3]);
    expect(remove.map((r) => r.tie)).toEqual([true, true, true, false]);
    expect(freedBytes).toBe(run.log.removed.reduce((sum, r) => sum + r.size, 0));
  });
  test("keeps what was left, each for its reason", () => {
    expect(kept(real)).toEqual({
      [idOf("gc-g")]: "not-needed",
      [idOf("gc-f")]: "too-young",
      [idOf("busybox")]: "in-use",
      [idOf("gc-e")]: "in-use",
      [idOf("pause")]: "pinned",
    });
    expect(Object.keys(kept(real)).sort()).toEqual([...run.left].sort());
    const e = real.decision.keep.find((k) => k.id === idOf("gc-e"));
    expect(e).toMatchObject({ usedBy: ["default/imge c (running)"], names: ["localhost/gc-e:1"], place: null });
  });
  test("all unused that is old enough would go for eviction, what was imported just now would not", () => {
    const asked = answer(at(run.at, run.images, using(run.containers)), next(real), { operation: "delete-unused" });
    expect(kept(asked)[idOf("gc-f")]).toBe("too-young");
    expect(asked.decision.remove.map((r) => r.id)).toContain(idOf("gc-g"));
  });
});
