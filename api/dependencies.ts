import type { ResultRow, Store } from "../db/store.ts";
import type { Result } from "./base/result.ts";
import type { Kind } from "./model/decision.ts";
import type { EpochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";
import type { Metrics } from "./observe/plain-metrics.ts";
import type { Ids, Sha256OfPieces } from "./service/canonical.ts";
import type { DecodedSnapshot, Evaluate } from "./service/evaluation.ts";
import type { NodeTurns } from "./service/node-turn/node-turns.ts";
import type { PostedTurn } from "./service/node-turn/request.ts";
import type { Problem } from "./service/problem.ts";

/** A requested decision in the form that is sent to another thread. */
export interface OffThreadAsk {
  readonly caller: Caller;
  readonly requestId: string;
  /** As posted; the buffer is transferred. */
  readonly bytes: Uint8Array;
  readonly kind: Kind | null;
  readonly key: string | undefined;
  readonly record: boolean;
}

export type Scope = (typeof SCOPES)[number];

/** The scopes of a token; `admin` may do everything. */
export const SCOPES = ["decide", "read", "admin"] as const;

/** A validated report as it is stored, without the time at which it arrived. */
export interface Report {
  readonly decisionId: string;
  readonly row: Omit<ResultRow, "atMs">;
}

export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** True: the response is always made anew, so it has no ETag. */
  readonly untagged?: boolean;
  /** Its headers and body are sent unchanged: see `packed`. */
  readonly isPacked?: boolean;
  /** True: nobody else uses the bytes of the body, so they are freed when they have been sent. */
  readonly ownsBytes?: true;
  /** Settles when a streamed body has been sent; the request counts as under way until then. */
  readonly done?: Promise<void>;
}

/** The caller of a request. */
export interface Caller {
  /** The token's id, `anonymous`, or `internal`. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** The only node that the caller may act for; null for any. */
  readonly node: string | null;
}

export type Body = Result<Uint8Array, BodyFault>;

/** An authenticated request in the form that is sent to another thread: plain values only. */
export interface OffThreadRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  /** As posted. */
  readonly body: Body;
  readonly caller: Caller;
  readonly requestId: string;
}

/** The head of a decision that was made in another thread, before it is recorded. */
export interface DecidedHead {
  readonly id: string;
  readonly kind: string;
  readonly node: string;
  readonly verdict: string;
}

/** Work that would block the event loop, done in threads. Each returns null if no thread is available, or the work is too small. */
export interface OffThread {
  /**
   * `bytes`: the body to read. Decides, records, and returns the response's JSON text in UTF-8. `onDecided`: called once decided,
   * before recording.
   */
  decide(
    asked: OffThreadAsk,
    bytes: number,
    signal: AbortSignal,
    onDecided?: (head: DecidedHead) => void,
  ): Promise<Result<Uint8Array<ArrayBuffer>, Problem>> | null;
  route(request: OffThreadRequest, signal: AbortSignal): Promise<Result<Reply, Problem>> | null;
  /** Decodes a posted snapshot without a decision. */
  snapshot(bytes: Uint8Array, signal: AbortSignal): Promise<Result<DecodedSnapshot, Problem>> | null;
  report(bytes: Uint8Array, signal: AbortSignal): Promise<Result<Report, Problem>> | null;
}

const SCRIPT = "text/javascript; charset=utf-8";

const STYLE = "text/css; charset=utf-8";

/** The assets of the pages, with their types. */
export const ASSET_TYPES = {
  "style.css": STYLE,
  "lint.js": SCRIPT,
  "live.js": SCRIPT,
  "page.js": SCRIPT,
  "plots.js": SCRIPT,
  "replay.js": SCRIPT,
  "sizes.js": SCRIPT,
  "upgrade.js": SCRIPT,
  "what-if.js": SCRIPT,
  "uplot.css": STYLE,
  "uplot.js": SCRIPT,
} as const;

export type AssetName = keyof typeof ASSET_TYPES;

/** The texts of the assets, wherever this platform stores them. */
export type Assets = { readonly [Name in AssetName]: string };

/** How this platform keeps responses open. */
export interface Streams {
  /** Aborted when the server ends. */
  readonly closing: AbortSignal;
  /** The most open streams; beyond that, clients poll. */
  readonly limit: number;
}

export interface AuthSettings {
  /** True: a token is always required. False: only once a token has been created, even if it is revoked. */
  readonly required: boolean;
  /** Hosts that a request without a token may use; null for any. Protects an open API on loopback from web pages (DNS rebinding). */
  readonly hosts: ReadonlySet<string> | null;
  /** A reverse proxy sets X-Forwarded-Host to the host that the client requested. Default: false, and the header is ignored. */
  readonly trustForwardedHost?: boolean;
  /** sha256 of an administrator's token that is not in the history. */
  readonly adminTokenHash?: string;
}

export interface ApiLimits {
  /** Bytes of one request body (of one line in a batch), compressed or not, whichever is larger. */
  readonly bodyBytes: number;
  /** The most concurrent requests of one caller; further ones get a 429. */
  readonly concurrency: number;
  /** The most bytes of all request bodies being read or processed; further ones get a 503. Absent: 32 of the largest. */
  readonly bodyBytesInFlight?: number;
  /** The number of nodes with their own series in /metrics, worst first. Absent: 100. */
  readonly metricsNodes?: number;
  /** The rate in bytes per second below which an arriving body is aborted with a 408. Absent: 4096; 0 for no limit. */
  readonly bodyBytesPerSecond?: number;
}

/** Why a body could not be read completely. */
export type BodyFault = "too_large" | "too_dense" | "wide_window" | "too_slow" | "no_room" | "incomplete";

/** The limits on the cost of reading a body. */
export interface BodyBounds {
  /** The most bytes. */
  readonly limit: number;
  /** Reserves bytes; false if all bodies together have too many. */
  readonly take: (bytes: number) => boolean;
  /** As in `ApiLimits`. */
  readonly bytesPerSecond: number;
}

/** How this platform reads request bodies. */
export interface Bodies {
  /** The whole body as posted. `env`: what the server passed to the app with the request. */
  bytes(request: Request, env: unknown, bounds: BodyBounds): Promise<Result<Uint8Array, BodyFault>>;
  /** Content-Encoding -> a stream that decodes it. Others get a 415. */
  readonly decoders: ReadonlyMap<string, BodyDecoder>;
}

export interface BodyDecoder {
  open(): ReadableWritablePair<Uint8Array, Uint8Array>;
  /** The most bytes of decoded data that the decoder keeps. Absent: too few to count. */
  readonly windowBytes?: number;
}

/** How this platform stores what it knows about nodes between their turns. */
interface NodeStates {
  /** The most bytes of all states together, an estimate. */
  readonly maxBytes: number;
  /** How long repeated decisions of a node may wait before they are written: see `NodeTurnsDeps`. */
  readonly holdMs: number;
  /** Runs work before the history is closed. */
  readonly atEnd: (work: () => Promise<void>) => void;
}

/**
 * Calls `onSent` once, when the response to a request has been handed over completely, or its connection is closed. `isUnused`: nothing
 * can still read the bytes of the body.
 */
export type WhenSent = (env: unknown, onSent: (isUnused: boolean) => void) => void;

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;
/** The span of a request in progress. */
export interface RequestSpan {
  readonly traceId: string;
  /** Adds a span that began at `startedMs` (of `performance.now`) and ends now. `error`: one of a fixed set of codes. */
  child(name: "decide" | "record", startedMs: number, attributes: SpanAttributes, error?: string): void;
  /** `route`: null if there is none. `code`: of the problem in the response. */
  end(ended: { readonly route: string | null; readonly status: number; readonly code: string | undefined }): void;
}
/** Makes spans of requests, by OpenTelemetry's conventions. */
export interface Tracing {
  /** `env`: what the server passed to the app with the request. */
  request(request: Request, env: unknown, requestId: string): RequestSpan;
}

/** Everything outside itself that the app uses. */
export interface ApiDeps {
  readonly store: Store;
  readonly now: () => EpochMs;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bodies: Bodies;
  /** Absent: a response counts as sent when it is made. */
  readonly whenSent?: WhenSent;
  /** Decodes and decides; on this thread or in others. */
  readonly evaluate: Evaluate;
  /** Absent if no spans are exported. */
  readonly tracing?: Tracing;
  /** Absent: this platform has no threads, and everything runs on the one that listens. */
  readonly offThread?: OffThread;
  readonly sha256: Sha256OfPieces;
  /** Ids of snapshots and decisions. Absent: plain hashes of their content. */
  readonly ids?: Ids;
  readonly auth: AuthSettings;
  readonly limits: ApiLimits;
  /** False: decisions are returned with `recorded: false` and nothing is written for them. */
  readonly recordDecisions: boolean;
  /** Absent: a process may end at any time and has little memory, so nothing is held back. */
  readonly nodeStates?: NodeStates;
  /** Created by the server from these dependencies. Absent: this API has no turns. */
  readonly turns?: NodeTurns;
  /** Reads bodies of whole snapshots that are posted repeatedly, as turns. Absent: each is decided by itself. */
  readonly postedBodies?: { read(body: Uint8Array, kind: Kind): PostedTurn | null };
  /** Takes a node's turn in the place of its history, and returns the response's JSON text. Absent: that place is here. */
  readonly turnElsewhere?: (node: string, bytes: Uint8Array) => Promise<Result<string, Problem>>;
  /** Absent: this platform ends responses soon, so clients poll for news. */
  readonly streams?: Streams;
  /** The files that the pages load. */
  readonly assets: Assets;
  /** Compresses pages and assets for browsers that accept it; absent: the platform does so itself. */
  readonly gzip?: (text: string) => Uint8Array<ArrayBuffer>;
}
