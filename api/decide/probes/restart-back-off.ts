const FIRST_MS = 10_000;
const LONGEST_MS = 300_000;
/** A container that lived for so long since its back-off was last raised starts from the first delay again. */
const RESET_MS = 2 * LONGEST_MS;

/** CrashLoopBackOff of one container. kubelet 1.36: doBackOff, flowcontrol.Backoff. */
export class RestartBackOff {
  #entry: { readonly delayMs: number; readonly updatedAtMs: number } | null = null;

  /** When it may start again; `endedAtMs` is the end of the newest dead one that is known. */
  untilMs(endedAtMs: number, nowMs: number): number {
    const entry = this.#entry;
    if (entry === null || endedAtMs - entry.updatedAtMs > RESET_MS) return nowMs;
    return Math.max(nowMs, endedAtMs + entry.delayMs);
  }
  /** One more start. */
  raise(endedAtMs: number, nowMs: number): void {
    const isFirst = this.#entry === null || endedAtMs - this.#entry.updatedAtMs > RESET_MS;
    const delayMs = isFirst ? FIRST_MS : Math.min((this.#entry?.delayMs ?? 0) * 2, LONGEST_MS);
    this.#entry = { delayMs, updatedAtMs: nowMs };
  }
}
