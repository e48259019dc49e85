import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { gunzipSync } from "node:zlib";
import { DISPUTED } from "./disputed.ts";
import type { Suite } from "./suite.ts";
import { normaliseExpected, SUITES } from "./suites.ts";

export interface VectorCase {
  readonly name: string;
  readonly in: unknown;
  readonly out: unknown;
}
export interface SuiteResult {
  readonly suite: string;
  readonly passed: number;
  readonly total: number;
  readonly failures: readonly { readonly name: string; readonly diff: string }[];
  readonly unknown: boolean;
}
const FILE = /^(.+)\.jsonl(\.gz)?$/;
const SHOWN = 3;
const AT_ONCE = 8;

/** The cases of one file; a broken line is named. */
export function readCases(path: string): readonly VectorCase[] {
  const raw = readFileSync(path);
  const text = (path.endsWith(".gz") ? gunzipSync(raw) : raw).toString("utf8");
  return text
    .split("\n")
    .map((line, i) => ({ line, number: i + 1 }))
    .filter(({ line }) => line.trim() !== "")
    .map(({ line, number }) => {
      try {
        return JSON.parse(line) as VectorCase;
      } catch (e) {
        throw new Error(`${path}:${number}: ${(e as Error).message}`);
      }
    });
}

export const suiteFiles = (dir: string): readonly { suite: string; path: string }[] =>
  readdirSync(dir)
    .sort()
    .flatMap((file) => {
      const match = FILE.exec(file);
      return match === null ? [] : [{ suite: match[1] as string, path: join(dir, file) }];
    });

/** Runs one file of cases through the suite of its name; some cases wait for real servers, so several go on at once. */
export async function runSuite(suite: string, path: string): Promise<SuiteResult> {
  const cases = readCases(path);
  const known = Object.hasOwn(SUITES, suite) ? SUITES[suite] : undefined;
  if (known === undefined) return { suite, passed: 0, total: cases.length, failures: [], unknown: true };
  const failures: { readonly name: string; readonly diff: string }[] = [];
  for (let i = 0; i < cases.length; i += AT_ONCE) {
    const some = cases.slice(i, i + AT_ONCE);
    const diffs = await Promise.all(some.map((c) => firstDifference(known, c.in, normaliseExpected(suite, c.out))));
    failures.push(...some.flatMap(({ name }, j) => (diffs[j] === undefined ? [] : [{ name, diff: diffs[j] }])));
  }
  return { suite, passed: cases.length - failures.length, total: cases.length, failures, unknown: false };
}

async function firstDifference(suite: Suite, input: unknown, want: unknown): Promise<string | undefined> {
  const diff = difference(want, await attempt(async () => suite.show(await suite.decide(suite.read(input)))));
  if (diff === undefined || suite.alike === undefined) return diff;
  for (const read of suite.alike(suite.read(input)) as readonly unknown[]) {
    const other = await attempt(async () => suite.show(await suite.decide(read)));
    if (isDeepStrictEqual(want, other)) return undefined;
  }
  return diff;
}

async function attempt(run: () => Promise<unknown>): Promise<unknown> {
  try {
    return JSON.parse(JSON.stringify(await run())) as unknown;
  } catch (e) {
    return { threw: (e as Error).message };
  }
}

/** The first places where two plain values differ, in a line; undefined when they do not. */
export function difference(want: unknown, got: unknown, at = ""): string | undefined {
  if (isDeepStrictEqual(want, got)) return undefined;
  const objects = [want, got].every((v) => typeof v === "object" && v !== null);
  if (!objects) return `${at === "" ? "answer" : at}: want ${JSON.stringify(want)}, got ${JSON.stringify(got)}`;
  const w = want as Record<string, unknown>;
  const g = got as Record<string, unknown>;
  const keys = [...new Set([...Object.keys(w), ...Object.keys(g)])];
  const parts = keys.map((k) => difference(w[k], g[k], at === "" ? k : `${at}.${k}`)).filter((d) => d !== undefined);
  return parts.slice(0, SHOWN).join("; ");
}

/** Runs every suite of a folder and prints a line each. True when all passed and all are known. */
export async function conformance(dir: string, print: (line: string) => void): Promise<boolean> {
  const files = suiteFiles(dir);
  if (files.length === 0) {
    print(`no .jsonl or .jsonl.gz file in ${dir}`);
    return false;
  }
  let good = true;
  for (const { suite, path } of files) {
    const result = await runSuite(suite, path);
    print(
      `${suite} ${result.passed}/${result.total}${result.unknown ? "  unknown suite: nothing here answers it" : ""}`,
    );
    for (const f of result.failures.slice(0, SHOWN)) print(`  ${f.name}: ${f.diff}${disputedMark(f.name)}`);
    good = good && !result.unknown && result.failures.length === 0;
  }
  return good;
}

const disputedMark = (name: string): string =>
  DISPUTED.some((d) => d.name === name) ? "  (disputed: test/conformance/disputed.ts says why)" : "";

if (import.meta.main) {
  const dir = process.argv[2] ?? join(import.meta.dirname, "..", "vectors");
  try {
    process.exitCode = (await conformance(dir, (line) => console.log(line))) ? 0 : 1;
  } catch (e) {
    console.error(`conformance: ${(e as Error).message}`);
    process.exitCode = 1;
  }
}
