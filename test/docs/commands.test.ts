import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Command, DOCUMENTS, masked, ROOT, sessionsOf, typeAll } from "./sessions.ts";

/** A line `...` of a document stands for any number of lines. */
function isAsShown(shown: readonly string[], printed: readonly string[]): boolean {
  const [first, ...rest] = shown;
  if (first === undefined) return printed.length === 0;
  if (first.trim() !== "...") return printed[0] === first && isAsShown(rest, printed.slice(1));
  return Array.from({ length: printed.length + 1 }, (_, i) => printed.slice(i)).some((left) => isAsShown(rest, left));
}
const linesOf = (lines: readonly string[]): readonly string[] => {
  const all = lines.map(masked);
  while (all.at(-1) === "") all.pop();
  return all;
};
const all = DOCUMENTS.map((document) => ({ document, sessions: sessionsOf(document) }));

describe("commands in the documents", () => {
  test.each(all.filter(({ sessions }) => sessions.some(({ runBy }) => runBy === null)))(
    "$document: each prints what is shown below it",
    { timeout: 180_000 },
    async ({ document }) => {
      await typeAll(document, ({ line, text, output }: Command, printed) => {
        const [shown, real] = [linesOf(output), linesOf(printed)];
        if (!isAsShown(shown, real)) expect({ line, text, lines: real }).toEqual({ line, text, lines: shown });
      });
    },
  );
  test.each(
    all.flatMap(({ document, sessions }) =>
      sessions.flatMap(({ line, runBy, commands }) => (runBy === null ? [] : [{ document, line, runBy, commands }])),
    ),
  )("$document:$line is run by $runBy, which compares what it prints", ({ document, runBy, commands }) => {
    expect(existsSync(join(ROOT, runBy)), runBy).toBe(true);
    const text = readFileSync(join(ROOT, runBy), "utf8");
    for (const { text: command, output } of commands) {
      const [, name] = /\bnodewise (\w+)/.exec(command) ?? [];
      if (name !== undefined) expect(text.includes(name), `${runBy} runs ${command}`).toBe(true);
      if (output.every((line) => ["", "..."].includes(line.trim()))) continue;
      for (const word of ["expectAsShown(", JSON.stringify(document), command.split("\n")[0] as string])
        expect(text.includes(word), `${runBy} compares what ${command} prints: ${word}`).toBe(true);
    }
  });
  test("a line that differs is found, and `...` stands for lines only", () => {
    expect(isAsShown(["a", "...", "c"], ["a", "b", "b", "c"])).toBe(true);
    expect(isAsShown(["a", "...", "c"], ["a", "b", "b", "d"])).toBe(false);
    expect(isAsShown(["a"], ["a", "b"])).toBe(false);
  });
  test("there are some", () => {
    expect(all.flatMap(({ sessions }) => sessions.flatMap(({ commands }) => commands)).length).toBeGreaterThan(30);
  });
});
