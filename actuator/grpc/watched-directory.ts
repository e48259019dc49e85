import { type FSWatcher, lstatSync, watch } from "node:fs";
import { fileIdentity } from "../core/addresses.ts";

/**
 * A timer that fires at the earliest requested moment since it last fired, so that frequent requests do not postpone
 * it. It does not keep the process alive.
 */
export class CoalescedTimer {
  readonly #ring: () => void;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #isStopped = false;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** Requests that it fires in `ms` or sooner. */
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
  /** Stops for good. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}

/** Reports names that appear and disappear in a directory; it may miss some, so a slow scan runs too. */
export class WatchedDirectory {
  readonly #path: string;
  readonly #onEvent: (name: string | null) => void;
  #watched: { readonly identity: string; readonly watcher: FSWatcher } | undefined;

  constructor(path: string, onEvent: (name: string | null) => void) {
    this.#path = path;
    this.#onEvent = onEvent;
  }

  /** Watches the directory that is now at the path: after a removal, a new one must be watched again. */
  renew(): void {
    try {
      const identity = fileIdentity(lstatSync(this.#path, { bigint: true }));
      if (this.#watched?.identity === identity) return;
      this.close();
      const watcher = watch(this.#path, { persistent: false }, (_event, name) => this.#onEvent(name));
      watcher.on("error", () => watcher.close());
      this.#watched = { identity, watcher };
    } catch {
      // the slow scan continues without it
      this.close();
    }
  }
  close(): void {
    this.#watched?.watcher.close();
    this.#watched = undefined;
  }
}
