import { readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";
import { chooseProfile } from "../../api/profiles/index.ts";
import type { Profile } from "../../api/profiles/profile.ts";
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

/** The cases of one file; an invalid line is named. */
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
  readonly profile: Profile;
}
/** A folder with the name of a Kubernetes version (`1.37.2`) contains the answers of that kubelet. */
const VERSION = /^1\.\d+(\.\d+)?$/;
/** The kubelet version of a folder without a version in its name, unless `--kubelet` is given. */
const UNNAMED = "1.36";

/**
 * The suites of a folder, followed by those of its sub-folders. `kubelet`: the version that gave the answers; by
 * default the folder's name. `left`: the sub-folders with answers of another version, or of one without a profile.
 */
export function suiteFiles(
  dir: string,
  kubelet?: string,
): { readonly files: readonly SuiteFile[]; readonly left: string[] } {
  const files: SuiteFile[] = [];
  const below: SuiteFile[] = [];
  const left: string[] = [];
  const name = basename(resolve(dir));
  const version = kubelet ?? (VERSION.test(name) ? name : UNNAMED);
  const profile = ownProfile(version);
  if (profile === undefined) throw new Error(`there is no profile of kubelet ${version}`);
  for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) {
      const isVersion = VERSION.test(entry.name);
      if (isVersion && (kubelet !== undefined || ownProfile(entry.name) === undefined)) left.push(path);
      else {
        const inside = suiteFiles(path, isVersion ? undefined : version);
        below.push(...inside.files);
        left.push(...inside.left);
      }
      continue;
    }
    const match = FILE.exec(entry.name);
    if (match !== null) files.push({ suite: match[1] as string, path, profile });
  }
  return { files: [...files, ...below], left };
}
const ownProfile = (version: string): Profile | undefined => {
  const { profile, note } = chooseProfile(version);
  return note.exact ? profile : undefined;
};

/**
 * Runs one file of cases through the suite with its name. Some cases wait for real servers, so several cases run at the
 * same time.
 */
export async function runSuite({ suite, path, profile }: SuiteFile): Promise<SuiteResult> {
  const cases = readCases(path);
  const known = Object.hasOwn(SUITES, suite) ? SUITES[suite] : undefined;
  if (known === undefined) return { suite, passed: 0, total: cases.length, failures: [], unknown: true };
  const failures: { readonly name: string; readonly diff: string }[] = [];
  for (let i = 0; i < cases.length; i += AT_ONCE) {
    const some = cases.slice(i, i + AT_ONCE);
    const diffs = await Promise.all(some.map((c) => firstDifference(known, c.in, c.out, profile)));
    failures.push(...some.flatMap(({ name }, j) => (diffs[j] === undefined ? [] : [{ name, diff: diffs[j] }])));
  }
  return { suite, passed: cases.length - failures.length, total: cases.length, failures, unknown: false };
}

async function firstDifference(
  suite: Suite,
  input: unknown,
  out: unknown,
  profile: Profile,
): Promise<string | undefined> {
  const want = suite.expected === undefined ? out : suite.expected(out as never);
  const diff = difference(
    want,
    await attempt(async () => suite.show(await suite.decide(suite.read(input, profile), profile))),
  );
  if (diff === undefined || suite.alike === undefined) return diff;
  for (const read of suite.alike(suite.read(input, profile)) as readonly unknown[]) {
    const other = await attempt(async () => suite.show(await suite.decide(read, profile)));
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

/** One line about the first places where two plain values differ; undefined if they are equal. */
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

/**
 * Runs every suite of a folder and its sub-folders, and prints a line for each, with the kubelet's version if there are
 * several. Returns true if all suites are known and pass. `kubelet`: see `suiteFiles`.
 */
export async function conformance(
  dir: string,
  kubelet: string | undefined,
  print: (line: string) => void,
): Promise<boolean> {
  const { files, left } = suiteFiles(dir, kubelet);
  if (files.length === 0) {
    print(`no .jsonl or .jsonl.gz file in ${dir}`);
    return false;
  }
  let good = true;
  const isOfOne = new Set(files.map(({ profile }) => profile)).size === 1;
  for (const file of files) {
    const { suite, passed, total, failures, unknown } = await runSuite(file);
    const version = isOfOne ? "" : `  of kubelet ${file.profile.version}`;
    print(`${suite} ${passed}/${total}${version}${unknown ? "  unknown suite: nothing here answers it" : ""}`);
    for (const f of failures.slice(0, SHOWN)) print(`  ${f.name}: ${f.diff}`);
    good = good && !unknown && failures.length === 0;
  }
  for (const path of left) print(`not run: ${path} (answers of another kubelet)`);
  return good;
}

if (import.meta.main) {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { kubelet: { type: "string" } } });
    const dir = positionals[0] ?? join(import.meta.dirname, "..", "vectors");
    process.exitCode = (await conformance(dir, values.kubelet, (line) => console.log(line))) ? 0 : 1;
  } catch (e) {
    console.error(`conformance: ${(e as Error).message}`);
    process.exitCode = 1;
  }
}
