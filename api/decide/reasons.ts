import type { Explain } from "../model/decision.ts";
import type { Numbers, PlaceReasons, Reason } from "../model/forms.ts";

/** Takes reasons with these codes: those of any kind that has them all. */
export interface ReasonRecorder<Code extends string> {
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  readonly add: (code: Code, at: string, field: string, numbers?: Numbers) => void;
}

/**
 * Collects the reasons of one decision, grouped by place, since paths are long; with `explain: off` it collects
 * nothing.
 */
export class Reasons<Code extends string> implements ReasonRecorder<Code> {
  readonly list: PlaceReasons<Code>[] = [];
  readonly explain: Explain;
  readonly #off: boolean;
  /** The reasons by place, for the first `#indexed` entries of the list; the others are added on demand. */
  readonly #places = new Map<string, Reason<Code>[]>();
  #indexed = 0;
  #at: string | undefined;
  #because: Reason<Code>[] = [];
  #last: Reason<Code> | undefined;
  constructor(explain: Explain) {
    this.explain = explain;
    this.#off = explain === "off";
  }
  /** `at`: the cgroup or resource; `field`: the value of it that this explains. */
  add(code: Code, at: string, field: string, numbers?: Numbers): void {
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
  /** Adds the first reason of a place, without the lookup that `add` needs. */
  addFirst(code: Code, at: string, field: string, numbers?: Numbers): void {
    if (this.#off) return;
    this.#begin(at, this.#reason(code, field, numbers));
  }
  /** Adds separately collected places that have no other reasons; the objects are reused. */
  append(places: readonly PlaceReasons<Code>[]): void {
    this.list.push(...places);
  }
  /** Creates a place's list with its first reason in it, which takes a fraction of the memory. */
  #begin(at: string, reason: Reason<Code>): void {
    this.#at = at;
    this.#because = [reason];
    this.list.push({ at, because: this.#because });
  }
  /** Thousands of places in a row often have the very same reason, which is then one object. */
  #reason(code: Code, field: string, numbers: Numbers | undefined): Reason<Code> {
    const last = this.#last;
    if (last !== undefined && last.code === code && last.field === field && last.numbers === numbers) return last;
    this.#last = numbers === undefined ? { code, field } : { code, field, numbers };
    return this.#last;
  }
  #known(at: string): Reason<Code>[] | undefined {
    for (; this.#indexed < this.list.length; this.#indexed++) {
      const { at, because } = this.list[this.#indexed] as PlaceReasons<Code>;
      this.#places.set(at, because as Reason<Code>[]);
    }
    return this.#places.get(at);
  }
}
