import { err, ok, type Result } from "../../base/result.ts";
import { type BodyHeaders, HttpFields, quotedStart } from "./http-fields.ts";

/** The head of an answer, and how its body ends. */
export interface HttpHead {
  readonly status: number;
  /** A text of bytes; empty: it has none. */
  readonly location: string;
  /** The length of the body in bytes; -1: it ends with the connection or the last chunk. */
  readonly length: number;
  readonly isChunked: boolean;
}

/** Checks a status line; the error is Go's. Go 1.26: http.ReadResponse. */
function statusOf(line: string): Result<number, string> {
  const [proto, rest] = cut(line, " ");
  if (rest === undefined) return err(`malformed HTTP response ${quotedStart(line)}`);
  const code = cut(rest.replace(/^ +/, ""), " ")[0];
  if (!/^(\d{3}|\+\d\d)$/.test(code)) return err(`malformed HTTP status code ${quotedStart(code)}`);
  if (!/^HTTP\/\d\.\d$/.test(proto)) return err(`malformed HTTP version ${quotedStart(proto)}`);
  return ok(Number(code));
}

/** The head of a first line, with its status, and of its headers. Error: Go's words. Go 1.26: http.ReadResponse. */
function headOf(
  first: string,
  status: number,
  { locations, lengths, encodings }: BodyHeaders,
): Result<HttpHead, string> {
  const isOld = first.startsWith("HTTP/0.") || first.startsWith("HTTP/1.0");
  const chunked = isOld ? ok(false) : isChunked(encodings);
  if (!chunked.ok) return chunked;
  const length = lengthOf(lengths);
  if (!length.ok) return length;
  const isBodiless = status < 200 || status === 204 || status === 304;
  return ok({
    status,
    location: locations[0] ?? "",
    length: isBodiless ? 0 : chunked.value ? -1 : length.value,
    isChunked: chunked.value && !isBodiless,
  });
}

function isChunked(encodings: readonly string[]): Result<boolean, string> {
  if (encodings.length > 1) return err(`too many transfer encodings: ${listed(encodings)}`);
  const encoding = encodings[0];
  if (encoding === undefined || encoding.toLowerCase() === "chunked") return ok(encoding !== undefined);
  return err(`unsupported transfer encoding: ${quotedStart(encoding)}`);
}

/** The largest length, of 63 bits. */
const MAX_LENGTH = "9223372036854775807";
function lengthOf(lengths: readonly string[]): Result<number, string> {
  const first = lengths[0];
  if (first === undefined) return ok(-1);
  if (lengths.some((length) => length !== first)) {
    return err(`http: message cannot contain multiple Content-Length headers; got ${listed(lengths)}`);
  }
  if (first === "") return err('invalid empty Content-Length ""');
  const digits = /^0*(\d{1,19})$/.exec(first)?.[1];
  if (digits === undefined || (digits.length === MAX_LENGTH.length && digits > MAX_LENGTH)) {
    return err(`bad Content-Length ${quotedStart(first)}`);
  }
  return ok(Number(digits));
}

const listed = (values: readonly string[]): string => `[${values.map(quotedStart).join(" ")}]`;
function cut(text: string, mark: string): readonly [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** The limit for the line of a chunk's size and its end. */
const MAX_LINE_BYTES = 4096;
const MAX_TRAILER_BYTES = 4096;
/** The limits for bytes that are not data: so many per chunk are free, and so many in total beyond twice the data. */
const FREE_BYTES = 16;
const MAX_EXCESS_BYTES = 16 * 1024;
const TRAILER_END = "\r\n\r\n";

/** A body in chunks, as Go reads it; texts of bytes. Go 1.26: net/http/internal, chunkedReader; net/http, body.readTrailer. */
class ChunkReader {
  /** The part that has arrived of a line, of a chunk's end or of a trailer. */
  #begun = "";
  /** Bytes of the chunk that are to come; null: its size is. */
  #left: number | null = null;
  #isTrailer = false;
  #excess = 0;
  /** Go's error; undefined: none so far. */
  error: string | undefined;
  isDone = false;

  /** Returns the part of the text that belongs to the body. */
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
  /** Returns the error for a connection that ends here. */
  endError(): string {
    if (!this.#isTrailer) return "unexpected EOF";
    const isLong = this.#begun.length >= 2;
    return isLong ? "http: suspiciously long trailer after chunked body" : "http: unexpected EOF reading trailer";
  }

  #size(text: string, at: number): number {
    const end = text.indexOf("\n", at);
    const isWhole = end >= 0;
    const bytes = this.#begun.length + (isWhole ? end + 1 : text.length) - at;
    if (bytes > MAX_LINE_BYTES || (bytes === MAX_LINE_BYTES && !isWhole)) this.error = "header line too long";
    else if (isWhole) {
      const line = this.#begun + text.slice(at, end);
      this.#begun = "";
      this.error = this.#begin(line);
    } else this.#begun += text.slice(at);
    return isWhole ? end + 1 : text.length;
  }
  /** Begins a chunk by its size line; returns the error, if any. */
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
    const isTooMuch = !this.#isTrailer && this.#excess > MAX_EXCESS_BYTES;
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
    this.#begun += text.slice(at, at + MAX_TRAILER_BYTES + 1 - this.#begun.length);
    if (this.#begun.startsWith("\r\n")) this.isDone = true;
    else {
      const end = this.#begun.indexOf(TRAILER_END, from);
      if (end >= 0 && end + TRAILER_END.length <= MAX_TRAILER_BYTES) {
        this.isDone = true;
        this.error = trailerFault(this.#begun.slice(0, end));
      } else if (this.#begun.length >= MAX_TRAILER_BYTES) {
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

/** Reads the head of an answer as it arrives: each byte is read once, however small the pieces are. */
class HeadReader {
  /** The line that has no end yet. */
  #parts: string[] = [];
  #first: string | undefined;
  #status = 0;
  readonly #fields = new HttpFields();
  /** The size of the head until now. */
  bytes = 0;
  /** Go's error; undefined: none so far. */
  error: string | undefined;
  /** The head; undefined: it is not complete. */
  head: HttpHead | undefined;

  /** Reads a text from a position to the end of the head at most; returns the end position. */
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
  /** Go's error if the input ends here, which covers an incomplete line. */
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
    const head = headOf(first, this.#status, this.#fields.bodyHeaders);
    if (head.ok) this.head = head.value;
    else this.error = head.error;
  }
}

/** The limit for all heads of an answer. Go 1.26: http.Transport, MaxResponseHeaderBytes. */
export const MAX_HEAD_BYTES = 10 << 20;
const BROKEN = "net/http: HTTP/1.x transport connection broken: ";
const TOO_LONG = `net/http: server response headers exceeded ${MAX_HEAD_BYTES} bytes; aborted`;

/** An HTTP/1 answer as far as it has arrived, as strings of bytes. Errors are Go's. Go 1.26: http.Transport. */
export class HttpAnswer {
  #heads = new HeadReader();
  /** The size of the heads before the current one. */
  #passedBytes = 0;
  #chunks: ChunkReader | undefined;
  readonly #wanted: (head: HttpHead) => number;
  #most = 0;
  head: HttpHead | undefined;
  body = "";
  /** The error: before the head that of the request, after it that of the body; undefined: none. */
  error: string | undefined;
  /** True: no more needs to be read. */
  isDone = false;

  /** `wanted`: returns how many bytes of the body to read. */
  constructor(wanted: (head: HttpHead) => number) {
    this.#wanted = wanted;
  }

  push(text: string): void {
    if (this.isDone) return;
    if (this.head !== undefined) this.#readBody(text);
    else this.#readHeads(text);
  }
  /** Ends the answer: the peer closed the connection, or an error occurred (Go's words). */
  end(error?: string): void {
    if (this.isDone) return;
    if (this.head === undefined) this.#finish(this.#errorInHead(error));
    else {
      const isWhole = error === undefined && this.head.length < 0 && this.#chunks === undefined;
      this.#finish(isWhole ? undefined : (error ?? this.#chunks?.endError() ?? "unexpected EOF"));
    }
  }
  #errorInHead(error: string | undefined): string {
    if (this.#passedBytes + this.#heads.bytes === 0) return error ?? "EOF";
    return BROKEN + (this.#heads.errorAtEnd() ?? error ?? "unexpected EOF");
  }

  #readHeads(text: string): void {
    for (let at = 0; at < text.length; ) {
      at = this.#heads.read(text, at);
      const { bytes, error, head } = this.#heads;
      if (this.#passedBytes + bytes > MAX_HEAD_BYTES) this.#finish(BROKEN + TOO_LONG);
      else if (error !== undefined) this.#finish(BROKEN + error);
      if (head === undefined || this.isDone) return;
      if (head.status < 100 || head.status >= 200 || head.status === 101) {
        this.#startBody(head, text.slice(at));
        return;
      }
      this.#passedBytes += bytes;
      this.#heads = new HeadReader();
    }
  }

  #startBody(head: HttpHead, rest: string): void {
    this.head = head;
    this.#most = this.#wanted(head);
    if (head.isChunked) this.#chunks = new ChunkReader();
    if (this.#most === 0 || head.length === 0) this.#finish();
    else if (rest !== "") this.#readBody(rest);
  }
  #readBody(text: string): void {
    const chunks = this.#chunks;
    const length = this.head?.length ?? -1;
    const more = chunks === undefined ? text : chunks.push(text);
    this.body = (this.body + more).slice(0, length < 0 ? this.#most : Math.min(length, this.#most));
    if (this.body.length === this.#most || this.body.length === length) this.#finish();
    else if (chunks?.error !== undefined || chunks?.isDone === true) this.#finish(chunks.error);
  }
  #finish(error?: string): void {
    this.error = error;
    this.isDone = true;
  }
}
