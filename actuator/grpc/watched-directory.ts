import { type FSWatcher, lstatSync, watch } from "node:fs";
import { fileIdentity } from "./socket-path.ts";

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
