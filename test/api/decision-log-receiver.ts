import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { onTestFinished } from "vitest";

export interface Event {
  readonly labels: Readonly<Record<string, string>>;
  readonly decision_id: string;
  readonly path: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly result: Readonly<Record<string, unknown>>;
  readonly timestamp: string;
  readonly erased?: readonly string[];
  readonly custom: Readonly<Record<string, unknown>>;
}
export interface Post {
  readonly headers: IncomingHttpHeaders;
  readonly events: readonly Event[];
  readonly bytes: number;
}
/**
 * A receiver with OPA's decision log format on loopback. `answers`: the status of the next posts, with headers and a
 * delay in ms; after these every post gets 200, or 413 beyond `limits.bytes`.
 */
export async function receiver(
  answers: (readonly [status: number, headers?: Record<string, string>, afterMs?: number])[] = [],
) {
  const posts: Post[] = [];
  const taken: Event[] = [];
  const limits = { bytes: Number.POSITIVE_INFINITY };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", async () => {
      const text = gunzipSync(Buffer.concat(parts)).toString();
      const events = JSON.parse(text) as Event[];
      posts.push({ headers: request.headers, events, bytes: text.length });
      const usual = text.length > limits.bytes ? 413 : 200;
      const [status, headers, afterMs = 0] = answers.shift() ?? [usual];
      await sleep(afterMs);
      if (status < 300) taken.push(...events);
      response.writeHead(status, headers).end("whatever");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/logs?partition=secret`);
  return { url, posts, taken, limits };
}
