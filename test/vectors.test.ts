import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { conformance, difference, runSuite, suiteFiles } from "./conformance/run.ts";
import { SUITES } from "./conformance/suites.ts";
import { RECORDED, UNRECORDED } from "./kit/recorded.ts";
import { scratchFolder } from "./kit/scratch.ts";

const { files, left } = suiteFiles(join(import.meta.dirname, "vectors"));

describe("the kubelet's own answers", () => {
  test("every suite that the project answers has its vectors here", () => {
    const suites = files.filter(({ profile }) => profile.version === "1.36").map(({ suite }) => suite);
    expect(suites.sort()).toEqual(Object.keys(SUITES).sort());
    expect(left).toEqual([]);
  });
  test.skip.each(UNRECORDED)("of kubelet $version: none are recorded", () => {});
  test.each(RECORDED)("of kubelet $version", ({ version }) => {
    expect(files.filter(({ profile }) => profile.version === version).length).toBeGreaterThanOrEqual(26);
  });
  test.each(files)("$suite of kubelet $profile.version", async (file) => {
    const result = await runSuite(file);
    expect(result.total).toBeGreaterThanOrEqual(file.profile.version === "1.36" ? 40 : 12);
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
  async function run(suites: Readonly<Record<string, string>>, kubelet?: string) {
    const dir = scratchFolder();
    for (const [path, text] of Object.entries(suites)) {
      mkdirSync(join(dir, path, ".."), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
    const lines: string[] = [];
    const good = await conformance(dir, kubelet, (l) => lines.push(l.replace(dir, "DIR")));
    return { good, lines };
  }
  test("suites of sub-folders come after its own", async () => {
    const { good, lines } = await run({
      "b/cpu-convert.jsonl": line(1000, 1024),
      "cpu-convert.jsonl": line(1000, 1024),
    });
    expect({ good, lines }).toEqual({ good: true, lines: ["cpu-convert 1/1", "cpu-convert 1/1"] });
  });
  const quotaOf = (version: string, quota: number) => ({
    [`${version}/cpu-convert.jsonl`]: `${JSON.stringify({ name: "one", in: { milliCPU: 1000, periodMicros: 50_000 }, out: { shares: 1024, quota, weight: 100 } })}\n`,
  });
  test("each kubelet's own answers lie in a folder of its version", async () => {
    const { good, lines } = await run({ ...quotaOf("1.35.4", 100_000), ...quotaOf("1.37.2", 50_000) });
    const each = ["1.35", "1.37"].map((version) => `cpu-convert 1/1  of kubelet ${version}`);
    expect({ good, lines }).toEqual({ good: true, lines: each });
    expect((await run(quotaOf("1.37.2", 100_000))).good).toBe(false);
  });
  test("a kubelet that is named is the only one that is asked", async () => {
    const given = { ...quotaOf(".", 100_000), ...quotaOf("1.37.2", 50_000), ...quotaOf("1.33.13", 100_000) };
    const others = ["1.33.13", "1.37.2"].map((version) => `not run: DIR/${version} (answers of another kubelet)`);
    expect(await run(given, "1.35")).toEqual({ good: true, lines: ["cpu-convert 1/1", ...others] });
    await expect(run(given, "1.33")).rejects.toThrow("there is no profile of kubelet 1.33");
  });
  test("a wrong answer and an unknown suite fail, in a sub-folder too", async () => {
    const wrong = await run({ "more/cpu-convert.jsonl": line(1000, 7) });
    expect(wrong).toEqual({ good: false, lines: ["cpu-convert 0/1", "  one: shares: want 7, got 1024"] });
    const unknown = await run({ "cpu-convert.jsonl": line(1000, 1024), "more/no-such.jsonl": line(1000, 1) });
    expect(unknown.good).toBe(false);
    expect(unknown.lines.at(-1)).toBe("no-such 0/1  unknown suite: nothing here answers it");
  });
});
