import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { gunzipSync } from "node:zlib";
import type { Suite } from "./suite.ts";
import { SUITES } from "./suites.ts";

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

export interface SuiteFile {
  readonly suite: string;
  readonly path: string;
}
/** A folder named for a Kubernetes version (`1.37.2`) holds the answers of that kubelet, and not of the one that is rebuilt here. */
const VERSION = /^\d+\.\d+(\.\d+)?$/;

/** The suites of a folder and then those of its sub-folders; `otherVersions`: the sub-folders that hold another version's answers. */
export function suiteFiles(dir: string): { readonly files: readonly SuiteFile[]; readonly otherVersions: string[] } {
  const files: SuiteFile[] = [];
  const below: SuiteFile[] = [];
  const otherVersions: string[] = [];
  for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) {
      if (VERSION.test(entry.name)) otherVersions.push(path);
      else {
        const inside = suiteFiles(path);
        below.push(...inside.files);
        otherVersions.push(...inside.otherVersions);
      }
      continue;
    }
    const match = FILE.exec(entry.name);
    if (match !== null) files.push({ suite: match[1] as string, path });
  }
  return { files: [...files, ...below], otherVersions };
}

/** Runs one file of cases through the suite of its name; some cases wait for real servers, so several go on at once. */
export async function runSuite(suite: string, path: string): Promise<SuiteResult> {
  const cases = readCases(path);
  const known = Object.hasOwn(SUITES, suite) ? SUITES[suite] : undefined;
  if (known === undefined) return { suite, passed: 0, total: cases.length, failures: [], unknown: true };
  const failures: { readonly name: string; readonly diff: string }[] = [];
  for (let i = 0; i < cases.length; i += AT_ONCE) {
    const some = cases.slice(i, i + AT_ONCE);
    const diffs = await Promise.all(some.map((c) => firstDifference(known, c.in, c.out)));
    failures.push(...some.flatMap(({ name }, j) => (diffs[j] === undefined ? [] : [{ name, diff: diffs[j] }])));
  }
  return { suite, passed: cases.length - failures.length, total: cases.length, failures, unknown: false };
}

async function firstDifference(suite: Suite, input: unknown, out: unknown): Promise<string | undefined> {
  const want = suite.expected === undefined ? out : suite.expected(out as never);
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

/** Runs every suite of a folder and its sub-folders and prints a line each. True when all passed and all are known. */
export async function conformance(dir: string, print: (line: string) => void): Promise<boolean> {
  const { files, otherVersions } = suiteFiles(dir);
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
    for (const f of result.failures.slice(0, SHOWN)) print(`  ${f.name}: ${f.diff}`);
    good = good && !result.unknown && result.failures.length === 0;
  }
  for (const path of otherVersions) print(`not run: ${path} (answers of another version; name the folder to compare)`);
  return good;
}

if (import.meta.main) {
  const dir = process.argv[2] ?? join(import.meta.dirname, "..", "vectors");
  try {
    process.exitCode = (await conformance(dir, (line) => console.log(line))) ? 0 : 1;
  } catch (e) {
    console.error(`conformance: ${(e as Error).message}`);
    process.exitCode = 1;
  }
}
