import { createServer } from "node:net";

const FIRST = 20_000;
const LAST = 32_000;
/** The port range is divided, because test files that run at the same time each use their own part. */
const PLACES = 8;
const place = Number(process.env["VITEST_POOL_ID"] ?? 0) % PLACES;
const given = new Set<number>();

/** A port below the range that the kernel assigns to clients, so that it stays free while a server restarts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(((place + Math.random()) * (LAST - FIRST)) / PLACES);
    if (given.has(port)) continue;
    given.add(port);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer().once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
