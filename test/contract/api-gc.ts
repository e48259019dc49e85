import { expect, test } from "vitest";
import { decisionAnswer, fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import type { ContainerGcDecision } from "../../api/model/container-gc.ts";
import type { Kind } from "../../api/model/decision.ts";
import type { EvictionAsk, EvictionDecision } from "../../api/model/eviction.ts";
import type { ImageGcDecision, ImageGcFacts } from "../../api/model/image-gc.ts";
import { answer, fresh, get, type Of, post } from "./api-subject.ts";
import { capturedSnapshot } from "./captured.ts";
import {
  diskSnapshot,
  idOf,
  localImage,
  MI,
  nanosAt,
  START,
  timeAt,
  webContainer,
  webSandbox,
} from "./gc-snapshots.ts";

export function asker(of: Of) {
  const ask = async (kind: Kind, body: object) =>
    answer(await post(of(), `/v1/decisions/${kind}`, body), decisionAnswer);
  const images = async (snapshot: object, asked?: object) => {
    const answered = await ask("image-gc", { snapshot, ...(asked === undefined ? {} : { ask: asked }) });
    const decision = answered.decision as unknown as ImageGcDecision;
    return { ...answered, decision, next: answered.next as ImageGcFacts };
  };
  return { ask, images };
}
const names = (list: readonly { readonly names: readonly string[] }[]) => list.map((one) => one.names[0]);

/** Facts about images that are remembered from pass to pass. */
export function imagePasses(of: Of): void {
  const { images } = asker(of);

  test("first detection is remembered over passes, so an image becomes old enough; each pass replays the same", async () => {
    const node = fresh("node");
    const first = await images(diskSnapshot(node, 0, [localImage("a")]), { done: [] });
    expect(first).toMatchObject({ verdict: "fails", recorded: true });
    expect(first.decision.remove).toEqual([]);
    expect(first.decision.keep.find(({ id }) => id === idOf("a"))).toMatchObject({
      why: "too-young",
      firstDetectedAtMs: START,
      oldEnoughAtMs: START + 60_000,
    });
    const second = await images(diskSnapshot(node, 30, [localImage("a"), localImage("b")]));
    expect(second.decision.remove).toEqual([]);
    const third = await images(diskSnapshot(node, 61, [localImage("a"), localImage("b")]));
    expect(third.decision.remove).toMatchObject([
      { id: idOf("a"), firstDetectedAtMs: START, why: "space", end: "planned" },
    ]);
    expect(third.decision.keep.find(({ id }) => id === idOf("b"))).toMatchObject({ firstDetectedAtMs: START + 30_000 });
    // as in a kubelet, the second failure in a row is an event; the planned removals between do not reset the count
    expect(third.decision.events.map(({ reason }) => reason)).toEqual(["FreeDiskSpaceFailed", "ImageGCFailed"]);
    for (const { id, decision } of [first, second, third]) {
      const full = await answer(await get(of(), `/v1/decisions/${id}`), fullDecision);
      expect(full.decision).toEqual(decision);
      const replayed = await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer);
      expect(replayed.same, JSON.stringify(replayed.differences)).toBe(true);
    }
  });

  test("a repeated plan is the same decision, and its images stay until they are reported removed", async () => {
    const node = fresh("node");
    const old = [localImage("a"), localImage("b")];
    await images(diskSnapshot(node, 0, old, 900));
    const plan = await images(diskSnapshot(node, 100, old, 100));
    expect(names(plan.decision.remove)).toEqual(["localhost/a:1"]);
    expect(plan.next.removed).toEqual([]);
    expect(await images(diskSnapshot(node, 100, old, 100))).toEqual(plan);
    const again = await images(diskSnapshot(node, 101, old, 100));
    expect(names(again.decision.remove)).toEqual(["localhost/a:1"]);
  });
}

/** Reports of the removals that were carried out. */
export function imagesRemoved(of: Of): void {
  const { images } = asker(of);

  test("a reported removal drops the image's record, and is listed with its cost when pulled again", async () => {
    const node = fresh("node");
    const old = [localImage("a"), localImage("b")];
    await images(diskSnapshot(node, 0, old, 900));
    await images(diskSnapshot(node, 100, old, 100));
    const done = await images(diskSnapshot(node, 100, old, 100), { done: [{ id: idOf("a"), end: "removed" }] });
    expect(done.decision).toMatchObject({
      remove: [{ id: idOf("a"), end: "removed" }],
      freedBytes: 100 * MI,
      error: null,
    });
    expect(done.next.records.map(([id]) => id)).not.toContain(idOf("a"));
    expect(done.next.removed).toMatchObject([{ id: idOf("a"), times: 1, again: 0, away: true, atMs: START + 100_000 }]);
    const gone = await images(diskSnapshot(node, 110, [localImage("b")], 200));
    expect(gone.decision.pulledAgain).toEqual([]);
    const back = await images(diskSnapshot(node, 120, old, 100));
    expect(back.decision.pulledAgain).toEqual([
      {
        id: idOf("a"),
        runtimeHandler: "",
        names: ["localhost/a:1"],
        sizeBytes: 100 * MI,
        removedAtMs: START + 100_000,
        againAtMs: START + 120_000,
        times: 1,
        again: 1,
      },
    ]);
    expect(back.decision.keep.find(({ id }) => id === idOf("a"))).toMatchObject({ firstDetectedAtMs: START + 120_000 });
    expect((await images(diskSnapshot(node, 130, old, 100))).decision.pulledAgain).toEqual([]);
  });

  test("a failed removal gives the kubelet's error, and the image's record stays", async () => {
    const node = fresh("node");
    await images(diskSnapshot(node, 0, [localImage("a")], 900));
    const failed = await images(diskSnapshot(node, 100, [localImage("a")], 100), {
      done: [{ id: idOf("a"), end: "failed", message: "conflict" }],
    });
    expect(failed).toMatchObject({ verdict: "fails", decision: { remove: [{ end: "failed", message: "conflict" }] } });
    expect(failed.decision.error).toMatch(/^wanted to free 104857600 bytes, but freed 0 bytes space .*conflict$/);
    expect(failed.next.records.find(([id]) => id === idOf("a"))?.[1]).toBe(START);
  });
}

export function containerPasses(of: Of): void {
  const { ask, images } = asker(of);

  test("containers over the limit are removed, under pressure those of ended pods too, which frees their images", async () => {
    const node = fresh("node");
    const base = diskSnapshot(node, 0, [], 100);
    const dead = [0, 1, 2].map((attempt) =>
      webContainer(`app-${attempt}`, "CONTAINER_EXITED", {
        metadata: { name: "app", attempt },
        createdAt: nanosAt(attempt - 300),
      }),
    );
    const runtime = { ...base.runtime, containers: dead, sandboxes: [{ ...webSandbox, state: "SANDBOX_NOTREADY" }] };
    const pods = [{ ...base.pods[0], status: { phase: "Succeeded" } }];
    const containers = async (operation?: string) => {
      const body = { snapshot: { ...base, runtime, pods }, ...(operation === undefined ? {} : { ask: { operation } }) };
      const answered = await ask("container-gc", body);
      return { ...answered, decision: answered.decision as unknown as ContainerGcDecision };
    };
    const calm = await containers();
    expect(calm).toMatchObject({ verdict: "removes", next: null });
    expect(calm.decision.remove.map(({ id, why }) => [id, why])).toEqual([
      ["c-app-0", "per-container-limit"],
      ["c-app-1", "per-container-limit"],
    ]);
    const pressed = await containers("delete-unused");
    expect(pressed.decision.remove.map(({ id, why }) => [id, why])).toEqual([
      ["c-app-0", "pod-terminated"],
      ["c-app-1", "pod-terminated"],
      ["c-app-2", "pod-terminated"],
      ["s-web", "pod-terminated"],
    ]);
    const later = { ...base, runtime, pods, observedAt: timeAt(100) };
    await images({ ...base, runtime, pods });
    const held = await images(later, { operation: "delete-unused" });
    expect(held.decision.keep.find(({ id }) => id === idOf("web"))?.why).toBe("in-use");
    const freed = await images(
      { ...later, observedAt: timeAt(200) },
      { operation: "delete-unused", afterContainerGc: true },
    );
    expect(names(freed.decision.remove)).toEqual(["localhost/web:1"]);
  });
}

/** A daemon that remembers more about its node's images than the history. */
export function imagesToldAnew(of: Of): void {
  const { images } = asker(of);

  test("facts of the caller that reach back further replace those of the history", async () => {
    const node = fresh("node");
    const at = (seconds: number) => diskSnapshot(node, seconds, [localImage("old")]);
    const seenAt = ({ next }: { next: unknown }): unknown =>
      (next as ImageGcFacts).records.find(([id]) => id === idOf("old"))?.[1];
    const first = await images(at(0));
    expect(seenAt(first)).toBe(START);
    const facts = { ...(first.next as ImageGcFacts), beganAtMs: START - 3_600_000 };
    const records = facts.records.map(([id, , used]) => [id, START - 3_600_000, used]);
    expect(seenAt(await images(at(10)))).toBe(START);
    expect(seenAt(await images(at(10), { facts: { ...facts, records } }))).toBe(START - 3_600_000);
    const { next: reported } = await images(at(20));
    expect(seenAt({ next: reported })).toBe(START - 3_600_000);
    // the same holds for a request that reports how the same pass ended
    const done = [{ id: idOf("old"), end: "removed" }];
    await images(at(60), { facts: reported });
    await images(at(60), { facts: reported, done });
    const back = await images(at(80));
    expect(back.decision.pulledAgain).toMatchObject([{ id: idOf("old"), times: 1, again: 1 }]);
    expect(seenAt(back)).toBe(START + 80_000);
  });

  test("facts of the caller that know less than the history are not adopted", async () => {
    const node = fresh("node");
    const at = (seconds: number) => diskSnapshot(node, seconds, [localImage("old")]);
    const seenAt = ({ next }: { next: unknown }): unknown =>
      (next as ImageGcFacts).records.find(([id]) => id === idOf("old"))?.[1];
    const first = await images(at(0));
    const facts = first.next as ImageGcFacts;
    const records = facts.records.map(([id, , used]) => [id, START - 3_600_000, used]);
    await images(at(10), { facts: { ...facts, beganAtMs: START - 3_600_000, records } });
    // facts that are older than the stored ones do not replace them
    await images(at(30), { facts: first.next });
    expect(seenAt(await images(at(40)))).toBe(START - 3_600_000);
  });
}

/** Images and containers that an eviction's node-level reclaim would remove. */
export function reclaimPasses(of: Of): void {
  const { ask } = asker(of);

  test("eviction with the runtime's lists includes what node-level reclaim would remove", async () => {
    const evictionHard = { "imagefs.available": "60%", "nodefs.available": "60%" };
    const kubeletConfiguration = { evictionHard, imageMinimumGCAge: "0s" };
    const { runtime } = capturedSnapshot() as { runtime: { images: { images: object[] } } };
    const images = [...runtime.images.images, localImage("old")];
    const snapshot = capturedSnapshot({ kubeletConfiguration, runtime: { ...runtime, images } });
    const { decision, id } = await ask("eviction", { snapshot });
    expect(decision).toMatchObject({
      reclaim: {
        nodeLevel: ["delete-unused-containers", "delete-unused-images"],
        takes: {
          containers: { operation: "delete-unused", remove: [] },
          images: { operation: "delete-unused", remove: [{ id: idOf("old"), why: "unused" }], freedBytes: 100 * MI },
        },
      },
    });
    const replayed = await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer);
    expect(replayed.same).toBe(true);
    const { decision: blind } = await ask("eviction", {
      snapshot: capturedSnapshot({ kubeletConfiguration, runtime: null }),
    });
    expect(blind).toMatchObject({ reclaim: { takes: null } });
  });

  test("eviction uses the image facts of the history, and records them only if it needed them", async () => {
    const node = fresh("node");
    const imageFs = { capacityBytes: 1000 * MI, availableBytes: 300 * MI };
    const passAt = (seconds: number, hard: string) => ({
      ...diskSnapshot(node, seconds, [localImage("old")], 300),
      bootId: `boot-${seconds}`,
      kubeletConfiguration: { imageMinimumGCAge: "1m", evictionHard: { "nodefs.available": hard } },
      stats: { node: { fs: { ...imageFs, time: timeAt(seconds) }, runtime: { imageFs } } },
    });
    const taken = async (seconds: number, hard = "50%") => {
      const { decision, id } = await ask("eviction", { snapshot: passAt(seconds, hard) });
      const { reclaim } = decision as unknown as EvictionDecision;
      const kept = await answer(await get(of(), `/v1/decisions/${id}`), fullDecision);
      const replayed = await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer);
      expect(replayed.same).toBe(true);
      const goes = reclaim?.takes?.images?.remove.map((r) => r.id) ?? null;
      return { goes, records: (kept.ask as EvictionAsk).images?.records.length ?? null };
    };
    expect(await taken(-10)).toEqual({ goes: [], records: null });
    await ask("image-gc", { snapshot: passAt(0, "50%") });
    expect(await taken(30)).toEqual({ goes: [], records: 3 });
    // also after a reboot, since images survive it
    expect(await taken(90)).toEqual({ goes: [idOf("old")], records: 3 });
    expect(await taken(120, "5%")).toEqual({ goes: null, records: null });
  });
}
