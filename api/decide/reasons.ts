import type { Explain, Numbers, Reason } from "../model/decision.ts";

/** Collects the reasons of one decision; with `explain: off` it collects nothing. */
export class Reasons {
  readonly list: Reason[] = [];
  readonly #off: boolean;
  constructor(explain: Explain) {
    this.#off = explain === "off";
  }
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  add(code: string, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    this.list.push(numbers === undefined ? { code, at, field } : { code, at, field, numbers });
  }
}
