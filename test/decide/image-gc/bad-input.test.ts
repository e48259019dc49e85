import { describe, expect, test } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import {
  answer,
  attempt,
  containerFrom,
  facts,
  gcNode,
  HOUR,
  image,
  kept,
  Mi,
  next,
  reasons,
  refusal,
  removedIds,
} from "./image-gc-kit.ts";

const UNUSED = { operation: "delete-unused" };

describe("incomplete image GC input", () => {
  test.each<[string, Json, string[]]>([
    ["the time", { observedAt: undefined }, ["observedAt"]],
    ["the runtime", { runtime: undefined }, ["runtime.images", "runtime.containers"]],
    ["the containers", { runtime: { images: [] } }, ["runtime.containers"]],
    ["the images", { runtime: { containers: [] } }, ["runtime.images"]],
    ["the file system", { stats: { node: {} } }, ["stats.node.runtime.imageFs"]],
  ])("without %s is refused by name", (_name, more, needs) => {
    const message = `an image collection needs ${needs.join(", ")}`;
    expect(refusal(gcNode([image("a")], more))).toEqual({ code: "needs_input", message, needs });
  });
  test("without file system stats suffices for delete-unused, or when the ask has them", () => {
    const bare = gcNode([image("a")], { stats: undefined });
    expect(removedIds(answer(bare, undefined, UNUSED))).toEqual(["a"]);
    const fileSystem = { capacityBytes: 100, availableBytes: 0 };
    expect(removedIds(answer(bare, undefined, { fileSystem }))).toEqual(["a"]);
  });
  test("is accepted without any image on the node", () => {
    const a = answer(gcNode([]), undefined, UNUSED);
    expect([a.decision.remove, a.decision.keep, a.verdict]).toEqual([[], [], "keeps"]);
  });
  test("with malformed facts is refused with their paths", () => {
    const broken = { ...facts([]), records: [["a", -1, null]], removed: 3 };
    const { code, message } = refusal(gcNode([]), broken);
    expect(code).toBe("invalid_state");
    expect(message).toContain('facts["image-gc"].records[0][1]: ');
    expect(message).toContain('facts["image-gc"].removed: ');
  });
});

describe("odd lists of images and containers", () => {
  test("an image without a size counts as 0 bytes and is in needs", () => {
    const a = answer(
      gcNode([image("a"), image("b", { size: undefined }), image("c", { size: undefined })]),
      undefined,
      UNUSED,
    );
    expect(a.decision.remove.map((r) => r.sizeBytes)).toEqual([100 * Mi, 0, 0]);
    expect(a.needs).toEqual(["runtime.images[1].size"]);
    expect(reasons(a).filter((r) => r.startsWith("image_size_not_told"))).toEqual([
      "image_size_not_told b",
      "image_size_not_told c",
    ]);
  });
  test("an image id listed twice is one image with the last size, pinned if either is", () => {
    const twice = (pinned: boolean) =>
      answer(
        gcNode([
          image("a", { size: 1, repoTags: ["x:1"], pinned }),
          image("b"),
          image("a", { size: 2, repoTags: ["y:1", "x:1"] }),
        ]),
        undefined,
        UNUSED,
      );
    expect(twice(false).decision.remove.map((r) => [r.id, r.sizeBytes, r.names])).toEqual([
      ["a", 2, ["x:1", "y:1"]],
      ["b", 100 * Mi, []],
    ]);
    expect(kept(twice(true))).toEqual({ a: "pinned" });
    expect(reasons(twice(false))).toContain("image_listed_twice a");
    expect(next(twice(false)).records).toHaveLength(2);
  });
  test("an image without a name, or named <none>, is removed like any other", () => {
    const a = answer(
      gcNode([image("a"), image("b", { repoTags: ["<none>:<none>"], repoDigests: ["r@sha256:1"] })]),
      undefined,
      UNUSED,
    );
    expect(a.decision.remove.map((r) => r.names)).toEqual([[], ["r@sha256:1"]]);
  });
  test("a container whose image is not listed changes nothing and is reported once", () => {
    const containers = [containerFrom("gone"), containerFrom("gone", { id: "c2" }), containerFrom("a")];
    const a = answer(gcNode([image("a"), image("b")], {}, { containers }), undefined, UNUSED);
    expect([removedIds(a), kept(a)]).toEqual([["b"], { a: "in-use" }]);
    expect(a.reasons.find((r) => r.at === "gone")?.because).toEqual([
      { code: "container_image_not_listed", field: "inUse", numbers: { containers: 2 } },
    ]);
  });
  test("reported removals of images that are not listed change nothing", () => {
    const done = [
      { id: "gone", end: "removed" },
      { id: "a", end: "removed" },
    ];
    const a = answer(gcNode([image("a")]), undefined, { ...UNUSED, done });
    expect([removedIds(a), next(a).removed.map((r) => r.id)]).toEqual([["a"], ["a"]]);
  });
});

describe("the reasons of image GC", () => {
  const input = gcNode([image("a"), image("b")], {}, { containers: [containerFrom("b")] });
  const of = (explain: "off" | "reasons" | "full") => {
    const result = attempt(input, facts([["a", -HOUR, -1000]]), UNUSED, explain);
    if (!result.ok) throw new Error(result.error.message);
    return result.value;
  };
  test("explain each image's removal or keeping; there are more with full and none with off", () => {
    expect(of("off").reasons).toEqual([]);
    expect(of("reasons").reasons.filter((r) => r.at !== "image-gc")).toEqual([
      {
        at: "a",
        because: [
          { code: "image_unused", field: "remove", numbers: { place: 1, unusedMs: 1000, sizeBytes: 100 * Mi } },
        ],
      },
      { at: "b", because: [{ code: "image_in_use", field: "keep", numbers: { users: 1 } }] },
    ]);
    expect(reasons(of("full"))).toContain("image_remembered a");
    expect(of("off").decision).toEqual(of("full").decision);
  });
});
