import { type FSWatcher, lstatSync, watch } from "node:fs";
import { fileIdentity } from "../core/addresses.ts";

/**
 * One timer that rings at the soonest of the moments that were asked for since it last rang, so that nobody who asks
 * often puts it off. It keeps no process alive.
 */
export class CoalescedTimer {
  readonly #ring: () => void;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #isStopped = false;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** In so many ms, or sooner. */
  in(ms: number): void {
    const dueAt = performance.now() + ms;
    if (this.#isStopped || (this.#timer !== undefined && this.#dueAt <= dueAt)) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#ring();
    }, ms).unref();
  }
  /** For good. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}

/** Hears of names that come and go in a directory; it may miss some, so a slow look goes on beside it. */
export class WatchedDirectory {
  readonly #path: string;
  readonly #onEvent: (name: string | null) => void;
  #watched: { readonly identity: string; readonly watcher: FSWatcher } | undefined;

  constructor(path: string, onEvent: (name: string | null) => void) {
    this.#path = path;
    this.#onEvent = onEvent;
  }

  /** Watches what is at the path now: a directory that was removed and made again is another. */
  renew(): void {
    try {
      const identity = fileIdentity(lstatSync(this.#path, { bigint: true }));
      if (this.#watched?.identity === identity) return;
      this.close();
      const watcher = watch(this.#path, { persistent: false }, (_event, name) => this.#onEvent(name));
      watcher.on("error", () => watcher.close());
      this.#watched = { identity, watcher };
    } catch {
      // the slow look goes on without it
      this.close();
    }
  }
  close(): void {
    this.#watched?.watcher.close();
    this.#watched = undefined;
  }
}
