import { describe, expect, test } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { answer, disk, facts, Gi, gcNode, HOUR, image, iso, kept, MINUTE, Mi, next, START } from "./image-gc-kit.ts";

const ids = ["a", "b", "c", "d"];
const records = facts(ids.map((id, i) => [id, -HOUR, (i - 9) * MINUTE]));
/** A pass that must free 200 MiB: two of four images. */
const wanting = (more: Json = {}) =>
  gcNode(
    ids.map((id) => image(id)),
    {
      stats: disk(20 * Gi - 200 * Mi, 100 * Gi),
      kubeletConfiguration: { imageGCHighThresholdPercent: 80, imageMinimumGCAge: "0s" },
      ...more,
    },
  );
const removed = (id: string) => ({ id, end: "removed" });
const failed = (id: string, message?: string) => ({ id, end: "failed", message });
const reportOf = (done: Json[], input = wanting(), before: unknown = records, ask: Json = {}) =>
  answer(input, before, { done, ...ask });
const ends = (a: ReturnType<typeof reportOf>) => a.decision.remove.map((r) => [r.id, r.end]);

describe("an image GC pass with reported removals", () => {
  test("continues with further images when a removal fails, and reports the failure", () => {
    const a = reportOf([failed("a", "it is locked"), removed("b")]);
    expect(ends(a)).toEqual([
      ["a", "failed"],
      ["b", "removed"],
      ["c", "planned"],
    ]);
    expect(a.decision.remove[0]?.message).toBe("it is locked");
    expect(a.decision.freedBytes).toBe(200 * Mi);
    // enough is freed, and the pass still fails
    expect(a.decision.error).toBe(
      "wanted to free 209715200 bytes, but freed 209715200 bytes space with errors in image deletion: it is locked",
    );
    expect([a.decision.events, a.verdict, kept(a)]).toEqual([[], "fails", { d: "not-needed" }]);
  });
  test.each([
    [["x"], "x"],
    [["x", "y"], "[x, y]"],
    [["x", "x"], "x"],
    [["x", "y", "x", "a, b"], "[x, y, a, b]"],
    [[undefined], "unknown error"],
  ])("joins several errors like Kubernetes: %j", (messages, text) => {
    const done = messages.map((message, i) => failed(ids[i] as string, message));
    expect(reportOf(done).decision.error?.replace(/^.*deletion: /, "")).toBe(text);
  });
  test("ends at a stopped removal and plans nothing further", () => {
    const a = reportOf([removed("a"), { id: "b", end: "stopped", message: "it is in use" }]);
    expect(ends(a)).toEqual([
      ["a", "removed"],
      ["b", "stopped"],
    ]);
    expect(kept(a)).toEqual({ c: "not-reached", d: "not-reached" });
    expect([a.decision.error, a.decision.events, a.verdict]).toEqual([null, [], "removes"]);
    expect(reportOf([{ id: "a", end: "stopped" }]).verdict).toBe("keeps");
  });
  test("keeps unreported removals as planned", () => {
    expect(ends(reportOf([removed("a")]))).toEqual([
      ["a", "removed"],
      ["b", "planned"],
    ]);
    expect(ends(reportOf([]))).toEqual([
      ["a", "planned"],
      ["b", "planned"],
    ]);
  });
  test("counts reported removals that no rule planned", () => {
    const a = reportOf([removed("a"), removed("b"), removed("d")]);
    expect(ends(a)).toEqual([
      ["a", "removed"],
      ["b", "removed"],
      ["d", "removed"],
    ]);
    expect(kept(a)).toEqual({ c: "not-needed" });
    expect(next(a).records.map((r) => r[0])).toEqual(["c"]);
  });
  test("reports too little freed space from the removals that succeeded", () => {
    const a = reportOf(ids.map((id) => (id === "a" ? removed(id) : failed(id, "x"))));
    expect(a.decision.error).toBe(
      "wanted to free 209715200 bytes, but freed 104857600 bytes space with errors in image deletion: x",
    );
    expect(a.decision.events).toEqual([]);
  });
  test("of delete-unused reports the kubelet's maximum as the wanted bytes", () => {
    const a = reportOf([failed("a", "x")], wanting(), records, { operation: "delete-unused" });
    expect(a.decision.error).toBe(
      "wanted to free 9223372036854775807 bytes, but freed 314572800 bytes space with errors in image deletion: x",
    );
    expect(ends(a)).toHaveLength(4);
  });
  test("adds sizes like the kubelet's int64: exact beyond 2^53, wrapping beyond 2^63", () => {
    const huge = (n: number) => gcNode(Array.from({ length: n }, (_, i) => image(`i${i}`, { size: 2 ** 53 - 1 })));
    const freed = (n: number): string | undefined => {
      const { error } = reportOf([failed("i0", "x")], huge(n), undefined, { operation: "delete-unused" }).decision;
      return /but freed (-?\d+) bytes/.exec(error ?? "")?.[1];
    };
    expect(freed(4)).toBe("27021597764222973");
    expect(freed(1025)).toBe(String(2n ** 63n - 1024n));
    expect(freed(1026)).toBe(String(-(2n ** 63n) - 1024n + 2n ** 53n - 1n));
  });
});

describe("an image over the maximum age that could not be removed", () => {
  const aged = wanting({ kubeletConfiguration: { imageMaximumGCAge: "8m30s", imageMinimumGCAge: "0s" } });
  test("ends the pass before disk usage is checked", () => {
    const a = reportOf([failed("a", "x")], aged);
    expect(a.decision).toMatchObject({
      error: "wanted to free images older than 8m30s, encountered errors in image deletion: x",
      fileSystem: null,
      events: [],
    });
    expect(ends(a)).toEqual([["a", "failed"]]);
    expect(kept(a)).toEqual({ b: "not-reached", c: "not-reached", d: "not-reached" });
  });
  test("ends the pass when its removal was stopped, too", () => {
    const longer = wanting({ kubeletConfiguration: { imageMaximumGCAge: "6m30s", imageMinimumGCAge: "0s" } });
    const a = reportOf([removed("a"), { id: "b", end: "stopped" }], longer);
    expect(kept(a)).toEqual({ c: "not-reached", d: "not-reached" });
    expect([a.decision.error, a.decision.fileSystem]).toEqual([null, null]);
  });
});

describe("the ImageGCFailed event", () => {
  const all = ids.map((id) => failed(id, "x"));
  const passAt = (a: ReturnType<typeof reportOf>, minutes: number, done: Json[], ask: Json = {}) =>
    reportOf(done, wanting({ observedAt: iso(START + minutes * MINUTE) }), a.next, ask);
  const names = (a: ReturnType<typeof reportOf>) => a.decision.events.map((e) => e.reason);

  test("comes with the second failure in a row, not with the first or after a success", () => {
    const first = reportOf(all);
    expect([names(first), next(first).failed]).toEqual([[], true]);
    const second = passAt(first, 5, all);
    expect(second.decision.events).toEqual([
      { type: "Warning", reason: "ImageGCFailed", message: second.decision.error },
    ]);
    const third = passAt(second, 10, [removed("a"), removed("b")]);
    expect([names(third), next(third).failed]).toEqual([[], false]);
    expect(names(passAt(third, 15, all))).toEqual([]);
  });
  test("does not come from plans, partial passes, delete-unused or stopped passes", () => {
    const first = reportOf(all);
    const cases = [
      answer(wanting(), facts([], { ...records, failed: true })),
      reportOf([removed("a")], wanting(), { ...records, failed: true }),
      reportOf([removed("a"), { id: "b", end: "stopped" }], wanting(), { ...records, failed: true }),
      reportOf(
        [removed("a"), removed("b"), removed("c"), removed("d")],
        wanting(),
        { ...records, failed: true },
        { operation: "delete-unused" },
      ),
    ];
    for (const a of cases) expect(next(a).failed).toBe(true);
    const noDisk = answer(wanting({ stats: disk(0, 0) }), records);
    expect([noDisk.decision.error === null, next(noDisk).failed]).toEqual([false, false]);
    expect(next(reportOf([], wanting({ stats: disk(0, 0) }))).failed).toBe(true);
    expect(next(reportOf([failed("a", "x")])).failed).toBe(false);
    expect(next(reportOf(all, wanting(), records, { operation: "delete-unused" })).failed).toBe(false);
    expect(names(passAt(first, 5, all, { operation: "delete-unused" }))).toEqual([]);
  });
});

describe("a planned image GC pass", () => {
  test("leaves the remembered records unchanged", () => {
    const a = answer(wanting(), records);
    expect(next(a)).toEqual({ ...records, atMs: START });
    expect(next(reportOf([removed("a"), removed("b")])).records.map((r) => r[0])).toEqual(["c", "d"]);
  });
  test("gives the same result when its removals are reported one by one or at once", () => {
    const done = [removed("a"), failed("b", "x"), removed("c")];
    const atOnce = reportOf(done);
    let before: unknown = answer(wanting(), records).next;
    for (let i = 0; i <= done.length; i++) {
      const step = reportOf(done.slice(0, i), wanting(), before);
      before = step.next;
      if (i === done.length) expect(step.decision).toEqual(atOnce.decision);
    }
    expect(before).toEqual(atOnce.next);
  });
});
