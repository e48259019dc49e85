import { describe, expect, test } from "vitest";
import type { Done } from "../../api/model/container-gc.ts";
import type { ImageGcDecision, ImageRef } from "../../api/model/image-gc.ts";
import { type Answer, answer, attempt, next, START } from "../decide/image-gc/image-gc-kit.ts";
import type { Json } from "../kit/snapshots.ts";
import { type Draws, draws, Met, shuffled } from "./draws.ts";
import { type DrawnImages, drawnImages, inputOf } from "./random-images.ts";

const SEEDS = Array.from({ length: 400 }, (_, i) => i + 1);

const keyOf = (i: ImageRef): string => `${i.id},${i.runtimeHandler}`;
const rank = (i: ImageRef): readonly [number, number] => [i.lastUsedAtMs ?? -Infinity, i.firstDetectedAtMs];
const isGone = ({ end }: { readonly end: string }): boolean => end === "planned" || end === "removed";

function checkOrder({ remove, keep }: ImageGcDecision): void {
  const ordered = [...remove, ...keep.filter((k) => k.place !== null)].sort(
    (a, b) => Number(a.place) - Number(b.place),
  );
  expect(ordered.map((i) => i.place)).toEqual(ordered.map((_, i) => i + 1));
  for (const [i, image] of ordered.entries()) {
    const later = ordered[i + 1];
    if (later === undefined) continue;
    const [a, b] = [rank(image), rank(later)];
    const isBefore = a[0] < b[0] || (a[0] === b[0] && (a[1] < b[1] || (a[1] === b[1] && keyOf(image) < keyOf(later))));
    expect(isBefore, `${keyOf(image)} before ${keyOf(later)}`).toBe(true);
  }
  expect(remove.map((r) => r.place)).toEqual([...remove.map((r) => r.place)].sort((a, b) => a - b));
}

/** Carries a plan out; some removals fail, and the pass may stop at one. */
function carriedOut(
  n: DrawnImages,
  d: Draws,
  before: unknown,
): { readonly done: readonly Done[]; readonly last: Answer } {
  const done: Done[] = [];
  let last = answer(inputOf(n), before, { ...n.ask, done });
  for (;;) {
    const planned = last.decision.remove.find((r) => r.end === "planned");
    if (planned === undefined) return { done, last };
    const end = d.pick(["removed", "removed", "removed", "failed", "stopped"] as const);
    done.push({
      id: planned.id,
      runtimeHandler: planned.runtimeHandler,
      end,
      ...(end === "failed" && { message: d.pick(["x", "y"]) }),
    });
    last = answer(inputOf(n), last.next, { ...n.ask, done });
  }
}

describe("image GC of random nodes", () => {
  test("removes nothing in use, mounted, pinned or needed for sandboxes, and lists every image once", () => {
    const met = new Met();
    for (const seed of SEEDS) {
      const n = drawnImages(draws(seed));
      const { decision, next: remembered } = answer(inputOf(n), n.facts, n.ask);
      const byHandler = (n.config["featureGates"] as Json)["RuntimeClassInImageCriApi"] === true;
      const keys = new Set(n.images.map((i) => `${i["id"]},${byHandler ? (i["spec"] as Json)["runtimeHandler"] : ""}`));
      const messages = [...decision.remove, ...decision.keep].map(keyOf);
      expect(new Set(messages)).toEqual(keys);
      expect(messages).toHaveLength(keys.size);
      const mounted = n.containers.flatMap((c) =>
        (c["mounts"] as { image: { image: string } }[]).map((m) => m.image.image),
      );
      const sacred = new Set([
        ...mounted,
        n.sandboxImage,
        ...n.images.filter((i) => i["pinned"] === true).map((i) => i["id"]),
      ]);
      for (const r of decision.remove) {
        expect(sacred.has(r.id), r.id).toBe(false);
        const users = n.containers
          .filter((c) => c["imageId"] === r.id)
          .map((c) => (c["image"] as Json)["runtimeHandler"]);
        expect(byHandler ? users.includes(r.runtimeHandler) : users.length > 0, r.id).toBe(false);
        expect(r.lastUsedAtMs ?? 0).toBeLessThan(START);
        met.note(r.why);
        met.note("tie", r.tie);
      }
      for (const k of decision.keep) met.note(k.why);
      checkOrder(decision);
      expect((remembered as { records: unknown[] }).records).toHaveLength(keys.size);
    }
    expect(met.hardly(10)).toEqual([]);
    expect(Object.keys(met.counts).sort()).toEqual(
      "enough-space image-volume in-use not-needed not-reached pinned sandbox-image space tie too-old too-young unused used-now".split(
        " ",
      ),
    );
  });

  test("does not depend on the order of the lists, nor on how much is explained", () => {
    for (const seed of SEEDS) {
      const d = draws(seed);
      const n = drawnImages(d);
      const other = { ...n, images: shuffled(n.images, d), containers: shuffled(n.containers, d) };
      const a = answer(inputOf(n), n.facts, n.ask).decision;
      const b = answer(inputOf(other), n.facts, n.ask).decision;
      expect(b.remove).toEqual(a.remove);
      expect(new Set(b.keep.map((k) => `${keyOf(k)} ${k.why} ${k.place}`))).toEqual(
        new Set(a.keep.map((k) => `${keyOf(k)} ${k.why} ${k.place}`)),
      );
      const quiet = attempt(inputOf(n), n.facts, n.ask, "off");
      expect(quiet.ok && quiet.value.decision).toEqual(a);
    }
  });

  test("counts the bytes of a layer once, and the kubelet's bytes per image", () => {
    const met = new Met();
    for (const seed of SEEDS) {
      const d = draws(seed);
      const n = drawnImages(d);
      const { done, last } = carriedOut(n, d, n.facts);
      const { remove, keep, freedBytes, freedOnceBytes } = last.decision;
      const went = remove.filter(isGone);
      expect(freedBytes).toBe(went.filter((r) => r.why !== "too-old").reduce((sum, r) => sum + r.sizeBytes, 0));
      met.note(
        "failed",
        done.some((x) => x.end === "failed"),
      );
      met.note(
        "stopped",
        done.some((x) => x.end === "stopped"),
      );
      const layersOf = (list: readonly ImageRef[]): Set<string> =>
        new Set(
          n.images
            .filter((i) => list.some((r) => r.id === i["id"]))
            .flatMap((i) => (i["layers"] as { digest: string }[] | undefined)?.map((l) => l.digest) ?? []),
        );
      if (freedOnceBytes === null) continue;
      const stay = layersOf([...keep, ...remove.filter((r) => !isGone(r))]);
      const free = [...layersOf(went)].filter((l) => !stay.has(l));
      expect(freedOnceBytes).toBe(free.reduce((sum, l) => sum + Number(l.slice(1)) * 10, 0));
      expect(remove.reduce((sum, r) => sum + Number(r.exclusiveBytes), 0)).toBe(freedOnceBytes);
      met.note("shared", free.length > 0 && stay.size > 0);
    }
    expect(met.hardly(20)).toEqual([]);
  });

  test("has the same result when removals are reported one by one or at once, and forgets only removed images", () => {
    for (const seed of SEEDS) {
      const d = draws(seed);
      const n = drawnImages(d);
      const plan = answer(inputOf(n), n.facts, n.ask);
      const { done, last } = carriedOut(n, d, plan.next);
      const atOnce = answer(inputOf(n), n.facts, { ...n.ask, done });
      expect(last.decision).toEqual(atOnce.decision);
      expect(last.next).toEqual(atOnce.next);
      const went = new Set(done.filter((x) => x.end === "removed").map((x) => `${x.id},${x.runtimeHandler}`));
      const left = next(plan).records.filter(([id, , , handler]) => !went.has(`${id},${handler ?? ""}`));
      expect(next(last).records).toEqual(left);
      expect(next(last).removed.length).toBe(went.size);
    }
  });
});
