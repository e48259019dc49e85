/** Between two lists of one plugin that are looked at; of those that come in between only the newest counts. */
const SHORTEST_REST_MS = 200;
const LONGEST_REST_MS = 2_000;
/** So many times as long as a look took is rested: what all looks together may take of the loop is 1 of so many. */
const REST_PER_LOOK = 25;

/**
 * How long a plugin whose list was looked at rests. Plugins that send little are looked at at once; of those that send
 * without end, the more there are the less often is each.
 */
export class LookLoad {
  /** When each was looked at last: performance.now(), the newest last. */
  readonly #looks = new Map<object, number>();

  /** In ms. `plugin` was looked at now, and that took so many ms. */
  restAfter(plugin: object, tookMs: number): number {
    const now = performance.now();
    this.#looks.delete(plugin);
    this.#looks.set(plugin, now);
    for (const [other, at] of this.#looks) {
      if (now - at <= LONGEST_REST_MS) break;
      this.#looks.delete(other);
    }
    const restMs = tookMs * REST_PER_LOOK * this.#looks.size;
    return Math.max(SHORTEST_REST_MS, Math.min(restMs, LONGEST_REST_MS));
  }
}
