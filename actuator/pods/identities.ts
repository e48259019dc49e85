/** A number for each object, the same one for as long as it is the same object. */
export class Identities {
  readonly #numbers = new WeakMap<object, number>();
  #next = 1;

  of(object: object | null | undefined): number {
    if (object === null || object === undefined) return 0;
    const known = this.#numbers.get(object);
    if (known !== undefined) return known;
    this.#numbers.set(object, this.#next);
    return this.#next++;
  }
}
