/** Between two lists of one plugin that are looked at; of those that come in between only the newest counts. */
const SHORTEST_REST_MS = 200;
const LONGEST_REST_MS = 2_000;
/** Longer than its last rest, where a list has waited for the end of that. */
const GROWTH = 1.5;
/** After a look the loop rests this many times as long as the look took, so all looks together take one part in so many. */
const REST_PER_LOOK = 25;

interface ReadList {
  /** performance.now() */
  readonly at: number;
  readonly restMs: number;
}

/**
 * The rest of a plugin whose list was looked at. Plugins that send little are looked at at once; who goes on sending
 * rests longer and longer, and the more of them there are the less often is each.
 */
export class ListThrottle {
  /** When each was looked at last, the newest last. */
  readonly #reads = new Map<object, ReadList>();

  /** In ms. `plugin` was looked at now, and that took so many ms. `hasWaited`: its list had come before it was due. */
  restAfter(plugin: object, tookMs: number, hasWaited: boolean): number {
    const now = performance.now();
    const before = this.#reads.get(plugin)?.restMs ?? 0;
    this.#reads.delete(plugin);
    for (const [other, { at }] of this.#reads) {
      if (now - at <= LONGEST_REST_MS) break;
      this.#reads.delete(other);
    }
    const leastMs = hasWaited ? before * GROWTH : SHORTEST_REST_MS;
    const restMs = Math.max(leastMs, SHORTEST_REST_MS, tookMs * REST_PER_LOOK * (this.#reads.size + 1));
    const look = { at: now, restMs: Math.min(restMs, LONGEST_REST_MS) };
    this.#reads.set(plugin, look);
    return look.restMs;
  }
}
