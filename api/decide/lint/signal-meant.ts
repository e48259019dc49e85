import { EVICTION_SIGNALS, type EvictionSignal } from "../../model/eviction.ts";
import { nearName } from "../../model/near-name.ts";

/** Those that a configuration names with sense. */
export const NAMED_SIGNALS: readonly EvictionSignal[] = EVICTION_SIGNALS.filter(
  (name) => name !== "allocatableMemory.available",
);
const partsAt = (i: 0 | 1): readonly string[] => [...new Set(NAMED_SIGNALS.map((name) => name.split(".")[i] ?? ""))];
const THINGS = partsAt(0);
const ENDS = partsAt(1);
/** What people write for it, and cannot have meant otherwise. */
const ALSO: ReadonlyMap<string, string> = new Map([
  ["disk", "nodefs"],
  ["mem", "memory"],
  ["ram", "memory"],
  ["pids", "pid"],
]);
const LONGEST = 64;

/**
 * The signal that was meant by a name that is none. What tells signals apart stands before the point, so that is compared on
 * its own: nearly all of them end the same. Null: none is near, or more than one could be meant.
 */
export function meantSignal(name: string): EvictionSignal | null {
  if (name.length > LONGEST) return null;
  const [, before = name, after = ""] =
    /^([^._\s-]+)[._\s-](.*)$/.exec(name) ?? /^([a-z]+)([A-Z]\w*)$/.exec(name) ?? [];
  const first = before.toLowerCase();
  const thing = ALSO.get(first) ?? THINGS.find((one) => one === first || isOneOff(first, one));
  const signals = NAMED_SIGNALS.filter((signal) => signal.startsWith(`${thing}.`));
  // of a file system alone it may be the space or the inodes; a disk is space
  if (after === "") return signals.length === 1 || first === "disk" ? (signals[0] ?? null) : null;
  const end = meantEnd(after.toLowerCase());
  return signals.find((signal) => signal.endsWith(`.${end}`)) ?? null;
}

const FEWEST = 4;
function meantEnd(text: string): string | undefined {
  const begun = ENDS.find((end) => text.length >= FEWEST && end.toLowerCase().startsWith(text));
  return begun ?? nearName(text, ENDS) ?? undefined;
}

/** Of fewer letters none may be wrong: `pod` is no `pid`. */
const SURE = 6;
/** One letter more, less or another, or two that changed places. */
function isOneOff(text: string, name: string): boolean {
  if (name.length < SURE || Math.abs(text.length - name.length) > 1) return false;
  let from = 0;
  while (from < Math.min(text.length, name.length) && text[from] === name[from]) from++;
  const [a, b] = [text.slice(from), name.slice(from)];
  const isSwap = a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2);
  return isSwap || a.slice(1) === b.slice(1) || a.slice(1) === b || a === b.slice(1);
}
