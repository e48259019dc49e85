import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeProbeGuardAsk, type KnownFailure } from "../../api/model/probe-guard.ts";
import { replaceFile } from "../journal-file.ts";

export interface GuardMemoryOptions {
  readonly stateDir: string;
  /** Wall clock. */
  readonly nowMs: () => number;
  /** Told once, until it can be written again. */
  readonly onFault: (message: string) => void;
}

/** What the guard knows, in a file: a daemon that starts again holds on what the one before it held. */
export class GuardMemory {
  readonly #options: GuardMemoryOptions;
  readonly #file: string;
  #isBroken = false;

  constructor(options: GuardMemoryOptions) {
    this.#options = options;
    this.#file = join(options.stateDir, "probe-guard.json");
  }

  /** As it stands now; empty where nothing was kept that can be read. */
  read(): readonly KnownFailure[] {
    try {
      const { atMs, known } = JSON.parse(readFileSync(this.#file, "utf8")) as Readonly<Record<string, unknown>>;
      const decoded = decodeProbeGuardAsk({ known });
      if (!decoded.ok || typeof atMs !== "number") return [];
      // a clock that was set back makes nothing younger
      const sinceMs = Math.max(0, this.#options.nowMs() - atMs);
      return decoded.value.known.map((failure) => later(failure, sinceMs));
    } catch {
      return [];
    }
  }

  keep(known: readonly KnownFailure[]): void {
    const { nowMs, onFault } = this.#options;
    const written = replaceFile(this.#file, [JSON.stringify({ atMs: nowMs(), known })]);
    if (!written.ok && !this.#isBroken)
      onFault(`${written.error.message}: after a restart the probe guard would not know what it holds`);
    this.#isBroken = !written.ok;
  }
}

/** In whole milliseconds: it is written down, and asked again it must be the same. */
export const later = (failure: KnownFailure, ms: number): KnownFailure => ({
  ...failure,
  failedAgoMs: Math.round(failure.failedAgoMs + ms),
  heldForMs: failure.heldForMs === null ? null : Math.round(failure.heldForMs + ms),
});
