import { expect, test } from "vitest";
import { fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import type { ContainerGcDecision } from "../../api/model/container-gc.ts";
import { asker } from "./api-gc.ts";
import { answer, fresh, get, type Of, post, problemOf } from "./api-subject.ts";
import { diskSnapshot, idOf, localImage, START } from "./gc-snapshots.ts";

const UNREACHED =
  'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix"';

/** Passes in which the runtime returned an error instead of its lists. */
export function collectionsUnlisted(of: Of): void {
  const { ask, images } = asker(of);
  /** A node as it is posted in that case: without the runtime's lists and without stats of its disk. */
  const blindAt = (node: string, seconds: number) => {
    const { runtime: _lists, stats: _disk, ...snapshot } = diskSnapshot(node, seconds, []);
    return snapshot;
  };
  const failed = { done: [], error: UNREACHED };
  const event = (reason: string) => ({ type: "Warning", reason, message: UNREACHED });
  const replayed = async (id: string | null) =>
    (await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer)).same;

  test("a failed image-gc pass has the runtime's error, ImageGCFailed from the second in a row, and keeps ages", async () => {
    const node = fresh("node");
    await images(diskSnapshot(node, 0, [localImage("a")], 900), { done: [] });
    const first = await images(blindAt(node, 30), failed);
    expect(first).toMatchObject({ verdict: "fails", recorded: true, next: { failed: true } });
    expect(first.decision).toMatchObject({ remove: [], keep: [], error: UNREACHED, events: [], fileSystem: null });
    const second = await images(blindAt(node, 60), failed);
    expect(second.decision).toMatchObject({ remove: [], error: UNREACHED, events: [event("ImageGCFailed")] });
    expect(second.next.records.find(([id]) => id === idOf("a"))?.[1]).toBe(START);
    expect(await replayed(second.id)).toBe(true);
    const kept = await answer(await get(of(), `/v1/decisions/${second.id}`), fullDecision);
    expect(kept).toMatchObject({ verdict: "fails", decision: second.decision });
    const back = await images(diskSnapshot(node, 90, [localImage("a")], 100), { done: [] });
    expect(back.decision.remove).toMatchObject([{ id: idOf("a"), firstDetectedAtMs: START }]);
  });

  test("a failed container-gc pass has the event ContainerGCFailed at once", async () => {
    const { decision, verdict, id } = await ask("container-gc", { snapshot: blindAt(fresh("node"), 0), ask: failed });
    expect(verdict).toBe("fails");
    expect(decision as unknown as ContainerGcDecision).toMatchObject({
      remove: [],
      keep: [],
      error: UNREACHED,
      events: [event("ContainerGCFailed")],
    });
    expect(await replayed(id)).toBe(true);
  });

  test.each(["image-gc", "container-gc"] as const)(
    "a failed %s pass for the eviction manager has no event",
    async (kind) => {
      const unused = { ...failed, operation: "delete-unused" };
      const node = fresh("node");
      for (const seconds of [0, 30]) {
        const { decision, verdict } = await ask(kind, { snapshot: blindAt(node, seconds), ask: unused });
        expect([verdict, decision]).toMatchObject(["fails", { remove: [], error: UNREACHED, events: [] }]);
      }
    },
  );

  test.each(["image-gc", "container-gc"] as const)(
    "%s without lists and without an error needs the lists",
    async (kind) => {
      const response = await post(of(), `/v1/decisions/${kind}`, { snapshot: blindAt(fresh("node"), 0) });
      expect((await problemOf(response, "needs_input")).needs).toContain("runtime.containers");
    },
  );

  test.each([
    ["no text", 7],
    ["longer than a text may be", "x".repeat(4097)],
  ])("an error that is %s is a 400 with its path", async (_, error) => {
    const body = { snapshot: blindAt(fresh("node"), 0), ask: { error } };
    const problem = await problemOf(await post(of(), "/v1/decisions/image-gc", body), "invalid_input");
    expect(problem.issues?.map(({ path }) => path)).toEqual(["ask.error"]);
  });
}
