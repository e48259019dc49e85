import { describe, expect, test } from "vitest";
import {
  CONTAINER_GC_TARGETS,
  CONTAINER_GC_WHY,
  CONTAINER_KEEP_WHY,
  type ContainerGcDecision,
  type ContainerKept,
  type ContainerRemoval,
} from "../../api/model/container-gc.ts";
import type { DecisionOf, Verdict } from "../../api/model/decision.ts";
import { IMAGE_KEEP_WHY, IMAGE_REMOVE_WHY, type ImageGcDecision } from "../../api/model/image-gc.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { plainPaint } from "../../api/text/style.ts";
import { answerText } from "../../api/text/tables/index.ts";
import { CONTAINERS, IMAGES, keptImage, NOW, removedImage } from "./gc-decisions.ts";

const TERMINAL = { columns: Number.POSITIVE_INFINITY, paint: plainPaint, write() {}, warn() {} };

function linesOf<K extends "image-gc" | "container-gc">(
  kind: K,
  decision: DecisionOf[K],
  verdict: Verdict = "removes",
) {
  const decided = { decision, verdict, reasons: [], needs: [] };
  const { policyVersion } = NEWEST;
  const text = answerText({ kind, node: "n1", policyVersion, decided, explain: "full", observedAtMs: NOW }, TERMINAL);
  return text.split("\n").slice(1);
}
/** The cells of the matching rows; two or more blanks separate cells. */
const cellsOf = (lines: readonly string[], row: RegExp) =>
  lines.filter((line) => row.test(line)).map((line) => line.trim().split(/ {2,}/));

const imageGc = (over: Partial<ImageGcDecision>): ImageGcDecision => ({ ...IMAGES, pulledAgain: [], ...over });
const containerGc = (over: Partial<ContainerGcDecision>): ContainerGcDecision => ({ ...CONTAINERS, ...over });
const [FIRST] = CONTAINERS.remove as readonly [ContainerRemoval];
const [KEPT] = CONTAINERS.keep as readonly [ContainerKept];

describe("the column WHY", () => {
  test("states for each removed image why", () => {
    const remove = IMAGE_REMOVE_WHY.map((why, i) => removedImage(i + 1, why, { why }));
    const rows = cellsOf(linesOf("image-gc", imageGc({ remove, keep: [] })), /^\d {2}localhost/);
    expect(Object.fromEntries(rows.map((cells) => [cells[1], cells.at(-1)]))).toEqual({
      "localhost/too-old:1": "not used for too long",
      "localhost/space:1": "for space",
      "localhost/unused:1": "unused",
    });
  });

  test("states for each kept image why", () => {
    const keep = IMAGE_KEEP_WHY.map((why) => keptImage(why, why));
    const rows = cellsOf(linesOf("image-gc", imageGc({ remove: [], keep }), "keeps"), /^ *localhost/);
    expect(Object.fromEntries(rows.map((cells) => [cells[0], cells.at(-1)]))).toEqual({
      "localhost/in-use:1": "in use",
      "localhost/image-volume:1": "mounted as a volume",
      "localhost/pinned:1": "pinned",
      "localhost/sandbox-image:1": "sandboxes start from it",
      "localhost/invalid-id:1": "its id is not valid, so it cannot be removed",
      "localhost/used-now:1": "used right now",
      "localhost/too-young:1": "too young",
      "localhost/enough-space:1": "no space has to be freed",
      "localhost/not-needed:1": "the images removed before it free enough",
      "localhost/not-reached:1": "the pass ended before it was reached",
    });
  });

  test("names one user of an image, and that there are others", () => {
    const keep = [
      keptImage("one", "in-use", { usedBy: ["shop/web c (running)"] }),
      keptImage("two", "image-volume", { usedBy: ["shop/web c (exited)", "shop/db c (running)"] }),
    ];
    const rows = cellsOf(linesOf("image-gc", imageGc({ remove: [], keep }), "keeps"), /^ *localhost/);
    expect(rows.map((cells) => cells.at(-1))).toEqual([
      "in use by shop/web c (running)",
      "mounted as a volume by shop/web c (exited) and others",
    ]);
  });

  test("states for each removed container why", () => {
    const remove = CONTAINER_GC_WHY.map((why, i) => ({ ...FIRST, place: i + 1, name: why, why }));
    const rows = cellsOf(linesOf("container-gc", containerGc({ remove, keep: [] })), /^\d {2}container/);
    expect(Object.fromEntries(rows.map((cells) => [cells[2], cells.at(-1)]))).toEqual({
      "default/web pod-removed #1": "its pod is gone",
      "default/web pod-terminated #1": "its pod has ended",
      "default/web per-container-limit #1": "over the limit per container",
      "default/web total-limit #1": "over the limit in all",
      "default/web older-sandbox #1": "an older sandbox",
      "default/web dangling #1": "its file is gone",
    });
  });

  test("states for each kept container why", () => {
    const keep = CONTAINER_KEEP_WHY.map((why) => ({ ...KEPT, id: why, name: why, why }));
    const rows = cellsOf(linesOf("container-gc", containerGc({ remove: [], keep }), "keeps"), /^container/);
    expect(Object.fromEntries(rows.map((cells) => [cells[1], cells.at(-1)]))).toEqual({
      "default/web running #3": "running",
      "default/web too-young #3": "too young",
      "default/web within-limits #3": "dead, within the limits",
      "default/web sandbox-ready #3": "ready",
      "default/web sandbox-has-containers #3": "holds containers",
      "default/web newest-sandbox #3": "newest of its pod",
      "default/web pod-exists #3": "its pod exists",
      "default/web sources-not-ready #3": "not all sources of pods have reported",
      "default/web container-not-exited #3": "its container has not exited",
      "default/web not-pod-logs #3": "its name is not that of a pod",
      "default/web not-reached #3": "the pass ended before it was reached",
    });
  });

  test("is filled for every kind of target", () => {
    const remove = CONTAINER_GC_TARGETS.map((target, i) => ({ ...FIRST, place: i + 1, id: `${target}-id`, target }));
    const rows = cellsOf(linesOf("container-gc", containerGc({ remove, keep: [] })), /^\d {2}/);
    expect(rows.map((cells) => [cells[1], cells.at(-1)])).toEqual([
      ["container", "over the limit per container"],
      ["sandbox", "over the limit per container"],
      ["pod's logs", "over the limit per container"],
      ["log link", "over the limit per container"],
    ]);
  });
});

describe("a collection that ended early", () => {
  const stopped = { end: "stopped", message: "it is pinned now" } as const;

  test("before any image was removed says STOPPED with the reason, and counts nothing as freed", () => {
    const keep = [keptImage("b", "not-reached")];
    const lines = linesOf(
      "image-gc",
      imageGc({ remove: [removedImage(1, "a", stopped)], keep, freedBytes: 0, freedOnceBytes: 0 }),
      "keeps",
    );
    expect(lines[0]).toBe("STOPPED  no image was removed");
    expect(lines).toContain("freed 0 B as the kubelet counts, 0 B with shared layers counted once");
    const at = lines.findIndex((line) => /^1 {2}localhost\/a:1 .* for space {2}stopped$/.test(line));
    expect(lines[at + 1]).toBe("  it is pinned now");
    expect(cellsOf(lines, /localhost\/b:1/)[0]?.at(-1)).toBe("the pass ended before it was reached");
  });

  test("after some removals counts those, but not the one where it stopped", () => {
    const remove = [removedImage(1, "a", { end: "removed" }), removedImage(2, "b", stopped)];
    expect(linesOf("image-gc", imageGc({ remove }))[0]).toBe("REMOVES  1 image, 10 MiB");
    const failed = linesOf("image-gc", imageGc({ remove, error: "wanted to free 1 bytes" }), "fails");
    expect(failed[0]).toBe("FAILS  wanted to free 1 bytes");
  });

  test("before any container was removed says STOPPED", () => {
    const lines = linesOf("container-gc", containerGc({ remove: [{ ...FIRST, ...stopped }] }), "keeps");
    expect(lines[0]).toBe("STOPPED  nothing was removed");
    const at = lines.findIndex((line) => /^1 {2}container .* over the limit per container {2}stopped$/.test(line));
    expect(lines[at + 1]).toBe("  it is pinned now");
  });

  test("after some containers were removed counts those", () => {
    const remove = [
      { ...FIRST, end: "removed" as const },
      { ...FIRST, place: 2, ...stopped },
    ];
    expect(linesOf("container-gc", containerGc({ remove }))[0]).toBe("REMOVES  1 container");
    expect(linesOf("container-gc", containerGc({ remove: remove.slice(0, 1) }))[0]).toBe("REMOVED  1 container");
  });
});
