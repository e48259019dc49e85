import { nextAtPhase, phaseOf } from "../../api/decide/probes/spread.ts";

/** Which number of those with one period a probe has: the first that is free, so that what is left stays even. */
export class Phases {
  readonly #taken = new Map<number, Set<number>>();
  /** Below it no number of that period is free. */
  readonly #lowest = new Map<number, number>();

  take(periodMs: number): number {
    const taken = this.#taken.get(periodMs) ?? new Set();
    let index = this.#lowest.get(periodMs) ?? 0;
    while (taken.has(index)) index++;
    taken.add(index);
    this.#taken.set(periodMs, taken);
    this.#lowest.set(periodMs, index + 1);
    return index;
  }

  give(periodMs: number, index: number): void {
    const taken = this.#taken.get(periodMs);
    taken?.delete(index);
    this.#lowest.set(periodMs, Math.min(index, this.#lowest.get(periodMs) ?? 0));
    if (taken?.size === 0) {
      this.#taken.delete(periodMs);
      this.#lowest.delete(periodMs);
    }
  }

  /** When the probe with this number is due first, not before `nowMs`. */
  static nextMs(index: number, periodMs: number, epochMs: number, nowMs: number): number {
    return nextAtPhase(phaseOf(index, periodMs), periodMs, epochMs, nowMs);
  }
}
