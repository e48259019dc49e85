import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { conformance, difference, runSuite, suiteFiles } from "./conformance/run.ts";
import { SUITES } from "./conformance/suites.ts";

const { files, otherVersions } = suiteFiles(join(import.meta.dirname, "vectors"));

describe("the kubelet's own answers", () => {
  test("every suite that the project answers has its vectors here", () => {
    expect(files.map((f) => f.suite).sort()).toEqual(Object.keys(SUITES).sort());
    expect(otherVersions).toEqual([]);
  });
  test.each(files)("$suite", async ({ suite, path }) => {
    const result = await runSuite(suite, path);
    expect(result.total).toBeGreaterThanOrEqual(40);
    expect(result.failures).toEqual([]);
  });
  test("the comparison notices a wrong number deep inside", () => {
    expect(difference({ a: { b: [1, 2] } }, { a: { b: [1, 3] } })).toBe("a.b.1: want 2, got 3");
    expect(difference({ a: 1 }, {})).toBe("a: want 1, got undefined");
  });
});

describe("a folder that is given", () => {
  const line = (milliCPU: number, shares: number) =>
    `${JSON.stringify({ name: "one", in: { milliCPU, periodMicros: 100_000 }, out: { shares, quota: 100_000, weight: 100 } })}\n`;
  async function run(suites: Readonly<Record<string, string>>) {
    const dir = mkdtempSync(join(tmpdir(), "vectors-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    for (const [path, text] of Object.entries(suites)) {
      mkdirSync(join(dir, path, ".."), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
    const lines: string[] = [];
    const good = await conformance(dir, (l) => lines.push(l.replace(dir, "DIR")));
    return { good, lines };
  }
  test("suites of sub-folders come after its own", async () => {
    const { good, lines } = await run({
      "b/cpu-convert.jsonl": line(1000, 1024),
      "cpu-convert.jsonl": line(1000, 1024),
    });
    expect({ good, lines }).toEqual({ good: true, lines: ["cpu-convert 1/1", "cpu-convert 1/1"] });
  });
  test("another version's answers are named and not run", async () => {
    const { good, lines } = await run({
      "1.37.2/cpu-convert.jsonl": line(1000, 7),
      "cpu-convert.jsonl": line(1000, 1024),
    });
    expect(good).toBe(true);
    expect(lines).toEqual([
      "cpu-convert 1/1",
      "not run: DIR/1.37.2 (answers of another version; name the folder to compare)",
    ]);
  });
  test("a wrong answer and an unknown suite fail, in a sub-folder too", async () => {
    const wrong = await run({ "more/cpu-convert.jsonl": line(1000, 7) });
    expect(wrong).toEqual({ good: false, lines: ["cpu-convert 0/1", "  one: shares: want 7, got 1024"] });
    const unknown = await run({ "cpu-convert.jsonl": line(1000, 1024), "more/no-such.jsonl": line(1000, 1) });
    expect(unknown.good).toBe(false);
    expect(unknown.lines.at(-1)).toBe("no-such 0/1  unknown suite: nothing here answers it");
  });
});
