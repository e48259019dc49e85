import { expect, test } from "vitest";
import { progressLine, progressOn } from "../../api/cli/replay/progress.ts";

const counts = { replayed: 41_234, same: 41_114, differs: 100, refused: 20, gone: 0, unreadable: 0, decisions: 0 };
const at = "2026-01-31T12:00:00.000Z";

test.each([
  [200, `${"█".repeat(10)}${"░".repeat(14)}   42 %  41,234 decisions, 120 others, 5,154/s  at ${at}`],
  [80, `${"█".repeat(10)}${"░".repeat(14)}   42 %  41,234 decisions, 120 others, 5,154/s`],
  [59, " 42 %  41,234 decisions, 120 others, 5,154/s"],
  [20, " 42 %"],
])("on %i columns the progress line shows what fits", (columns, line) => {
  expect(progressLine(0.42, at, counts, 8, columns)).toBe(line);
});

test("the progress line is redrawn on a terminal, removed once, and never printed elsewhere", () => {
  const drawn: string[] = [];
  const write = (text: string) => drawn.push(text);
  let now = 0;
  const screen = progressOn({ isTTY: true, columns: 20, write }, () => now);
  screen.clear();
  now = 1000;
  screen.show({ progress: 0.5, reachedAt: at }, counts);
  screen.show({ progress: 1, reachedAt: null }, counts);
  screen.clear();
  screen.clear();
  expect(drawn).toEqual(["\r\u001b[K 50 %", "\r\u001b[K100 %", "\r\u001b[K"]);
  const file = progressOn({ write }, () => now);
  file.show({ progress: 0.5, reachedAt: at }, counts);
  file.clear();
  expect(drawn).toHaveLength(3);
});
