const LINE = /\r?\n/;

/** What came of an answer's heads; each byte is looked at once, however small the pieces are. */
export class HeadText {
  #parts: string[] = [];
  /** The last bytes, which may be half of an end. */
  #tail = "";
  #hasLine = false;
  /** Of all heads until now. */
  bytes = 0;

  /** True: there may be a whole head. */
  push(text: string): boolean {
    this.bytes += text.length;
    this.#parts.push(text);
    this.#hasLine ||= text.includes("\n");
    const edge = this.#tail + text;
    this.#tail = edge.slice(-3);
    return /\n\r?\n/.test(edge);
  }
  /** The lines of the first head, without the empty one; undefined: none is whole. */
  take(): readonly string[] | undefined {
    const text = this.#joined();
    const end = /\r?\n\r?\n/.exec(text);
    if (end === null) return undefined;
    const rest = text.slice(end.index + end[0].length);
    this.#parts = [rest];
    this.#hasLine = rest.includes("\n");
    return text.slice(0, end.index).split(LINE);
  }
  /** Undefined: it is not whole. */
  firstLine(): string | undefined {
    return this.#hasLine ? this.#joined().split(LINE, 1)[0] : undefined;
  }
  /** What there is, the last line as far as it came. */
  linesSoFar(): readonly string[] {
    return this.#joined()
      .replace(/\r?\n$/, "")
      .split(LINE);
  }
  takeRest(): string {
    const rest = this.#joined();
    this.#parts = [];
    return rest;
  }
  #joined(): string {
    const text = this.#parts.join("");
    this.#parts = [text];
    return text;
  }
}
