import { joinPath } from "../base/input-issue.ts";
import { isObject } from "../base/own.ts";
import type { KindSpec, PlaceDifference } from "../model/kind-spec.ts";

export interface Difference extends PlaceDifference {
  /**
   * The path, as in issues. A list element with a `path` or `key` is named by that, as in `cgroups["/kubepods"].values.memory`;
   * other elements by their pod.
   */
  readonly path: string;
  /** The recorded value; absent if there is none. */
  readonly recorded?: unknown;
  readonly replayed?: unknown;
  /** The resource or signal of each value, if an object around it has one; absent for lists and objects. */
  readonly resources?: Sides;
}
interface Sides {
  readonly recorded?: string;
  readonly replayed?: string;
}
export const MAX_DIFFERENCES = 1000;

type HasNoEffect = KindSpec["hasNoEffect"];

/** The places where two plain JSON values differ, at most `MAX_DIFFERENCES` and one; those without an effect come last. */
export function differences(recorded: unknown, replayed: unknown, hasNoEffect?: HasNoEffect): readonly Difference[] {
  const found = new DifferenceCollector(hasNoEffect);
  compare(recorded, replayed, "", found, {});
  return found.list();
}

/** The differences of two decisions as the API returns them: undefined members count as absent. */
export const decisionDifferences = (
  before: Decision,
  after: Decision,
  hasNoEffect?: HasNoEffect,
): readonly Difference[] => differences(plain(before.decision), plain(after.decision), hasNoEffect);
interface Decision {
  readonly decision: unknown;
}
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

class DifferenceCollector {
  readonly #first: Difference[] = [];
  readonly #last: Difference[] = [];
  readonly #hasNoEffect: HasNoEffect;

  constructor(hasNoEffect: HasNoEffect) {
    this.#hasNoEffect = hasNoEffect;
  }

  get isFull(): boolean {
    return this.#first.length > MAX_DIFFERENCES;
  }

  add(difference: Difference): void {
    if (this.#hasNoEffect?.(difference) !== true) this.#first.push(difference);
    else if (this.#last.length <= MAX_DIFFERENCES) this.#last.push(difference);
  }

  list(): readonly Difference[] {
    return [...this.#first, ...this.#last].slice(0, MAX_DIFFERENCES + 1);
  }
}

type Members = ReadonlyMap<string | number, unknown>;

/** `of`: the resources of the nearest objects around the values. */
function compare(a: unknown, b: unknown, path: string, found: DifferenceCollector, of: Sides): void {
  if (found.isFull || Object.is(a, b)) return;
  const key = keyOfBoth(a, b);
  const before = membersOf(a, key);
  const after = membersOf(b, key);
  if (before === null || after === null || Array.isArray(a) !== Array.isArray(b)) {
    found.add({ path: path === "" ? "$" : path, recorded: a, replayed: b, ...resourcesOf(a, b, of) });
    return;
  }
  const here: Sides = { ...of, ...named("recorded", a), ...named("replayed", b) };
  for (const [name, value] of before) {
    if (found.isFull) return;
    const at = key === null ? joinPath(path, [name]) : `${path}[${JSON.stringify(name)}]`;
    if (after.has(name)) compare(value, after.get(name), at, found, here);
    else found.add({ path: at, recorded: value, ...resourcesOf(value, undefined, here) });
  }
  for (const [name, value] of after) {
    if (found.isFull) return;
    const at = key === null ? joinPath(path, [name]) : `${path}[${JSON.stringify(name)}]`;
    if (!before.has(name)) found.add({ path: at, replayed: value, ...resourcesOf(undefined, value, here) });
  }
}

/** An object has its resource or signal as a member, and a forecast that of its threshold. */
function named(side: keyof Sides, value: unknown): Sides {
  if (!isObject(value)) return {};
  const name = value["resource"] ?? value["signal"] ?? (isObject(value["threshold"]) && value["threshold"]["signal"]);
  return typeof name === "string" ? { [side]: name } : {};
}

const isOne = (value: unknown): boolean => value !== undefined && (typeof value !== "object" || value === null);
function resourcesOf(a: unknown, b: unknown, { recorded, replayed }: Sides): Pick<Difference, "resources"> {
  const sides: Sides = {
    ...(isOne(a) && recorded !== undefined && { recorded }),
    ...(isOne(b) && replayed !== undefined && { replayed }),
  };
  return Object.keys(sides).length === 0 ? {} : { resources: sides };
}

function membersOf(value: unknown, key: string | null): Members | null {
  if (Array.isArray(value)) return new Map(value.map((item, i) => [key === null ? i : (nameIn(item, key) ?? i), item]));
  return isObject(value) ? new Map(Object.entries(value)) : null;
}

/**
 * The member that identifies the elements of both lists, so that a new element in the middle is one difference and does not shift
 * the rest. Pods identify elements only if some were added or removed; otherwise the order matters.
 */
function keyOfBoth(a: unknown, b: unknown): string | null {
  if (!Array.isArray(a) || !Array.isArray(b)) return null;
  const known = ["path", "key"].find((key) => namesIn(a, key) !== null && namesIn(b, key) !== null);
  if (known !== undefined) return known;
  const [before, after] = [namesIn(a, "pod"), namesIn(b, "pod")];
  if (before === null || after === null || a.length === 0 || b.length === 0) return null;
  return before.size === after.size && [...before].every((pod) => after.has(pod)) ? null : "pod";
}
/** The elements' names; null if some element has none or shares one. */
function namesIn(list: readonly unknown[], key: string): ReadonlySet<string> | null {
  const seen = new Set(list.map((item) => nameIn(item, key)));
  return seen.has(undefined) || seen.size < list.length ? null : (seen as ReadonlySet<string>);
}
function nameIn(item: unknown, key: string): string | undefined {
  const value = isObject(item) ? item[key] : undefined;
  if (key === "pod" && isObject(value)) return `${String(value["namespace"])}/${String(value["name"])}`;
  return typeof value === "string" ? value : undefined;
}
