/** Numbers drawn from a seed (mulberry32): the same seed gives the same numbers. */
export interface Draws {
  readonly seed: number;
  /** 0 .. n-1. */
  below(n: number): number;
  /** True with a probability of 1 in `n`. */
  chance(n: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** A whole number below `n`; each magnitude is equally likely, so most are small. */
  spread(n: number): number;
}

export function draws(seed: number): Draws {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return {
    seed,
    below,
    chance: (n) => below(n) === 0,
    pick: <T>(list: readonly T[]): T => list[below(list.length)] as T,
    spread: (n) => Math.floor(Math.exp(next() * Math.log(n)) - 1),
  };
}

/** A shuffled copy. */
export function shuffled<T>(list: readonly T[], d: Draws): T[] {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = d.below(i + 1);
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}

/** Counts how often a property test reached each branch, to detect branches that are rarely reached. */
export class Met {
  readonly counts: Record<string, number> = {};
  /** Counts `name` if `happened`; a name that never happened has the count 0. */
  note(name: string, happened = true): void {
    this.counts[name] = (this.counts[name] ?? 0) + (happened ? 1 : 0);
  }
  /** The names that were counted fewer than `least` times. */
  hardly(least: number): readonly string[] {
    return Object.entries(this.counts)
      .filter(([, n]) => n < least)
      .map(([name, n]) => `${name}: ${n}`);
  }
}
