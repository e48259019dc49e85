import { describe, expect, test } from "vitest";
import { gcLines, removalLine, settledLine, spaceLine } from "../../api/cli/gc/pass.ts";
import { plainPaint } from "../../api/text/style.ts";

const TERMINAL = { columns: Number.POSITIVE_INFINITY, paint: plainPaint, write() {}, warn() {} };

describe("the lines printed while a garbage collection runs", () => {
  const removal = {
    kind: "image-gc",
    target: "image",
    id: "sha256:a",
    name: "a:1",
    bytes: 1536,
    why: "space",
  } as const;

  test("are one per removal, with its result and message", () => {
    expect(removalLine({ ...removal, end: "removed" }, TERMINAL)).toBe("removed  image a:1 (1.5 KiB), space\n");
    expect(removalLine({ ...removal, bytes: null, end: "stopped", message: "pinned\u001b[0m" }, TERMINAL)).toBe(
      "stopped  image a:1, space: pinned␛[0m\n",
    );
  });

  test("are one per collection, with removed of planned and the error", () => {
    const report = {
      at: "2026-01-01T00:00:00Z",
      kind: "image-gc",
      operation: "garbage-collect",
      dryRun: false,
      answer: { decision: { remove: [1, 2, 3], error: null } },
      removals: [
        { ...removal, end: "removed" },
        { ...removal, end: "stopped" },
      ],
    };
    const lineOf = (over: object = {}, ran: readonly string[] = []) =>
      gcLines({ collections: [{ ...report, ...over }], reclaim: { ran } } as unknown as Parameters<typeof gcLines>[0]);
    expect(lineOf()).toEqual(["2026-01-01T00:00:00Z image-gc: 1 of 3 removed (1.5 KiB)"]);
    expect(lineOf({ answer: null })).toEqual(["2026-01-01T00:00:00Z image-gc: nothing decided"]);
    const failing = { answer: { decision: { remove: [1], error: "no room" } } };
    expect(
      lineOf({ ...failing, dryRun: true, operation: "delete-unused", removals: [] }, ["delete-unused-images"]),
    ).toEqual([
      "eviction reclaims on this node: delete-unused-images",
      "2026-01-01T00:00:00Z image-gc (delete-unused): 1 removal planned, none done; no room",
    ]);
  });

  test("state the disk usage before and after, even if it rose, and nothing that was not measured", () => {
    const space = (availableBytes: number, capacityBytes = 4096) => ({ capacityBytes, availableBytes });
    expect(spaceLine({ before: space(1024), after: space(3072) })).toBe(
      "image file system: 75 % used before, 25 % after: 2 KiB more available (3 KiB)\n",
    );
    expect(spaceLine({ before: space(3072), after: space(1024) })).toContain(": 2 KiB less available (1 KiB)");
    expect(spaceLine({ before: space(0, 0), after: space(0, 0) })).toContain("? used before, ? after");
    expect([spaceLine({ before: null, after: space(1) }), spaceLine({ before: space(1), after: null })]).toEqual([
      "",
      "",
    ]);
  });

  test("state an interrupted pass by its reported ends and what is left", () => {
    const settled = { kind: "container-gc", done: [{ id: "a", end: "removed" }], left: ["b", "c"] };
    expect(settledLine(settled as unknown as Parameters<typeof settledLine>[0])).toBe(
      "container-gc: a pass was interrupted: 1 end reported now, 2 still there and not tried again yet",
    );
  });
});
