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
  #last: Reason | undefined;
  constructor(explain: Explain) {
    this.#off = explain === "off";
  }
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  add(code: string, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    const reason = this.#reason(code, field, numbers);
    const known = at === this.#at ? this.#because : this.#known(at);
    if (known === undefined) {
      this.#begin(at, reason);
      return;
    }
    this.#at = at;
    this.#because = known;
    known.push(reason);
  }
  /** The first reason of a place: who knows that nothing was said of it yet spares, for thousands of them, the looking up. */
  addFirst(code: string, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    this.#begin(at, this.#reason(code, field, numbers));
  }
  /** With its first reason in it from the start the list of a place takes a fraction of the memory. */
  #begin(at: string, reason: Reason): void {
    this.#at = at;
    this.#because = [reason];
    this.list.push({ at, because: this.#because });
  }
  /** Thousands of places in a row often have the very same reason, which is then one object. */
  #reason(code: string, field: string, numbers: Numbers | undefined): Reason {
    const last = this.#last;
    if (last !== undefined && last.code === code && last.field === field && last.numbers === numbers) return last;
    this.#last = numbers === undefined ? { code, field } : { code, field, numbers };
    return this.#last;
  }
  #known(at: string): Reason[] | undefined {
    for (; this.#indexed < this.list.length; this.#indexed++) {
      const { at, because } = this.list[this.#indexed] as PlaceReasons;
      this.#places.set(at, because as Reason[]);
    }
    return this.#places.get(at);
  }
}
