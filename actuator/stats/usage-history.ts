import type { CgroupUsage } from "./usage.ts";

/** Since the look before. Null: there was none, or the cgroup is another one since. */
export interface UsageRate {
  /** Billionths of a core. */
  readonly cpuNanoCores: number | null;
  /** Periods in which the cgroup's own quota held it back, in thousandths of those that passed; without any, 0. */
  readonly throttledPermille: number | null;
}
type Usages = ReadonlyMap<string, CgroupUsage>;

/** A shorter time tells more of the clock than of the cgroup (cAdvisor takes none either). */
const SHORTEST_MS = 100;
const UNKNOWN: UsageRate = { cpuNanoCores: null, throttledPermille: null };

/** Keeps the look before, and so knows how fast counters rise. What is not looked at any more is forgotten. */
export class UsageHistory {
  #before: { readonly usages: Usages; readonly atMs: number } | null = null;
  #rates: ReadonlyMap<string, UsageRate> = new Map();

  /** `atMs`: of a clock that nobody sets. A look that comes right after another gets that one's rates again. */
  look(usages: Usages, atMs: number): ReadonlyMap<string, UsageRate> {
    const before = this.#before;
    const passedMs = before === null ? 0 : atMs - before.atMs;
    if (before !== null && passedMs < SHORTEST_MS) {
      return new Map([...usages.keys()].map((path) => [path, this.#rates.get(path) ?? UNKNOWN]));
    }
    const rates = new Map<string, UsageRate>();
    for (const [path, usage] of usages) {
      const then = before?.usages.get(path);
      rates.set(path, then === undefined ? UNKNOWN : rateBetween(then, usage, passedMs));
    }
    this.#before = { usages, atMs };
    this.#rates = rates;
    return rates;
  }
}

function rateBetween(then: CgroupUsage, now: CgroupUsage, passedMs: number): UsageRate {
  const nanos = risen(then.cpuNanos, now.cpuNanos);
  const periods = risen(then.throttling?.periods, now.throttling?.periods);
  const throttled = risen(then.throttling?.throttledPeriods, now.throttling?.throttledPeriods);
  return {
    cpuNanoCores: nanos === null ? null : Math.round((nanos / passedMs) * 1000),
    throttledPermille: periods === null || throttled === null ? null : permille(throttled, periods),
  };
}

/** A counter that fell is one of a new cgroup of the same path. */
const risen = (then: number | null | undefined, now: number | null | undefined): number | null =>
  typeof then !== "number" || typeof now !== "number" || now < then ? null : now - then;

/** The kernel counts a throttled period before the period is over. */
const permille = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.min(1000, Math.round((part * 1000) / whole));
