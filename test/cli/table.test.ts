import { describe, expect, test } from "vitest";
import { bar } from "../../api/cli/bar.ts";
import { humanBytes, magnitude } from "../../api/cli/size.ts";
import { clip, clipStart, colorPaint, plainPaint, printable, widthOf } from "../../api/cli/style.ts";
import { table } from "../../api/cli/table.ts";
import { columnsOf, isColorful } from "../../api/cli/terminal.ts";
import { treeLines } from "../../api/cli/tree.ts";

const COLUMNS = [
  { title: "NAME", shrinkTo: 6 },
  { title: "SIZE", align: "right" },
  { title: "NOTE", giveUp: 1 },
  { title: "MORE", giveUp: 2 },
] as const;
const ROWS = [
  { cells: ["a-long-name", "12", "first", "x"], notes: ["  below"] },
  { cells: ["b", "1234", { text: "second", color: "red" }, ""] },
] as const;
const drawn = (columns: number, paint = plainPaint) => table(COLUMNS, ROWS, columns, paint);

describe("a table", () => {
  test("has aligned columns, no trailing spaces, and notes below their row", () => {
    expect(drawn(80)).toBe(
      [
        "NAME         SIZE  NOTE    MORE",
        "a-long-name    12  first   x",
        "  below",
        "b            1234  second",
        "",
      ].join("\n"),
    );
  });

  test("gives up columns in their order, then shrinks, as the terminal gets narrower", () => {
    expect(drawn(30).split("\n")[0]).toBe("NAME         SIZE  MORE");
    expect(drawn(20).split("\n")[0]).toBe("NAME         SIZE");
    expect(drawn(12)).toBe("NAME    SIZE\na-lon…    12\n  below\nb       1234\n");
    expect(drawn(3)).toBe(drawn(12));
  });

  test("leaves a column out that has nothing in any row", () => {
    expect(table(COLUMNS, [{ cells: ["a", "", "", ""] }], 80, plainPaint)).toBe("NAME\na\n");
  });

  test("is as wide with colours as without", () => {
    const esc = String.fromCharCode(27);
    const colored = drawn(80, colorPaint);
    expect(colored).toContain(`${esc}[31msecond${esc}[39m`);
    expect(colored.split("\n").map(widthOf)).toEqual(drawn(80).split("\n").map(widthOf));
  });
});

describe("texts", () => {
  test("what could steer a terminal shows as a question mark", () => {
    expect(printable("a\u001b[31mb\u0007\r\n\u202ec\u2028d")).toBe("a?[31mb????c?d");
    expect(printable("pod-1.ü→│")).toBe("pod-1.ü→│");
  });

  test("are cut at the end or at the start", () => {
    expect([clip("abcdef", 4), clip("abcd", 4), clipStart("abcdef", 4), clipStart("abcd", 4)]).toEqual([
      "abc…",
      "abcd",
      "…def",
      "abcd",
    ]);
  });

  test("sizes have at most one decimal and never say 1024 of a unit", () => {
    const sizes = [0, 1, 1023, 1024, 1536, 1024 ** 2 - 1, 512 * 1024 ** 2, 25276510208, 2 ** 62].map(humanBytes);
    expect(sizes).toEqual(["0 B", "1 B", "1023 B", "1 KiB", "1.5 KiB", "1 MiB", "512 MiB", "23.5 GiB", "4 EiB"]);
  });

  test("a quantity's magnitude is in whole units, whatever its notation", () => {
    expect(["1800m", "1Ki", "100n", "9P", "", "x", undefined].map(magnitude)).toEqual([1.8, 1024, 1e-7, 9e15, 0, 0, 0]);
  });
});

describe("a bar", () => {
  const cells = (sizes: readonly number[], width: number): readonly number[] => {
    const counted: number[] = [];
    bar(
      sizes.map((size) => ({ size, draw: (n) => String(counted.push(n)) })),
      width,
    );
    return counted;
  };

  test("fills its width exactly and shows every part that is there, for all small divisions", () => {
    let seen = 0;
    for (let a = 0; a <= 30; a++) {
      for (let b = 0; b <= 30; b++) {
        for (let c = 0; c <= 30; c++) {
          if (a + b + c === 0) continue;
          const drawn = cells([a, b, c], 24);
          expect(drawn.reduce((x, y) => x + y, 0)).toBe(24);
          expect(drawn.map((n) => n > 0)).toEqual([a > 0, b > 0, c > 0]);
          seen++;
        }
      }
    }
    expect(seen).toBe(31 ** 3 - 1);
  });

  test("divides by size, and keeps a cell for what is tiny", () => {
    expect(cells([90, 5, 5], 20)).toEqual([18, 1, 1]);
    expect(cells([1_000_000, 1, 0], 10)).toEqual([9, 1, 0]);
    expect(cells([-5, 10], 10)).toEqual([0, 10]);
  });

  test("is empty when nothing has a size", () => {
    expect(bar([{ size: 0, draw: () => "x" }], 10)).toBe("");
  });
});

test("a tree draws every item below its parent, and items without one as roots", () => {
  const paths = ["/k", "/k/b", "/k/b/p1", "/k/b/p1/c", "/k/b/p2", "/k/g", "/other/x"];
  const lines = treeLines(
    paths,
    (p) => p,
    (p) => p.slice(0, p.lastIndexOf("/")),
  );
  expect(lines.map(({ branch, item }) => branch + item.slice(item.lastIndexOf("/")))).toEqual([
    "/k",
    "├─ /b",
    "│  ├─ /p1",
    "│  │  └─ /c",
    "│  └─ /p2",
    "└─ /g",
    "/x",
  ]);
  const below = lines.map((line) => line.below);
  expect(below).toEqual(["│  ", "│  │  ", "│  │  │  ", "│  │        ", "│        ", "      ", "   "]);
});

describe("the terminal", () => {
  test("colours only a terminal, and never against NO_COLOR or a dumb one", () => {
    expect(isColorful({}, true)).toBe(true);
    expect(isColorful({ NO_COLOR: "" }, true)).toBe(true);
    expect(isColorful({ NO_COLOR: "1" }, true)).toBe(false);
    expect(isColorful({ TERM: "dumb" }, true)).toBe(false);
    expect(isColorful({}, false)).toBe(false);
  });

  test("is as wide as COLUMNS says, else as itself, else without bound", () => {
    expect(columnsOf({ COLUMNS: "70" }, 100)).toBe(70);
    expect(columnsOf({ COLUMNS: "x" }, 100)).toBe(100);
    expect(columnsOf({}, undefined)).toBe(Number.POSITIVE_INFINITY);
    expect(columnsOf({}, 0)).toBe(Number.POSITIVE_INFINITY);
  });
});
