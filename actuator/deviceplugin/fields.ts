const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;
const MOST_BYTES = 10;

/** The fields of a protobuf message, one after the other. Nothing is made for a field: of lists there are thousands. */
export class Fields {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  #isBroken = false;
  /** Of the field that was read last: its number and its type. */
  tag = 0;
  /** Where what it holds stands, without its own tag and length. */
  begin = 0;
  /** Of what is a varint. */
  value = 0;

  constructor(bytes: Buffer, begin: number, end: number) {
    this.#bytes = bytes;
    this.#at = begin;
    this.#end = end;
  }

  /** The end of the field that was read last. */
  get end(): number {
    return this.#at;
  }
  /** It was cut short or malformed: what was read before stands. */
  get isBroken(): boolean {
    return this.#isBroken;
  }
  /** From there on. */
  moveTo(at: number): void {
    this.#at = at;
  }

  /** False: there is none, or none that can be read. */
  next(): boolean {
    if (this.#isBroken || this.#at >= this.#end) return false;
    this.tag = this.#varint();
    const type = this.tag % 8;
    this.value = type === VARINT || type === LENGTH ? this.#varint() : 0;
    this.begin = this.#at;
    if (type === LENGTH) this.#at += this.value;
    else if (type === FIXED64) this.#at += 8;
    else if (type === FIXED32) this.#at += 4;
    else if (type !== VARINT) this.#isBroken = true;
    if (this.tag < 8 || this.#at > this.#end || (type === LENGTH && this.value < 0)) this.#isBroken = true;
    return !this.#isBroken;
  }

  /** A negative number has as many bytes as there can be; all of them are -1 here. Past the end where it is cut short. */
  #varint(): number {
    let value = 0;
    for (let i = 0; i < MOST_BYTES; i++) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      value += i === 0 ? byte & 0x7f : (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return i === MOST_BYTES - 1 ? -1 : value;
    }
    this.#at = Number.MAX_SAFE_INTEGER;
    return 0;
  }
}
