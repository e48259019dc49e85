import type { Store } from "../../db/store.ts";
import { err, type Result } from "../model/result.ts";
import type { Problem } from "../service/problem.ts";

/** Remembers the last answer that a damaged file prevented, in whichever thread, until the same one is given. */
export class SeenDamage {
  #last: { readonly path: string; readonly message: string } | null = null;

  see(path: string, outcome: Result<unknown, Problem>): void {
    if (!outcome.ok && outcome.error.isDamaged === true) this.#last = { path, message: outcome.error.detail };
    else if (outcome.ok && this.#last?.path === path) this.#last = null;
  }

  /** The store, which is not ready meanwhile: its own check may meet only what is whole. */
  over(store: Store): Store {
    return {
      ...store,
      ready: async (nowMs) =>
        this.#last === null ? store.ready(nowMs) : err({ code: "corrupt", message: this.#last.message }),
    };
  }
}
