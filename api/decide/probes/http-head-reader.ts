import { HttpFields } from "./http-fields.ts";
import { type HttpHead, headOf, statusOf } from "./http-head.ts";

/** One head of an answer, read as it comes: each byte is looked at once, however small the pieces are. */
export class HeadReader {
  /** The line that has no end yet. */
  #parts: string[] = [];
  #first: string | undefined;
  #status = 0;
  readonly #fields = new HttpFields();
  /** Of the head until now. */
  bytes = 0;
  /** Go's words for what is wrong; undefined: nothing yet. */
  error: string | undefined;
  /** Undefined: it is not whole. */
  head: HttpHead | undefined;

  /** Reads a text from there on, as far as the head goes; returns where that is. */
  read(text: string, from: number): number {
    let at = from;
    while (this.error === undefined && this.head === undefined && at < text.length) {
      const end = text.indexOf("\n", at);
      if (end < 0) {
        this.#parts.push(text.slice(at));
        this.bytes += text.length - at;
        return text.length;
      }
      this.bytes += end + 1 - at;
      this.#take(this.#line(text.slice(at, end)));
      at = end + 1;
    }
    return at;
  }
  /** What is wrong with what there is, in Go's words: it looks at as much of a line as came. */
  errorAtEnd(): string | undefined {
    const line = this.#line("");
    if (line !== "") this.#take(line);
    return this.error ?? this.#fields.end();
  }

  #line(last: string): string {
    let line = last;
    if (this.#parts.length > 0) {
      line = this.#parts.join("") + last;
      this.#parts = [];
    }
    return line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  #take(line: string): void {
    if (this.#first === undefined) {
      this.#first = line;
      const status = statusOf(line);
      if (status.ok) this.#status = status.value;
      else this.error = status.error;
    } else if (line === "") this.#end(this.#first);
    else this.error = this.#fields.push(line);
  }
  #end(first: string): void {
    this.error = this.#fields.end();
    if (this.error !== undefined) return;
    const head = headOf(first, this.#status, this.#fields.told);
    if (head.ok) this.head = head.value;
    else this.error = head.error;
  }
}
