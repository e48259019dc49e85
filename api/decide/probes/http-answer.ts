import { ChunkReader } from "./http-chunks.ts";
import type { HttpHead } from "./http-head.ts";
import { HeadReader } from "./http-head-reader.ts";

/** Of all heads of an answer. Go 1.26: http.Transport, MaxResponseHeaderBytes. */
export const MAX_HEAD_BYTES = 10 << 20;
const BROKEN = "net/http: HTTP/1.x transport connection broken: ";
const TOO_LONG = `net/http: server response headers exceeded ${MAX_HEAD_BYTES} bytes; aborted`;

/** An answer of HTTP/1 as far as it came, in texts of bytes. Errors in Go's words. Go 1.26: http.Transport. */
export class HttpAnswer {
  #heads = new HeadReader();
  /** Of the heads before that one. */
  #passedBytes = 0;
  #chunks: ChunkReader | undefined;
  readonly #wanted: (head: HttpHead) => number;
  #most = 0;
  head: HttpHead | undefined;
  body = "";
  /** Before the head it is the request's, behind it the body's; undefined: none. */
  error: string | undefined;
  /** No more needs to be read. */
  isDone = false;

  /** `wanted`: how many bytes of the body are asked for. */
  constructor(wanted: (head: HttpHead) => number) {
    this.#wanted = wanted;
  }

  push(text: string): void {
    if (this.isDone) return;
    if (this.head !== undefined) this.#readBody(text);
    else this.#readHeads(text);
  }
  /** The connection ended, by its peer or by an error in Go's words. */
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
