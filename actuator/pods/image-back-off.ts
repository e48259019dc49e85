/** kubelet 1.36: imageBackOff, the backOffPeriod and MaxImageBackOff that it is made with. */
const FIRST_MS = 10_000;
const LONGEST_MS = 300_000;

interface Entry {
  delayMs: number;
  updatedAtMs: number;
  /** Why the last pull failed. */
  failure: string;
}

/**
 * How long an image that cannot be pulled is left alone, by pod and image: twice as long after each failure, from 10
 * seconds to 5 minutes. Forgotten after ten minutes without one. client-go: flowcontrol.Backoff.
 */
export class ImageBackOff {
  readonly #entries = new Map<string, Entry>();

  /** Why the last pull failed, while it is too early for the next; null: it may be tried. */
  heldBackBy(key: string, nowMs: number): string | null {
    const entry = this.#entries.get(key);
    if (entry === undefined || hasExpired(entry, nowMs)) return null;
    return nowMs - entry.updatedAtMs < entry.delayMs ? entry.failure : null;
  }

  failed(key: string, failure: string, nowMs: number): void {
    const entry = this.#entries.get(key);
    const isFirst = entry === undefined || hasExpired(entry, nowMs);
    const delayMs = isFirst ? FIRST_MS : Math.min(entry.delayMs * 2, LONGEST_MS);
    this.#entries.set(key, { delayMs, updatedAtMs: nowMs, failure });
  }

  /** A pull that works changes nothing for its own image, as in the kubelet; what is long past goes. */
  sweep(nowMs: number): void {
    for (const [key, entry] of this.#entries) if (hasExpired(entry, nowMs)) this.#entries.delete(key);
  }
}
const hasExpired = ({ updatedAtMs }: Entry, nowMs: number): boolean => nowMs - updatedAtMs > 2 * LONGEST_MS;
