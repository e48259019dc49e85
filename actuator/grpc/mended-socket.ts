import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { authorityMender } from "./frames.ts";

/**
 * A connection whose client may send a path as `:authority`, as one that HTTP/2 takes. It holds as much as one request's
 * headers, and no more than the streams' own buffers of everything else: what is not read here is not read from the
 * socket. Ends, with the reason to `onRefused`, where the client does not speak HTTP/2.
 */
export function mendedSocket(socket: Socket, onRefused?: (reason: string) => void): Duplex {
  const pass = authorityMender();
  const duplex = new Duplex({
    allowHalfOpen: true,
    read: () => {
      socket.resume();
    },
    write: (chunk: Buffer, _encoding, done) => {
      socket.write(chunk, (error) => done(error ?? null));
    },
    final: (done) => {
      socket.end(() => done());
    },
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  socket.pause();
  socket.on("data", (chunk: Buffer) => {
    const passed = pass(chunk);
    if ("refused" in passed) {
      onRefused?.(passed.refused);
      socket.destroy();
      return;
    }
    let wantsMore = true;
    for (const bytes of passed.bytes) if (bytes.length > 0) wantsMore = duplex.push(bytes);
    if (!wantsMore) socket.pause();
  });
  socket.on("end", () => duplex.push(null));
  socket.on("error", () => duplex.destroy());
  socket.on("close", () => duplex.destroy());
  duplex.on("error", () => undefined);
  return duplex;
}
