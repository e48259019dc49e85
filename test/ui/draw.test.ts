import { expect, test } from "vitest";
import { lane, stackBar } from "../../api/ui/draw/bars.ts";
import { cellGrid, ownerMark } from "../../api/ui/draw/cell-grid.ts";
import { jsonBlock, plot } from "../../api/ui/draw/plot.ts";

const numbers = (html: unknown, attribute: string): readonly number[] =>
  [...String(html).matchAll(new RegExp(`\\s${attribute}="(-?[\\d.]+)"`, "g"))].map((m) => Number(m[1]));
const part = (size: number, tone = "c0") => ({ size, tone, words: `${size}` });

test("a stacked bar's parts have the width of their shares, with a minimum", () => {
  expect(numbers(stackBar([part(1), part(3)], "w"), "width")).toEqual([250, 750]);
  const [tiny = 0, rest = 0] = numbers(stackBar([part(1), part(1e12), part(0)], "w"), "width");
  expect(tiny).toBeGreaterThan(3);
  expect(tiny + rest).toBeCloseTo(1000, 0);
  expect(numbers(stackBar([part(1), part(1), part(2)], "w"), "x")).toEqual([0, 250, 500]);
});

test("a stacked bar of nothing or invalid sizes is not drawn", () => {
  for (const sizes of [[], [0], [-1, 0], [Number.NaN], [Number.POSITIVE_INFINITY]])
    expect(
      stackBar(
        sizes.map((size) => part(size)),
        "w",
      ),
    ).toBe("");
});

test("marks on a bar are at their share, and stay inside", () => {
  const bar = String(
    stackBar(
      [part(1)],
      "w",
      [0.85, 2, -1].map((at) => ({ at, words: "m" })),
    ),
  );
  expect([...bar.matchAll(/d="M([\d.]+) /g)].map((m) => m[1])).toEqual(["850.0", "1000.0", "0.0"]);
});

test("cells are drawn in stacks, with at most so many in a row", () => {
  const cell = (name: string) => ({ name, mark: "A", tone: "c1", words: `<${name}>` });
  const stacks = Array.from({ length: 10 }, (_, i) => [cell(`${i}`), cell(`${i + 100}`)]);
  const drawn = String(cellGrid(stacks, "w", 8));
  const places = [...drawn.matchAll(/translate\((\d+) (\d+)\)/g)].map((m) => [Number(m[1]), Number(m[2])]);
  expect(places).toHaveLength(20);
  expect(places[1]).toEqual([places[0]?.[0], (places[0]?.[1] ?? 0) + 28]);
  expect(places[16]?.[0]).toBe(places[0]?.[0]);
  expect(new Set(places.map(String)).size).toBe(20);
  const [width = 0] = numbers(drawn, "width");
  expect(Math.max(...places.map(([x = 0]) => x)) + 34).toBeLessThanOrEqual(width);
  expect(drawn).toContain("<title>&lt;109&gt;</title>");
  expect(cellGrid([], "w")).toBe("");
});

test("owners get unique letters, never the system's, and eight colours in turn", () => {
  expect([0, 7, 8, 17, 24, 25, 649, 650].map(ownerMark)).toEqual([
    { mark: "A", tone: "c0" },
    { mark: "H", tone: "c7" },
    { mark: "I", tone: "c0" },
    { mark: "S", tone: "c1" },
    { mark: "Z", tone: "c0" },
    { mark: "AA", tone: "c1" },
    { mark: "ZZ", tone: "c1" },
    { mark: "AAA", tone: "c2" },
  ]);
  const marks = Array.from({ length: 4096 }, (_, i) => ownerMark(i).mark);
  expect(new Set(marks).size).toBe(marks.length);
  expect(marks).not.toContain("R");
});

const drawnPlot = (points: readonly (readonly [number, number])[], limit = 5) =>
  String(
    plot({
      points,
      limits: [{ value: limit, words: "hard 5", soft: false }],
      words: "w",
      amount: (n) => `${n}`,
      isBytes: false,
    }),
  );
const curveOf = (html: string): readonly number[] =>
  [...(/class="curve" d="([^"]*)"/.exec(html)?.[1] ?? "").matchAll(/[\d.]+/g)].map(Number);

test("a curve is drawn from left to right with higher values above, and the limit in between", () => {
  const html = drawnPlot([
    [0, 10],
    [60_000, 0],
  ]);
  const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = curveOf(html);
  expect(x0).toBeLessThan(x1);
  expect(y0).toBeLessThan(y1);
  const limit = Number(/class="limit" d="M\d+ ([\d.]+)/.exec(html)?.[1]);
  expect(limit).toBeCloseTo((y0 + y1) / 2, 1);
  expect(html).toContain(">00:00</text>");
  expect(html).toContain(">00:01 UTC</text>");
});

test("a limit above all values is inside the plot; one point is drawn, none is not", () => {
  const html = drawnPlot([[0, 1]], 99);
  expect(Number(/class="limit" d="M\d+ ([\d.]+)/.exec(html)?.[1])).toBeGreaterThan(0);
  expect(html).toContain(">100</text>");
  expect(curveOf(html).every(Number.isFinite)).toBe(true);
  expect(drawnPlot([])).toBe("");
});

test("JSON in a script block cannot end the block", () => {
  const text = String(jsonBlock({ a: "</script><b>" }));
  expect(text.match(/</g)).toHaveLength(2);
  expect(JSON.parse(text.slice(text.indexOf(">") + 1, text.lastIndexOf("<")))).toEqual({ a: "</script><b>" });
});

test("the parts of a lane are at their times, and moments have a minimum width", () => {
  const at = (fromMs: number, toMs: number | null) => ({ fromMs, toMs, tone: "good", height: 0.5 });
  const drawn = lane([at(0, 500), at(500, null), at(1000, null)], 1000, "w");
  expect(numbers(drawn, "x")).toEqual([0, 500, 997]);
  expect(numbers(drawn, "width")).toEqual([500, 3, 3]);
  expect(numbers(drawn, "y")).toEqual([8, 8, 8]);
});
