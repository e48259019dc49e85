import { createSocket, type RemoteInfo } from "node:dgram";

/** A server's answer for a name: IPv4 addresses, an error code, or no answer. */
export type Said = readonly string[] | number | undefined;
export const NXDOMAIN = 3;
export const SERVFAIL = 2;

/** A name server on its own port; it counts the queries for each name. */
export class NameServer {
  readonly #socket = createSocket("udp4");
  readonly asked = new Map<string, number>();
  /** The answer for a whole name. */
  says: (name: string) => Said | Promise<Said>;
  port = 0;

  constructor(says: NameServer["says"]) {
    this.says = says;
    this.#socket.on("message", (message, from) => void this.#answer(message, from));
  }
  listen(): Promise<this> {
    return new Promise((resolve) => {
      this.#socket.bind(0, "127.0.0.1", () => {
        this.port = this.#socket.address().port;
        resolve(this);
      });
    });
  }
  close(): void {
    this.#socket.close();
  }

  async #answer(message: Buffer, from: RemoteInfo): Promise<void> {
    const { name, end } = questionOf(message);
    const isFour = message.readUInt16BE(end - 4) === 1;
    if (isFour) this.asked.set(name, (this.asked.get(name) ?? 0) + 1);
    const said = await this.says(name);
    if (said === undefined) return;
    const addresses = typeof said === "number" || !isFour ? [] : said;
    const head = Buffer.from(message.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (typeof said === "number" ? said : 0), 2);
    head.writeUInt16BE(addresses.length, 6);
    head.writeUInt32BE(0, 8);
    const records = addresses.map((address) =>
      // the queried name, an address, a TTL of one hour
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, ...address.split(".").map(Number)]),
    );
    const answer = Buffer.concat([head, message.subarray(12, end), ...records]);
    try {
      this.#socket.send(answer, from.port, from.address);
    } catch {
      // the socket was closed meanwhile
    }
  }
}

function questionOf(message: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join(".").toLowerCase(), end: at + 5 };
}
