/** A body in chunks, as Go reads it; texts of bytes. Go 1.26: net/http/internal, chunkedReader. */
export class ChunkReader {
  #unread = "";
  /** Bytes of the chunk that are to come; null: its size is. */
  #left: number | null = null;
  #isTrailer = false;
  /** Go's words for what is wrong; undefined: nothing yet. */
  error: string | undefined;
  isDone = false;

  /** What belongs to the body. */
  push(text: string): string {
    this.#unread += text;
    let body = "";
    while (this.error === undefined && !this.isDone) {
      const read = this.#isTrailer ? this.#trailer() : this.#left === null ? this.#size() : this.#data();
      if (read === undefined) break;
      body += read;
    }
    return body;
  }
  /** Of a connection that ends here. */
  endError(): string {
    return this.#isTrailer ? "http: unexpected EOF reading trailer" : "unexpected EOF";
  }

  #size(): string | undefined {
    const end = this.#unread.indexOf("\n");
    if ((end < 0 ? this.#unread.length : end) > 4095) return this.#fault("header line too long");
    if (end < 0) return undefined;
    const digits = this.#unread
      .slice(0, end)
      .replace(/[ \t\r]+$/, "")
      .split(";", 1)[0] as string;
    this.#unread = this.#unread.slice(end + 1);
    if (digits === "") return this.#fault("empty hex number for chunk length");
    if (!/^[0-9a-fA-F]+$/.test(digits.slice(0, 17))) return this.#fault("invalid byte in chunk length");
    if (digits.length > 16) return this.#fault("http chunk length too large");
    this.#left = Number.parseInt(digits, 16);
    this.#isTrailer = this.#left === 0;
    return "";
  }
  #data(): string | undefined {
    const left = this.#left as number;
    if (left > 0) {
      if (this.#unread === "") return undefined;
      const part = this.#unread.slice(0, left);
      this.#unread = this.#unread.slice(part.length);
      this.#left = left - part.length;
      return part;
    }
    if (!"\r\n".startsWith(this.#unread.slice(0, 2))) return this.#fault("malformed chunked encoding");
    if (this.#unread.length < 2) return undefined;
    this.#unread = this.#unread.slice(2);
    this.#left = null;
    return "";
  }
  #trailer(): string | undefined {
    const end = this.#unread.startsWith("\r\n") ? 0 : this.#unread.indexOf("\r\n\r\n");
    if (end >= 0) this.isDone = true;
    else if (this.#unread.length > 4096) return this.#fault("http: suspiciously long trailer after chunked body");
    return undefined;
  }
  #fault(error: string): undefined {
    this.error = error;
  }
}
