import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import { Duplex } from "node:stream";
import zlib from "node:zlib";
import { err, ok, type Result } from "../base/result.ts";
import type { AssetName, Assets, Bodies, BodyBounds, BodyFault } from "../dependencies.ts";
import { MAX_WINDOW_BYTES, webBytes } from "../http/body.ts";
import { ChunkBuffer, rateOf } from "../http/body-budget.ts";
import { styleSheet } from "../ui/assets.ts";

/** For browsers: fast, and nearly as small as possible. */
export const gzip = (text: string): Uint8Array<ArrayBuffer> => zlib.gzipSync(text, { level: 5 });

type Pair = ReadableWritablePair<Uint8Array, Uint8Array>;

/** Bodies read directly from the socket's request, without web streams in between. */
export const nodeBodies: Bodies = {
  bytes: (request, env, bounds) => {
    const incoming = (env as { incoming?: IncomingMessage } | undefined)?.incoming;
    return incoming === undefined ? webBytes(request, env, bounds) : incomingBytes(incoming, bounds);
  },
  decoders: new Map([
    ["gzip", { open: () => Duplex.toWeb(zlib.createGunzip()) as unknown as Pair }],
    ["zstd", { open: unzstd, windowBytes: MAX_WINDOW_BYTES }],
  ]),
};

function unzstd(): Pair {
  const params = { [zlib.constants.ZSTD_d_windowLogMax]: Math.log2(MAX_WINDOW_BYTES) };
  return Duplex.toWeb(zlib.createZstdDecompress({ params })) as unknown as Pair;
}

/** INVARIANT: keeps at most `limit` bytes and one chunk, whatever Content-Length says. */
function incomingBytes(
  incoming: IncomingMessage,
  { limit, take, bytesPerSecond }: BodyBounds,
): Promise<Result<Uint8Array, BodyFault>> {
  const announced = Number(incoming.headers["content-length"] ?? 0);
  if (announced > limit) return Promise.resolve(err("too_large"));
  return new Promise((resolve) => {
    const gathered = new ChunkBuffer(announced, true);
    const settle = (result: Result<Uint8Array, BodyFault>): void => {
      rate.stop();
      incoming.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      if (!result.ok) {
        incoming.pause();
        gathered.clear();
      }
      // each body is then worked on by itself: of bodies that came together, all that is made of them would be alive at the same time
      setImmediate(resolve, result);
    };
    const rate = rateOf(bytesPerSecond, () => settle(err("too_slow")));
    const onData = (chunk: Buffer): void => {
      rate.came(chunk.length);
      if (gathered.size + chunk.length > limit) settle(err("too_large"));
      else if (take(chunk.length)) gathered.add(chunk);
      else settle(err("no_room"));
    };
    const onEnd = (): void => settle(ok(gathered.take()));
    const onBroken = (): void => settle(err("incomplete"));
    incoming.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    if (incoming.destroyed || incoming.readableEnded) onBroken();
  });
}

const packages = createRequire(import.meta.url);
const client = (name: string): URL => new URL(`../ui/client/${name}`, import.meta.url);

const FILES: { readonly [Name in Exclude<AssetName, "style.css">]: URL | string } = {
  "lint.js": client("lint.js"),
  "live.js": client("live.js"),
  "page.js": client("page.js"),
  "plots.js": client("plots.js"),
  "replay.js": client("replay.js"),
  "sizes.js": client("sizes.js"),
  "upgrade.js": client("upgrade.js"),
  "what-if.js": client("what-if.js"),
  "uplot.css": packages.resolve("uplot/dist/uPlot.min.css"),
  "uplot.js": packages.resolve("uplot/dist/uPlot.iife.min.js"),
};
const textOf = (file: URL | string): string => readFileSync(file, "utf8");

/** The pages' assets from the disk, read once. Throws if the installation lacks one. */
export const nodeAssets = (): Assets => ({
  ...(Object.fromEntries(Object.entries(FILES).map(([name, file]) => [name, textOf(file)])) as Omit<
    Assets,
    "style.css"
  >),
  "style.css": styleSheet((part) => textOf(new URL(`../ui/style/${part}`, import.meta.url))),
});
