import { type ClientHttp2Session, connect } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Opened } from "./bounded.ts";
import { dial } from "./dial.ts";

/** Between two tries to connect, as Go's gRPC does by default. */
const FIRST_WAIT_MS = 1000;
const FACTOR = 1.6;

/**
 * A connection whose server speaks HTTP/2: it has told its settings. It is tried for as long as the attempt lasts, and
 * with its end this promise goes nowhere. Go: grpc.DialContext with WithBlock.
 */
export async function grpcConnect(host: string, port: number, opened: Opened): Promise<ClientHttp2Session | undefined> {
  for (let waitMs = FIRST_WAIT_MS; !opened.isOver; waitMs *= FACTOR) {
    const socket = await dial(host, port, opened);
    const session = socket.ok ? await greeted(socket.value, opened) : undefined;
    if (session !== undefined) return session;
    const stop = new AbortController();
    const waiting = opened.add({ destroy: () => stop.abort() });
    await sleep(waitMs, undefined, { signal: stop.signal }).catch(() => {});
    opened.close(waiting);
  }
  return undefined;
}

/** Undefined: the server ended the connection, or spoke something else. */
function greeted(socket: Socket, opened: Opened): Promise<ClientHttp2Session | undefined> {
  return new Promise((resolve) => {
    const options = { createConnection: () => socket, settings: { enablePush: false } };
    const session = opened.add(connect("http://localhost", options));
    const failed = (): void => {
      opened.close(session);
      resolve(undefined);
    };
    session.on("error", failed);
    session.once("close", failed);
    session.once("remoteSettings", () => {
      session.off("close", failed);
      resolve(session);
    });
  });
}
