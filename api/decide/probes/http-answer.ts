import { ChunkReader } from "./http-chunks.ts";
import { type HttpHead, readHead, statusOf } from "./http-head.ts";
import { HeadText } from "./http-head-text.ts";

/** Of all heads of an answer. Go's client takes ten times as many; no server of a probe has a use for them. */
export const MAX_HEAD_BYTES = 1 << 20;
const BROKEN = "net/http: HTTP/1.x transport connection broken: ";
const TOO_LONG = `net/http: server response headers exceeded ${MAX_HEAD_BYTES} bytes; aborted`;

/** An answer of HTTP/1 as far as it came, in texts of bytes. Errors in Go's words. Go 1.26: http.Transport. */
export class HttpAnswer {
  readonly #headText = new HeadText();
  /** A first line was looked at and is right. */
  #isStatusSeen = false;
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
    else if (this.#headText.push(text)) this.#readHeads();
    else if (this.#headText.bytes > MAX_HEAD_BYTES) this.#finish(BROKEN + TOO_LONG);
    else this.#lookAtStatus();
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
    if (this.#headText.bytes === 0) return error ?? "EOF";
    // Go looks at what there is of a line
    const head = readHead(this.#headText.linesSoFar());
    return BROKEN + (head.ok ? (error ?? "unexpected EOF") : head.error);
  }

  #readHeads(): void {
    for (let lines = this.#headText.take(); lines !== undefined; lines = this.#headText.take()) {
      const head = this.#headText.bytes > MAX_HEAD_BYTES ? ({ ok: false, error: TOO_LONG } as const) : readHead(lines);
      if (!head.ok) {
        this.#finish(BROKEN + head.error);
        return;
      }
      this.#isStatusSeen = false;
      const { status } = head.value;
      if (status >= 100 && status < 200 && status !== 101) continue;
      this.head = head.value;
      this.#startBody(head.value);
      return;
    }
    this.#lookAtStatus();
  }
  /** What is no HTTP is said so at once. */
  #lookAtStatus(): void {
    const line = this.#isStatusSeen ? undefined : this.#headText.firstLine();
    if (line === undefined) return;
    this.#isStatusSeen = true;
    const status = statusOf(line);
    if (!status.ok) this.#finish(BROKEN + status.error);
  }

  #startBody(head: HttpHead): void {
    this.#most = this.#wanted(head);
    if (head.isChunked) this.#chunks = new ChunkReader();
    const rest = this.#headText.takeRest();
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
