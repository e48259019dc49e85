import { joinPath } from "../model/input-issue.ts";

export interface Difference {
  /** As in issues; an element of a list that has a `path` or `key` is named by it: `cgroups["/kubepods"].values.memory`. */
  readonly path: string;
  /** Absent: there was none. */
  readonly recorded?: unknown;
  readonly replayed?: unknown;
}
export const MAX_DIFFERENCES = 1000;

/** The places where two values of plain JSON differ, at most `MAX_DIFFERENCES` and one. */
export function differences(recorded: unknown, replayed: unknown): readonly Difference[] {
  const found: Difference[] = [];
  compare(recorded, replayed, "", found);
  return found;
}

/** The same of two decisions as they are answered: without what is undefined. */
export const decisionDifferences = (before: Decision, after: Decision): readonly Difference[] =>
  differences(plain(before.decision), plain(after.decision));
interface Decision {
  readonly decision: unknown;
}
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

type Members = ReadonlyMap<string | number, unknown>;

function compare(a: unknown, b: unknown, path: string, found: Difference[]): void {
  if (found.length > MAX_DIFFERENCES || Object.is(a, b)) return;
  const key = keyOfBoth(a, b);
  const before = membersOf(a, key);
  const after = membersOf(b, key);
  if (before === null || after === null || Array.isArray(a) !== Array.isArray(b)) {
    found.push({ path: path === "" ? "$" : path, recorded: a, replayed: b });
    return;
  }
  for (const [name, value] of before) {
    if (found.length > MAX_DIFFERENCES) return;
    const at = key === null ? joinPath(path, [name]) : `${path}[${JSON.stringify(name)}]`;
    if (after.has(name)) compare(value, after.get(name), at, found);
    else found.push({ path: at, recorded: value });
  }
  for (const [name, value] of after) {
    if (found.length > MAX_DIFFERENCES) return;
    const at = key === null ? joinPath(path, [name]) : `${path}[${JSON.stringify(name)}]`;
    if (!before.has(name)) found.push({ path: at, replayed: value });
  }
}

const isObject = (v: unknown): v is Readonly<Record<string, unknown>> => typeof v === "object" && v !== null;

function membersOf(value: unknown, key: string | null): Members | null {
  if (Array.isArray(value))
    return new Map(value.map((item, i) => [key === null ? i : String((item as Record<string, unknown>)[key]), item]));
  return isObject(value) ? new Map(Object.entries(value)) : null;
}

/** The member that names the elements of both lists, so that a new one in the middle is one difference and not a shift of all. */
function keyOfBoth(a: unknown, b: unknown): string | null {
  if (!Array.isArray(a) || !Array.isArray(b)) return null;
  return ["path", "key"].find((key) => names(a, key) && names(b, key)) ?? null;
}
function names(list: readonly unknown[], key: string): boolean {
  const seen = new Set(list.map((item) => (isObject(item) && typeof item[key] === "string" ? item[key] : undefined)));
  return !seen.has(undefined) && seen.size === list.length;
}
