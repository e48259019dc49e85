import { expect, test } from "vitest";
import { screenOf } from "../../api/cli/inputs/daemon-status.ts";
import { usageBar } from "../../api/cli/pods/top.ts";
import { plainPaint } from "../../api/text/style.ts";

test("a screen replaces the last one line by line, and is cut to the terminal's height", () => {
  expect(screenOf("a\nb\n", 24)).toBe("\u001b[Ha\u001b[K\nb\u001b[K\n\u001b[J");
  const long = screenOf("1\n2\n3\n4\n5\n", 4);
  expect(long).toBe("\u001b[H1\u001b[K\n2\u001b[K\n… 3 more lines\u001b[K\n\u001b[J");
});

test.each([
  [50, null, 100, "████████········"],
  [50, 25, 100, "████╎███········"],
  [50, 75, 100, "████████····╎···"],
  [500, 99, 100, "███████████████╎"],
  [1, null, 1000, "█···············"],
  [0, null, 1000, "················"],
  [50, 100, 100, "████████········"],
  [50, 200, null, "████············"],
  [50, null, null, ""],
  [null, 10, 20, ""],
  [50, 0, null, ""],
])("the usage bar of %s used, request %s, limit %s: %s", (used, request, limit, drawn) => {
  expect(usageBar(used, request, limit, plainPaint)).toBe(drawn);
});

test("the colour of a usage bar depends on the share of the limit", () => {
  const colors: string[] = [];
  for (const used of [69, 70, 90])
    usageBar(used, null, 100, (color, text) => {
      colors.push(color);
      return text;
    });
  expect(colors.filter((color) => color !== "dim")).toEqual(["green", "yellow", "red"]);
});
