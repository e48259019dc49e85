import { mergePatch } from "../../base/merge-patch.ts";
import { nearName } from "../../base/near-name.ts";
import type { Fields } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { value } from "../../model/amount.ts";
import { EVICTION_SIGNALS, type EvictionSignal } from "../../model/eviction.ts";
import { THRESHOLD_FIELDS } from "../eviction/configuration.ts";
import { goQuantity, isSignal } from "../eviction/threshold.ts";
import { entryField, type LintFinding, type RawConfiguration } from "./finding.ts";

/** The signals that a configuration can usefully name. */
export const NAMED_SIGNALS: readonly EvictionSignal[] = EVICTION_SIGNALS.filter(
  (name) => name !== "allocatableMemory.available",
);
const partsAt = (i: 0 | 1): readonly string[] => [...new Set(NAMED_SIGNALS.map((name) => name.split(".")[i] ?? ""))];
const THINGS = partsAt(0);
const ENDS = partsAt(1);
/** Common wrong names that can mean only one signal. */
const ALSO: ReadonlyMap<string, string> = new Map([
  ["disk", "nodefs"],
  ["mem", "memory"],
  ["ram", "memory"],
  ["pids", "pid"],
]);
const LONGEST = 64;

/**
 * The signal that a wrong name probably means. The part before the point is compared by itself, since most signals end
 * alike. Null: none is similar, or several are.
 */
function suggestSignal(name: string): EvictionSignal | null {
  if (name.length > LONGEST) return null;
  const [, before = name, after = ""] =
    /^([^._\s-]+)[._\s-](.*)$/.exec(name) ?? /^([a-z]+)([A-Z]\w*)$/.exec(name) ?? [];
  const first = before.toLowerCase();
  const thing = ALSO.get(first) ?? THINGS.find((one) => one === first || isOneOff(first, one));
  const signals = NAMED_SIGNALS.filter((signal) => signal.startsWith(`${thing}.`));
  // a file system alone may mean its space or its inodes; a disk is space
  if (after === "") return signals.length === 1 || first === "disk" ? (signals[0] ?? null) : null;
  const end = suggestEnd(after.toLowerCase());
  return signals.find((signal) => signal.endsWith(`.${end}`)) ?? null;
}

const FEWEST = 4;
function suggestEnd(text: string): string | undefined {
  const begun = ENDS.find((end) => text.length >= FEWEST && end.toLowerCase().startsWith(text));
  return begun ?? nearName(text, ENDS) ?? undefined;
}

/** The fewest letters of a name that may have one wrong: `pod` is not a misspelled `pid`. */
const SURE = 6;
/** Whether the texts differ by one letter added, removed or changed, or by two swapped letters. */
function isOneOff(text: string, name: string): boolean {
  if (name.length < SURE || Math.abs(text.length - name.length) > 1) return false;
  let from = 0;
  while (from < Math.min(text.length, name.length) && text[from] === name[from]) from++;
  const [a, b] = [text.slice(from), name.slice(from)];
  const isSwap = a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2);
  return isSwap || a.slice(1) === b.slice(1) || a.slice(1) === b || a === b.slice(1);
}

export const UNKNOWN_SIGNAL = "unknown-signal";

/** The signals that were meant by names that are no signals, in any of the four fields. */
export class SignalSuggestions {
  readonly #maps: readonly (readonly [string, Fields])[];
  readonly #meant = new Map<string, EvictionSignal | null>();
  /** The number of wrong names that mean each signal. */
  readonly #names = new Map<EvictionSignal, number>();

  constructor(given: RawConfiguration) {
    this.#maps = THRESHOLD_FIELDS.map((field) => [field, given.inside(field).raw] as const);
    for (const name of new Set(this.#maps.flatMap(([, map]) => Object.keys(map)))) {
      if (isSignal(name)) continue;
      const meant = suggestSignal(name);
      this.#meant.set(name, meant);
      if (meant !== null) this.#names.set(meant, (this.#names.get(meant) ?? 0) + 1);
    }
  }

  meantBy(name: string): EvictionSignal | null {
    return this.#meant.get(name) ?? null;
  }

  /**
   * A patch that moves values from the wrong name to the intended signal in all four fields, or only removes them
   * where that is already set. Error: why a person must decide.
   */
  patchOf(wrong: string, meant: EvictionSignal): Result<unknown, string> {
    const patch: [string, unknown][] = [];
    for (const [field, map] of this.#maps) {
      if (!Object.hasOwn(map, wrong)) continue;
      const isThere = map[meant] !== undefined && map[meant] !== null;
      const text = map[wrong];
      if (!isThere && !isOf(field, meant, String(text))) return err(`${text} is none of it`);
      if (!isThere && this.#names.get(meant) !== 1) return err("another name here means it too: keep one");
      patch.push([field, { [wrong]: null, ...(isThere ? {} : { [meant]: text }) }]);
    }
    return ok(Object.fromEntries(patch));
  }
}

/** The kernel's maximum. Linux: PID_MAX_LIMIT. */
const MAX_PIDS = 2 ** 22;
/** Whether an amount fits the signal: process ids are not bytes, and inodes are not counted in units of 1024. */
function isOf(field: string, signal: EvictionSignal, text: string): boolean {
  if (field === "evictionSoftGracePeriod" || text.endsWith("%")) return true;
  const read = goQuantity(text);
  if (!read.ok) return false;
  if (signal === "pid.available") return value(read.value.amount) < MAX_PIDS;
  return !signal.endsWith(".inodesFree") || !text.endsWith("i");
}

/**
 * Keeps the renaming of a signal only if the corrected configuration has no new finding there and no new refusal
 * caused by it. A wrong name also hides refusals of other settings; refusals that exist without the wrong names too
 * are not caused by the renaming. `findingsOf`: checks a whole configuration.
 */
export function remainingRenames(
  found: readonly LintFinding[],
  configuration: Fields,
  findingsOf: (patched: Fields) => readonly LintFinding[],
): readonly LintFinding[] {
  if (!found.some(isRename)) return found;
  const before = new Set([...found, ...findingsOf(withoutWrongNames(configuration)).filter(isRefusal)].map(keyOf));
  const known = new Map<string, string | null>();
  return found.map((finding) => {
    if (!isRename(finding)) return finding;
    const text = JSON.stringify(finding.fix);
    let reason = known.get(text);
    if (reason === undefined) {
      const after = findingsOf(mergePatch(configuration, finding.fix) as Fields);
      reason = reasonNotOffered(after, before);
      known.set(text, reason);
    }
    return reason === null ? finding : { ...finding, fix: null, advice: `${finding.advice} ${reason}` };
  });
}

const isRename = ({ code, fix }: LintFinding): boolean => code === UNKNOWN_SIGNAL && fix !== null;
const isRefusal = ({ severity }: LintFinding): boolean => severity === "refuses-start";

function withoutWrongNames(configuration: Fields): Fields {
  const maps = THRESHOLD_FIELDS.flatMap((field) => {
    const map = configuration[field];
    if (typeof map !== "object" || map === null) return [];
    return [[field, Object.fromEntries(Object.entries(map).filter(([name]) => isSignal(name)))] as const];
  });
  return { ...configuration, ...Object.fromEntries(maps) };
}

/**
 * The code of findings about an exact sum that thresholds are part of: a different sum does not mean that it would be wrong
 * anyway.
 */
const SUM = "reserved-memory";
const keyOf = ({ code, field, message }: LintFinding): string =>
  code === SUM ? `${code} ${message}` : `${code} ${field}`;
const PLACES: ReadonlySet<string> = new Set(
  THRESHOLD_FIELDS.flatMap((field) => [field, ...NAMED_SIGNALS.map((signal) => entryField(field, signal))]),
);
/** Codes that any value would have: a related entry is missing, or a sum is wrong. */
const OF_ANY_VALUE: ReadonlySet<string> = new Set([
  "soft-without-grace",
  "grace-without-soft",
  "reclaim-without-threshold",
  SUM,
]);
/** Why the corrected configuration is not offered; null: it is. */
function reasonNotOffered(after: readonly LintFinding[], before: ReadonlySet<string>): string | null {
  const found = after.filter((one) => (isRefusal(one) || PLACES.has(one.field)) && !before.has(keyOf(one)));
  const other = found.find(({ code }) => OF_ANY_VALUE.has(code));
  if (other !== undefined) return `and then: ${other.message} (${other.advice})`;
  return found.length > 0 ? "then with another value" : null;
}
