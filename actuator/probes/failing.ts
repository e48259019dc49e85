import type { FailedContainer, KnownFailure } from "../../api/model/probe-guard.ts";

/** Containers whose last attempt failed, and that have not failed so often that they are to be killed. */
export class Failing {
  readonly #windowMs: number;
  readonly #last = new Map<string, FailedContainer & { readonly atMs: number }>();

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  note(failure: FailedContainer, atMs: number): void {
    this.#last.set(failure.containerId, { ...failure, atMs });
  }
  forget(containerId: string): void {
    this.#last.delete(containerId);
  }

  /** `known` with those that failed within the window; a kill that is held stays held. */
  among(known: readonly KnownFailure[], nowMs: number): readonly KnownFailure[] {
    const all = new Map(known.map((failure) => [failure.containerId, failure]));
    for (const [containerId, { atMs, ...failure }] of this.#last) {
      const failedAgoMs = Math.round(nowMs - atMs);
      if (failedAgoMs > this.#windowMs) this.#last.delete(containerId);
      else if ((all.get(containerId)?.heldForMs ?? null) === null)
        all.set(containerId, { ...failure, failedAgoMs, heldForMs: null });
    }
    return [...all.values()];
  }
}
