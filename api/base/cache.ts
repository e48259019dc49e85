/**
 * A least-recently-used cache: at most `max` values, whose lengths (as `set` receives them) sum to at most a maximum. `isInUse`: whether
 * an old value is to keep its place, so that the newest one finds none. Of values that are used in turns, and are too many, every one
 * would else be dropped just before its next use.
 */
export class Lru<K, V> {
  readonly #max: number;
  readonly #maxLength: number;
  readonly #isInUse: (old: V, newest: V) => boolean;
  readonly #entries = new Map<K, { readonly value: V; readonly length: number }>();
  #length = 0;

  constructor(
    max: number,
    maxLength = Number.POSITIVE_INFINITY,
    isInUse: (old: V, newest: V) => boolean = () => false,
  ) {
    this.#max = max;
    this.#maxLength = maxLength;
    this.#isInUse = isInUse;
  }

  get(key: K): V | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, found);
    return found.value;
  }

  /** The value that the key has already, else this one, which it has from now on: of equal objects, all users get the first. */
  getOrInsert(key: K, value: V): V {
    const found = this.get(key);
    if (found === undefined) this.set(key, value);
    return found ?? value;
  }

  /**
   * Sets or replaces a value and returns the values that were dropped to make room. The newest value is dropped only if all others are in
   * use.
   */
  set(key: K, value: V, length = 0): readonly V[] {
    this.delete(key);
    this.#length += length;
    this.#entries.set(key, { value, length });
    const gone: V[] = [];
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size === 1) break;
      if (this.#entries.size <= this.#max && this.#length <= this.#maxLength) break;
      const isStaying = this.#isInUse(entry.value, value);
      this.delete(isStaying ? key : oldest);
      gone.push(isStaying ? value : entry.value);
    }
    return gone;
  }

  delete(key: K): void {
    this.#length -= this.#entries.get(key)?.length ?? 0;
    this.#entries.delete(key);
  }

  deleteWhere(isGone: (value: V) => boolean): void {
    for (const [key, { value }] of this.#entries) if (isGone(value)) this.delete(key);
  }
}

/**
 * Caches what a pure function makes of a text, since a node repeats a few texts many times. The cache is emptied when
 * it would exceed `max` entries: keeping them in order of use would cost as much as parsing a quantity.
 */
export function memo<V>(max: number, make: (text: string) => V): (text: string) => V {
  const known = new Map<string, V>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const made = make(text);
    if (known.size >= max) known.clear();
    known.set(text, made);
    return made;
  };
}

/**
 * Remembers what a pure function made of an object, for as long as the object lives. `rest`: what else it takes to make it, which one
 * object always comes with. It is a hidden member of the object: a full collection walks each entry of a WeakMap while nothing else
 * runs, and a fleet has a million of them. INVARIANT: nobody changes the object.
 */
export function perObject<K extends object, V, R extends readonly unknown[]>(
  make: (object: K, ...rest: R) => V,
): (object: K, ...rest: R) => V {
  const name = Symbol(make.name);
  /** The results for objects that take no member, such as frozen ones. */
  const ofFrozen = new WeakMap<K, V>();
  return (object, ...rest) => {
    const known = (object as { readonly [name]?: V })[name];
    const found = known === undefined ? ofFrozen.get(object) : known;
    if (found !== undefined) return found;
    const made = make(object, ...rest);
    // not enumerable: a copy of the object has none of it
    if (Object.isExtensible(object)) Object.defineProperty(object, name, { value: made });
    else ofFrozen.set(object, made);
    return made;
  };
}

/**
 * Results of pure functions, by the object that each was made from. INVARIANT: nobody changes the objects or the
 * results.
 */
export interface PerOwnerEntries {
  get<V>(object: object): V | undefined;
  set(object: object, made: unknown): void;
}
/** A cache of values derived from one owner's objects; cleared when an input in `#of` is a different object. */
export class PerOwnerCache {
  #of: readonly unknown[] = [];
  #known: ReadonlyMap<object, unknown> = new Map();

  /** Begins a round. An entry that was not read in a whole round is dropped with the next one. */
  in(...of: readonly unknown[]): PerOwnerEntries {
    const isSame = of.length === this.#of.length && of.every((one, i) => one === this.#of[i]);
    const [before, now] = [isSame ? this.#known : new Map(), new Map<object, unknown>()];
    [this.#of, this.#known] = [of, now];
    return {
      get: <V>(object: object) => {
        const known = now.get(object) ?? before.get(object);
        if (known !== undefined) now.set(object, known);
        return known as V | undefined;
      },
      set: (object, made) => void now.set(object, made),
    };
  }
}
