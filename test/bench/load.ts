import { connect, type Socket } from "node:net";

/** A request in which the nine digits at `digitsAt` (counted from the body's start) differ each time. */
export interface Template {
  readonly path: string;
  readonly body: Buffer;
  readonly digitsAt: number;
}
export interface Load {
  readonly requestsPerSecond: number;
  readonly requests: number;
}

const END_OF_HEAD = Buffer.from("\r\n\r\n");
let nextNumber = 100_000_000;

/** A keep-alive connection that posts, waits for the answer, and posts again until `until` (ms of performance.now). */
class Lane {
  readonly #socket: Socket;
  readonly #bytes: Buffer;
  readonly #digitsAt: number;
  readonly #until: number;
  readonly #done: (result: number | Error) => void;
  #count = 0;
  #head: Buffer | null = null;
  #missing = 0;

  constructor(port: number, template: Template, until: number, done: (result: number | Error) => void) {
    const head = Buffer.from(
      `POST ${template.path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${template.body.length}\r\n\r\n`,
    );
    this.#bytes = Buffer.concat([head, template.body]);
    this.#digitsAt = head.length + template.digitsAt;
    this.#until = until;
    this.#done = done;
    this.#socket = connect(port, "127.0.0.1", () => this.#send());
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (chunk) => this.#receive(chunk)).on("error", done);
  }

  #send(): void {
    this.#bytes.write(String(nextNumber++), this.#digitsAt, "latin1");
    this.#socket.write(this.#bytes);
  }

  #receive(chunk: Buffer): void {
    if (this.#missing > 0) {
      this.#missing -= chunk.length;
      this.#ended();
      return;
    }
    this.#head = this.#head === null ? chunk : Buffer.concat([this.#head, chunk]);
    const end = this.#head.indexOf(END_OF_HEAD);
    if (end < 0) return;
    const text = this.#head.toString("latin1", 0, end);
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN);
    const start = this.#head.toString("utf8", end + 4, end + 400);
    if (!text.startsWith("HTTP/1.1 200") || !(length > 0) || start.includes('"recorded":false')) {
      this.#socket.destroy();
      this.#done(new Error(`an answer that does not count: ${text.split("\r\n")[0]} ${start}`));
      return;
    }
    this.#missing = length - (this.#head.length - end - 4);
    this.#head = null;
    this.#ended();
  }

  #ended(): void {
    if (this.#missing > 0) return;
    this.#count++;
    if (performance.now() < this.#until) {
      this.#send();
      return;
    }
    this.#socket.destroy();
    this.#done(this.#count);
  }
}

/** Keeps `lanes` connections busy for `ms`. Throws when an answer is not 200. */
export async function load(port: number, template: Template, lanes: number, ms: number): Promise<Load> {
  const started = performance.now();
  const counts = await Promise.all(
    Array.from(
      { length: lanes },
      () =>
        new Promise<number>((resolve, reject) => {
          new Lane(port, template, started + ms, (r) => (typeof r === "number" ? resolve(r) : reject(r)));
        }),
    ),
  );
  const requests = counts.reduce((sum, count) => sum + count, 0);
  return { requests, requestsPerSecond: Math.round((requests / (performance.now() - started)) * 1000) };
}
