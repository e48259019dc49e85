import { value } from "../../model/amount.ts";
import type { EvictionSignal } from "../../model/eviction.ts";
import { mergePatch } from "../../model/merge-patch.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { goQuantity } from "../eviction/go-values.ts";
import { isSignal } from "../eviction/signals.ts";
import { entryField, type LintFinding } from "./finding.ts";
import type { Given, Members } from "./given.ts";
import { meantSignal, NAMED_SIGNALS } from "./signal-meant.ts";

const FIELDS = ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"] as const;
export const UNKNOWN_SIGNAL = "unknown-signal";

/** What was meant by each name that is no signal, in any of the four fields. */
export class Renames {
  readonly #maps: readonly (readonly [string, Members])[];
  readonly #meant = new Map<string, EvictionSignal | null>();
  /** By how many wrong names each was meant. */
  readonly #names = new Map<EvictionSignal, number>();

  constructor(given: Given) {
    this.#maps = FIELDS.map((field) => [field, given.inside(field).raw] as const);
    for (const name of new Set(this.#maps.flatMap(([, map]) => Object.keys(map)))) {
      if (isSignal(name)) continue;
      const meant = meantSignal(name);
      this.#meant.set(name, meant);
      if (meant !== null) this.#names.set(meant, (this.#names.get(meant) ?? 0) + 1);
    }
  }

  meantBy(name: string): EvictionSignal | null {
    return this.#meant.get(name) ?? null;
  }

  /**
   * Gives what stands under the wrong name to the signal that was meant, in all four fields, and only takes it away where that
   * is set already. Error: why a person must, in words.
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

/** No kernel has more of them. Linux: PID_MAX_LIMIT. */
const MOST_PIDS = 2 ** 22;
/** Bytes are no process ids, and nobody counts inodes by 1024. */
function isOf(field: string, signal: EvictionSignal, text: string): boolean {
  if (field === "evictionSoftGracePeriod" || text.endsWith("%")) return true;
  const read = goQuantity(text);
  if (!read.ok) return false;
  if (signal === "pid.available") return value(read.value.amount) < MOST_PIDS;
  return !signal.endsWith(".inodesFree") || !text.endsWith("i");
}

/**
 * Keeps the renaming of a signal only where the mended configuration has no finding there that it did not have before, and no
 * new refusal that comes of it. A wrong name also hides refusals of other settings: those that are there without the wrong
 * names too do not come of the renaming. `findingsOf`: of a whole configuration.
 */
export function standingRenames(
  found: readonly LintFinding[],
  configuration: Members,
  findingsOf: (mended: Members) => readonly LintFinding[],
): readonly LintFinding[] {
  if (!found.some(isRename)) return found;
  const before = new Set([...found, ...findingsOf(withoutWrongNames(configuration)).filter(isRefusal)].map(keyOf));
  const known = new Map<string, string | null>();
  return found.map((finding) => {
    if (!isRename(finding)) return finding;
    const text = JSON.stringify(finding.fix);
    let harm = known.get(text);
    if (harm === undefined) {
      const after = findingsOf(mergePatch(configuration, finding.fix) as Members);
      harm = harmIn(after, before);
      known.set(text, harm);
    }
    return harm === null ? finding : { ...finding, fix: null, advice: `${finding.advice} ${harm}` };
  });
}

const isRename = ({ code, fix }: LintFinding): boolean => code === UNKNOWN_SIGNAL && fix !== null;
const isRefusal = ({ severity }: LintFinding): boolean => severity === "refuses-start";

function withoutWrongNames(configuration: Members): Members {
  const maps = FIELDS.flatMap((field) => {
    const map = configuration[field];
    if (typeof map !== "object" || map === null) return [];
    return [[field, Object.fromEntries(Object.entries(map).filter(([name]) => isSignal(name)))] as const];
  });
  return { ...configuration, ...Object.fromEntries(maps) };
}

/** Of an exact sum, which thresholds are part of: that it is another does not tell that it would be wrong anyway. */
const SUM = "reserved-memory";
const keyOf = ({ code, field, message }: LintFinding): string =>
  code === SUM ? `${code} ${message}` : `${code} ${field}`;
const PLACES: ReadonlySet<string> = new Set(
  FIELDS.flatMap((field) => [field, ...NAMED_SIGNALS.map((signal) => entryField(field, signal))]),
);
/** An entry that goes with it is missing, or the sum is wrong: any value has that. */
const OF_ANY_VALUE: ReadonlySet<string> = new Set([
  "soft-without-grace",
  "grace-without-soft",
  "reclaim-without-threshold",
  SUM,
]);
/** Why the mended configuration is not to be offered, in words. Null: it is. */
function harmIn(after: readonly LintFinding[], before: ReadonlySet<string>): string | null {
  const harm = after.filter((one) => (isRefusal(one) || PLACES.has(one.field)) && !before.has(keyOf(one)));
  const other = harm.find(({ code }) => OF_ANY_VALUE.has(code));
  if (other !== undefined) return `and then: ${other.message} (${other.advice})`;
  return harm.length > 0 ? "then with another value" : null;
}
