import { expect, test } from "vitest";
import type { Store } from "../../db/store.ts";
import {
  cameBack,
  containerPass,
  containerRemoval,
  idsOf,
  imageRemoval,
  pass,
  recordPass,
  rowsOf,
  timeOf,
} from "./removal-rows.ts";
import { decisionRow, fresh, T0, value } from "./store-rows.ts";

export function removals(of: () => Store): void {
  test("a removal is read back as it was recorded, with its decision", async () => {
    const node = fresh("node");
    const image = imageRemoval("sha256:aa", {
      runtimeHandler: "kata",
      names: ['a"\\/ü:1', "b@sha256:1"],
      sizeBytes: 9007199254740991,
      why: "too-old",
      end: "failed",
      message: "rpc error: é\n",
    });
    const dead = containerRemoval("c1");
    const logs = containerRemoval("shop_web-0_u-web", {
      target: "pod-logs",
      why: "pod-removed",
      pod: null,
      container: null,
    });
    const one = await recordPass(of(), node, pass(T0, [image], { operation: "delete-unused" }));
    const two = await recordPass(of(), node, containerPass(T0 + 1, [dead, logs]));
    const about = {
      operation: "garbage-collect",
      kind: "container-gc",
      atMs: T0 + 1,
      decisionId: two.id,
      againAtMs: null,
    };
    expect(await rowsOf(of(), { node })).toEqual([
      { ...logs, ...about },
      { ...dead, ...about },
      { ...image, operation: "delete-unused", kind: "image-gc", atMs: T0, decisionId: one.id, againAtMs: null },
    ]);
  });

  test("a pass reported in rounds has one row per removal, updated until it is `removed`, and old answers change nothing", async () => {
    const node = fresh("node");
    const of1 = pass(T0, [imageRemoval("a"), imageRemoval("b", { end: "failed", message: "busy" })]);
    const first = decisionRow({ node, kind: "image-gc" });
    value(await of().record({ decision: first, removals: of1 }));
    const second = await recordPass(
      of(),
      node,
      pass(T0, [imageRemoval("a"), imageRemoval("b"), imageRemoval("c", { end: "stopped", message: "in use" })]),
    );
    const reportOf = async () =>
      (await rowsOf(of(), { node })).map(({ id, end, message, decisionId }) => [id, end, message, decisionId]);
    const expected = [
      ["c", "stopped", "in use", second.id],
      ["b", "removed", null, second.id],
      ["a", "removed", null, first.id],
    ];
    expect(await reportOf()).toEqual(expected);
    value(await of().record({ decision: first, removals: of1 }));
    await recordPass(of(), node, of1);
    expect(await reportOf()).toEqual(expected);
    const key = { key: fresh("key"), scope: "s", requestHash: "h" };
    await recordPass(of(), node, pass(T0, [imageRemoval("d")]), { idempotency: key });
    await recordPass(of(), node, pass(T0, [imageRemoval("e")]), { idempotency: key });
    expect((await idsOf(of(), { node })).sort()).toEqual(["a", "b", "c", "d"]);
  });

  test("the same id has its own row per pass, target, runtime handler and node", async () => {
    const [node, other] = [fresh("node"), fresh("node")];
    const twins = [imageRemoval("x"), imageRemoval("x", { runtimeHandler: "kata" }), containerRemoval("x")];
    await recordPass(of(), node, pass(T0, twins));
    await recordPass(of(), node, pass(T0 + 1, twins));
    await recordPass(of(), other, pass(T0, twins));
    expect(await idsOf(of(), { node })).toHaveLength(6);
    expect(await idsOf(of(), { node: other })).toHaveLength(3);
  });
}

export function returns(of: () => Store): void {
  test("a returned image is noted on its last removal before, once, and on no other row", async () => {
    const node = fresh("node");
    const [kata, failed] = [{ runtimeHandler: "kata" }, { end: "failed" as const }];
    await recordPass(of(), node, pass(timeOf(0), [imageRemoval("a"), imageRemoval("a", kata), containerRemoval("a")]));
    await recordPass(of(), node, pass(timeOf(5), [imageRemoval("a"), imageRemoval("b")]));
    await recordPass(of(), node, pass(timeOf(6), [imageRemoval("a", failed), containerRemoval("a")]));
    // The pass that detects the image again also removes it again, and is recorded twice.
    const back = { returns: [cameBack("a", timeOf(10)), cameBack("never-removed", timeOf(10))] };
    await recordPass(of(), node, pass(timeOf(10), [], back));
    await recordPass(of(), node, pass(timeOf(10), [imageRemoval("a")], back));
    await recordPass(of(), node, pass(timeOf(10), [imageRemoval("a"), imageRemoval("b", failed)], back));
    await recordPass(of(), node, pass(timeOf(20), [], { returns: [cameBack("a", timeOf(20), "kata")] }));
    const marked = (await rowsOf(of(), { node })).filter(({ againAtMs }) => againAtMs !== null);
    expect(
      marked.map(({ id, runtimeHandler, target, atMs, againAtMs }) => [id, runtimeHandler, target, atMs, againAtMs]),
    ).toEqual([
      ["a", "", "image", timeOf(5), timeOf(10)],
      ["a", "kata", "image", timeOf(0), timeOf(20)],
    ]);
    for (const at of [timeOf(30), timeOf(40)])
      await recordPass(of(), node, pass(at, [], { returns: [cameBack("a", at)] }));
    const last = (await rowsOf(of(), { node, end: "removed" })).find(({ atMs }) => atMs === timeOf(10));
    expect(last).toMatchObject({ id: "a", againAtMs: timeOf(30) });
  });
}
