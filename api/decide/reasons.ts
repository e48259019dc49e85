import type { Explain, Numbers, PlaceReasons, Reason } from "../model/decision.ts";

/** Collects the reasons of one decision by place, whose long path is so told once; with `explain: off` it collects nothing. */
export class Reasons {
  readonly list: PlaceReasons[] = [];
  readonly #off: boolean;
  /** Of the first so many of the list; the others follow when somebody asks. */
  readonly #places = new Map<string, Reason[]>();
  #indexed = 0;
  #at: string | undefined;
  #because: Reason[] = [];
  constructor(explain: Explain) {
    this.#off = explain === "off";
  }
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  add(code: string, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    if (at !== this.#at) this.#turnTo(at, this.#known(at));
    this.#because.push(numbers === undefined ? { code, field } : { code, field, numbers });
  }
  /** The first reason of a place: who knows that nothing was said of it yet spares, for thousands of them, the looking up. */
  addFirst(code: string, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    this.#turnTo(at, undefined);
    this.#because.push(numbers === undefined ? { code, field } : { code, field, numbers });
  }
  #turnTo(at: string, known: Reason[] | undefined): void {
    this.#at = at;
    this.#because = known ?? [];
    if (known === undefined) this.list.push({ at, because: this.#because });
  }
  #known(at: string): Reason[] | undefined {
    for (; this.#indexed < this.list.length; this.#indexed++) {
      const { at, because } = this.list[this.#indexed] as PlaceReasons;
      this.#places.set(at, because as Reason[]);
    }
    return this.#places.get(at);
  }
}
