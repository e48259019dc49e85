import type { Explain, Reason } from "../model/decision.ts";

type Numbers = Omit<Reason, "code" | "at" | "field">;

/** Collects the reasons of one decision; with `explain: off` it collects nothing. */
export class Reasons {
  readonly list: Reason[] = [];
  readonly #off: boolean;
  constructor(explain: Explain) {
    this.#off = explain === "off";
  }
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  add(code: string, at: string, field: string, numbers?: Numbers): void {
    if (!this.#off) this.list.push({ code, at, field, ...numbers });
  }
}
