import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import zlib from "node:zlib";
import { err, ok, type Result } from "../model/result.ts";
import type { Bodies, BodyFault } from "../ports.ts";
import { webBytes } from "../routes/body.ts";

type Pair = ReadableWritablePair<Uint8Array, Uint8Array>;

/** Bodies read off the socket's own request, without the streams of the web between. */
export const nodeBodies: Bodies = {
  bytes: (request, env, limit) => {
    const incoming = (env as { incoming?: IncomingMessage } | undefined)?.incoming;
    return incoming === undefined ? webBytes(request, env, limit) : incomingBytes(incoming, limit);
  },
  decoders: new Map([
    ["gzip", () => Duplex.toWeb(zlib.createGunzip()) as unknown as Pair],
    ["zstd", () => Duplex.toWeb(zlib.createZstdDecompress()) as unknown as Pair],
  ]),
};

/** INVARIANT: holds at most `limit` bytes and one chunk, whatever Content-Length says. */
function incomingBytes(incoming: IncomingMessage, limit: number): Promise<Result<Uint8Array, BodyFault>> {
  if (Number(incoming.headers["content-length"] ?? 0) > limit) return Promise.resolve(err("too_large"));
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (result: Result<Uint8Array, BodyFault>): void => {
      incoming.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= limit) return;
      incoming.pause();
      settle(err("too_large"));
    };
    const onEnd = (): void => settle(ok(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)));
    const onBroken = (): void => settle(err("incomplete"));
    incoming.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    if (incoming.destroyed || incoming.readableEnded) onBroken();
  });
}
