import type { Store } from "../db/store.ts";
import type { AuthSettings } from "./auth/authorize.ts";
import type { Result } from "./model/result.ts";
import type { EpochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { Evaluate } from "./routes/evaluation.ts";
import type { Streams } from "./routes/live.ts";
import type { Assets } from "./ui/assets.ts";

export interface ApiLimits {
  /** Bytes of one request body (of one line in a batch), compressed or not, whichever is more. */
  readonly bodyBytes: number;
  /** Requests of one caller that may be under way at a time; more are answered 429. */
  readonly concurrency: number;
}

/** Why a body could not be read whole. */
export type BodyFault = "too_large" | "incomplete";

/** How this platform hands a request's body over. */
export interface Bodies {
  /** The whole body as posted, at most `limit` bytes. `env` is what the server gave the app beside the request. */
  bytes(request: Request, env: unknown, limit: number): Promise<Result<Uint8Array, BodyFault>>;
  /** Content-Encoding -> a stream that undoes it. What is not here is answered 415. */
  readonly decoders: ReadonlyMap<string, () => ReadableWritablePair<Uint8Array, Uint8Array>>;
}

/** Everything that the app touches of the world. */
export interface Ports {
  readonly store: Store;
  readonly now: () => EpochMs;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bodies: Bodies;
  /** Decodes and decides; inline, or in threads of its own. */
  readonly evaluate: Evaluate;
  /** Lower case hex of the text's UTF-8. */
  readonly sha256: (text: string) => string | Promise<string>;
  readonly auth: AuthSettings;
  readonly limits: ApiLimits;
  /** False: decisions are answered with `recorded: false` and nothing is written for them. */
  readonly recordDecisions: boolean;
  /** Absent: this platform ends responses soon, so who wants to hear of news asks again and again. */
  readonly streams?: Streams;
  /** What the pages load. */
  readonly assets: Assets;
  /** Compresses pages and assets for a browser that takes it; absent: the platform does it by itself. */
  readonly gzip?: (text: string) => Uint8Array<ArrayBuffer>;
}
