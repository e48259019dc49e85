import { setTimeout as sleep } from "node:timers/promises";
import { frame, framesIn, PREFACE, rawConnection, SETTINGS } from "./http2.ts";

const HEADERS = 1;
const CONTINUATION = 9;

/** Numbers of a linear congruential generator, so that a failure can be repeated. */
export function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

/** Sends a conversation to a socket `times` times, each time with a few bytes changed, in two parts. */
export async function sayChanged(path: string, conversation: Buffer, times: number, next: (below: number) => number) {
  const seen = { answered: 0, closed: 0 };
  const begin = PREFACE.length - 4;
  for (let i = 0; i < times; i++) {
    const raw = await rawConnection(path);
    const bytes = Buffer.from(conversation);
    for (let k = next(4); k >= 0; k--) bytes[begin + next(bytes.length - begin)] = next(256);
    const cut = next(bytes.length);
    raw.socket.write(bytes.subarray(0, cut));
    raw.socket.end(bytes.subarray(cut));
    await Promise.race([raw.closed, sleep(20)]);
    raw.socket.destroy();
    await raw.closed;
    seen[framesIn(raw.received()).some(({ type }) => type === HEADERS) ? "answered" : "closed"]++;
  }
  return seen;
}

/** Sends bytes of no protocol, up to 2,000 per connection; resolves when all connections are closed. */
export async function sayNoise(path: string, times: number, next: (below: number) => number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const raw = await rawConnection(path);
    raw.socket.write(Buffer.from(Array.from({ length: 1 + next(2000) }, () => next(256))));
    await raw.closed;
  }
}

/**
 * Sends headers that never end, over many connections at once; resolves when all are closed. Returns the growth of the
 * memory in bytes.
 */
export async function sayEndlessHeaders(path: string): Promise<number> {
  const first = Buffer.concat([PREFACE, SETTINGS, frame(HEADERS, 0, 1, Buffer.alloc(0))]);
  const endless = frame(CONTINUATION, 0, 1, Buffer.alloc(8192));
  const before = process.memoryUsage().rss;
  const open = await Promise.all(Array.from({ length: 100 }, () => rawConnection(path)));
  for (const { socket } of open) {
    socket.write(first);
    for (let i = 0; i < 200; i++) socket.write(endless);
  }
  await Promise.all(open.map(({ closed }) => closed));
  return process.memoryUsage().rss - before;
}
