/** The last values by their keys, at most `most` of them and of so much length together; who was asked for least lately goes first. */
export class Kept<V> {
  readonly #most: number;
  readonly #mostLength: number;
  readonly #entries = new Map<string, { readonly value: V; readonly length: number }>();
  #length = 0;

  constructor(most: number, mostLength: number) {
    this.#most = most;
    this.#mostLength = mostLength;
  }

  get(key: string): V | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, found);
    return found.value;
  }

  /** In the place of what had the key. The newest stays in any case. */
  set(key: string, value: V, length: number): void {
    this.#length += length - (this.#entries.get(key)?.length ?? 0);
    this.#entries.delete(key);
    this.#entries.set(key, { value, length });
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size === 1) break;
      if (this.#entries.size <= this.#most && this.#length <= this.#mostLength) break;
      this.#entries.delete(oldest);
      this.#length -= entry.length;
    }
  }
}
