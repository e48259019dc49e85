import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A process with a server on a free loopback port, which only reads and parses the bodies of requests. It prints the port, and exits when
 * its stdin closes.
 */
const server = createServer((incoming, outgoing) => {
  const chunks: Buffer[] = [];
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
  incoming.on("end", () => {
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { snapshot: { sequence: number } };
    const text = JSON.stringify({ sequence: body.snapshot.sequence });
    outgoing.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    outgoing.end(text);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
process.stdin.resume().on("end", () => process.exit(0));
