/** The values used last by their keys, at most so many. */
export interface Lru<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
}

export function lru<V>(most: number): Lru<V> {
  const kept = new Map<string, V>();
  return {
    get: (key) => {
      const value = kept.get(key);
      if (value === undefined) return undefined;
      kept.delete(key);
      kept.set(key, value);
      return value;
    },
    set: (key, value) => {
      kept.delete(key);
      kept.set(key, value);
      if (kept.size > most) kept.delete(kept.keys().next().value as string);
    },
  };
}
