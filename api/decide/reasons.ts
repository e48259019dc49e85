import type { Explain, Numbers, PlaceReasons, Reason } from "../model/decision.ts";

/** Collects the reasons of one decision by place, whose long path is so told once; with `explain: off` it collects nothing. */
export class Reasons {
  readonly list: PlaceReasons[] = [];
  readonly #off: boolean;
  readonly #places = new Map<string, Reason[]>();
  #at: string | undefined;
  #because: Reason[] = [];
  constructor(explain: Explain) {
    this.#off = explain === "off";
  }
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  add(code: string, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    if (at !== this.#at) this.#turnTo(at);
    this.#because.push(numbers === undefined ? { code, field } : { code, field, numbers });
  }
  #turnTo(at: string): void {
    this.#at = at;
    const known = this.#places.get(at);
    this.#because = known ?? [];
    if (known !== undefined) return;
    this.#places.set(at, this.#because);
    this.list.push({ at, because: this.#because });
  }
}
