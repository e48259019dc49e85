import { HttpFields } from "./http-fields.ts";

/** Of a size's line and its end. */
const MOST_LINE_BYTES = 4096;
const MOST_TRAILER_BYTES = 4096;
/** Of what is no data: so much a chunk is free, and so much all in all beyond twice the data. */
const FREE_BYTES = 16;
const MOST_EXCESS_BYTES = 16 * 1024;
const TRAILER_END = "\r\n\r\n";

/** A body in chunks, as Go reads it; texts of bytes. Go 1.26: net/http/internal, chunkedReader; net/http, body.readTrailer. */
export class ChunkReader {
  /** Of a line, of a chunk's end or of a trailer: what came of it. */
  #begun = "";
  /** Bytes of the chunk that are to come; null: its size is. */
  #left: number | null = null;
  #isTrailer = false;
  #excess = 0;
  /** Go's words for what is wrong; undefined: nothing yet. */
  error: string | undefined;
  isDone = false;

  /** What belongs to the body. */
  push(text: string): string {
    let body = "";
    for (let at = 0; at < text.length && this.error === undefined && !this.isDone; ) {
      if (this.#left !== null && this.#left > 0) {
        const part = text.slice(at, at + this.#left);
        body += part;
        at += part.length;
        this.#left -= part.length;
      } else if (this.#isTrailer) at = this.#trailer(text, at);
      else at = this.#left === null ? this.#size(text, at) : this.#end(text, at);
    }
    return body;
  }
  /** Of a connection that ends here. */
  endError(): string {
    if (!this.#isTrailer) return "unexpected EOF";
    const isLong = this.#begun.length >= 2;
    return isLong ? "http: suspiciously long trailer after chunked body" : "http: unexpected EOF reading trailer";
  }

  #size(text: string, at: number): number {
    const end = text.indexOf("\n", at);
    const isWhole = end >= 0;
    const bytes = this.#begun.length + (isWhole ? end + 1 : text.length) - at;
    if (bytes > MOST_LINE_BYTES || (bytes === MOST_LINE_BYTES && !isWhole)) this.error = "header line too long";
    else if (isWhole) {
      const line = this.#begun + text.slice(at, end);
      this.#begun = "";
      this.error = this.#begin(line);
    } else this.#begun += text.slice(at);
    return isWhole ? end + 1 : text.length;
  }
  /** By the line of its size; returns what is wrong. */
  #begin(line: string): string | undefined {
    const cr = line.indexOf("\r");
    if (cr < 0) return "chunked line ends with bare LF";
    if (cr !== line.length - 1) return "invalid CR in chunked line";
    let end = cr;
    while (line[end - 1] === " " || line[end - 1] === "\t") end--;
    const digits = line.slice(0, end).split(";", 1)[0] as string;
    if (digits === "") return "empty hex number for chunk length";
    if (!/^[0-9a-fA-F]+$/.test(digits.slice(0, 17))) return "invalid byte in chunk length";
    if (digits.length > 16) return "http chunk length too large";
    this.#left = Number.parseInt(digits, 16);
    this.#isTrailer = this.#left === 0;
    this.#excess = Math.max(0, this.#excess + cr + 2 - FREE_BYTES - 2 * this.#left);
    const isTooMuch = !this.#isTrailer && this.#excess > MOST_EXCESS_BYTES;
    return isTooMuch ? "chunked encoding contains too much non-data" : undefined;
  }

  #end(text: string, at: number): number {
    const part = text.slice(at, at + 2 - this.#begun.length);
    this.#begun += part;
    if (!"\r\n".startsWith(this.#begun)) this.error = "malformed chunked encoding";
    else if (this.#begun.length === 2) {
      this.#begun = "";
      this.#left = null;
    }
    return at + part.length;
  }

  #trailer(text: string, at: number): number {
    const from = Math.max(0, this.#begun.length - TRAILER_END.length + 1);
    this.#begun += text.slice(at, at + MOST_TRAILER_BYTES + 1 - this.#begun.length);
    if (this.#begun.startsWith("\r\n")) this.isDone = true;
    else {
      const end = this.#begun.indexOf(TRAILER_END, from);
      if (end >= 0 && end + TRAILER_END.length <= MOST_TRAILER_BYTES) {
        this.isDone = true;
        this.error = trailerFault(this.#begun.slice(0, end));
      } else if (this.#begun.length >= MOST_TRAILER_BYTES) {
        this.error = "http: suspiciously long trailer after chunked body";
      }
    }
    return text.length;
  }
}

function trailerFault(trailer: string): string | undefined {
  const fields = new HttpFields();
  for (const line of trailer.split("\n")) {
    const bare = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (bare === "") break;
    const wrong = fields.push(bare);
    if (wrong !== undefined) return wrong;
  }
  return fields.end();
}
