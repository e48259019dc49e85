/** Random numbers from a seed, the same on every machine (mulberry32). */
export interface Draws {
  /** 0 <= n < limit. */
  below(limit: number): number;
  /** True with a probability of 1 in `n`. */
  chance(n: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

export function draws(seed: number): Draws {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    chance: (n) => below(n) === 0,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    shuffled: (items) => {
      const left = [...items];
      const out: typeof left = [];
      while (left.length > 0) out.push(...left.splice(below(left.length), 1));
      return out;
    },
  };
}
