/**
 * The last values by key: at most `max` of them, and of at most so much length together, as `set` is told it; the one that
 * was asked for least lately goes first.
 */
export class Lru<K, V> {
  readonly #max: number;
  readonly #maxLength: number;
  readonly #entries = new Map<K, { readonly value: V; readonly length: number }>();
  #length = 0;

  constructor(max: number, maxLength = Number.POSITIVE_INFINITY) {
    this.#max = max;
    this.#maxLength = maxLength;
  }

  keys(): readonly K[] {
    return [...this.#entries.keys()];
  }

  get(key: K): V | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, found);
    return found.value;
  }

  /** In the place of what had the key. The newest stays in any case. Answers what had to go for it. */
  set(key: K, value: V, length = 0): readonly V[] {
    this.delete(key);
    this.#length += length;
    this.#entries.set(key, { value, length });
    const gone: V[] = [];
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size === 1) break;
      if (this.#entries.size <= this.#max && this.#length <= this.#maxLength) break;
      this.delete(oldest);
      gone.push(entry.value);
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
 * Remembers what a pure function made of the last texts: a node repeats a few texts many times. At most `max`, and none of
 * them once there would be more: to keep their order would cost what a quantity costs to read.
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

/** Remembers what a pure function made of an object, for as long as the object lives. INVARIANT: nobody changes the object. */
export function perObject<K extends object, V>(make: (object: K) => V): (object: K) => V {
  const known = new WeakMap<K, V>();
  return (object) => {
    const found = known.get(object);
    if (found !== undefined) return found;
    const made = make(object);
    known.set(object, made);
    return made;
  };
}

/**
 * What pure functions made of the objects of one owner, each in a context that is an object too: it is found again while both are the
 * very same. INVARIANT: nobody changes any of them.
 */
export class Kept {
  readonly #known = new WeakMap<object, { readonly context: object; readonly made: unknown }>();

  /** INVARIANT: of one object one kind of thing is kept. */
  get<V>(object: object, context: object): V | undefined {
    const known = this.#known.get(object);
    return known?.context === context ? (known.made as V) : undefined;
  }
  set(object: object, context: object, made: unknown): void {
    this.#known.set(object, { context, made });
  }
}
