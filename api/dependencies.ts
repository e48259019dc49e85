import type { ResultRow, Store } from "../db/store.ts";
import type { Kind } from "./model/decision.ts";
import type { Result } from "./model/result.ts";
import type { EpochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";
import type { Metrics } from "./observe/plain-metrics.ts";
import type { Ids } from "./service/canonical.ts";
import type { DecodedSnapshot, Evaluate } from "./service/evaluation.ts";
import type { NodeTurns } from "./service/node-turn/node-turns.ts";
import type { Problem } from "./service/problem.ts";

/** A decision that a caller asks for, as it goes to another thread. */
export interface OffThreadAsk {
  readonly caller: Caller;
  readonly requestId: string;
  /** As posted; they are taken away. */
  readonly bytes: Uint8Array;
  readonly kind: Kind | null;
  readonly key: string | undefined;
  readonly record: boolean;
}

export type Scope = (typeof SCOPES)[number];

/** The rights that a token may have; `admin` may do everything. */
export const SCOPES = ["decide", "read", "admin"] as const;

/** A report that was checked, as it is kept; when it came is not known yet. */
export interface Report {
  readonly decisionId: string;
  readonly row: Omit<ResultRow, "atMs">;
}

export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** True: always made anew, so it carries no ETag. */
  readonly untagged?: boolean;
  /** Its headers and body are as they go out: see `packed`. */
  readonly isPacked?: boolean;
  /** Settles when a streamed body is through; the request counts as under way until then. */
  readonly done?: Promise<void>;
}

/** The caller of a request. */
export interface Caller {
  /** The token's id, `anonymous`, or `internal`. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** The only node that the caller may speak for; null: any. */
  readonly node: string | null;
}

export type Body = Result<Uint8Array, BodyFault>;

/** A request whose sender is known, as it goes to another thread: plain values alone. */
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

/** Work that would hold up everybody else, done in threads. Null: no thread can be had, or it is too little. */
export interface OffThread {
  /** `bytes`: of what is to be read for it. Decides, records, and answers the answer's JSON text in UTF-8. `onDecided`: called when it is decided, and is recorded next. */
  decide(
    asked: OffThreadAsk,
    bytes: number,
    signal: AbortSignal,
    onDecided?: (head: DecidedHead) => void,
  ): Promise<Result<Uint8Array<ArrayBuffer>, Problem>> | null;
  route(request: OffThreadRequest, signal: AbortSignal): Promise<Result<Reply, Problem>> | null;
  /** A posted snapshot by itself. */
  snapshot(bytes: Uint8Array, signal: AbortSignal): Promise<Result<DecodedSnapshot, Problem>> | null;
  report(bytes: Uint8Array, signal: AbortSignal): Promise<Result<Report, Problem>> | null;
}

const SCRIPT = "text/javascript; charset=utf-8";

const STYLE = "text/css; charset=utf-8";

/** All that pages load beside themselves, and its type. */
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

/** Their texts, from wherever this platform keeps them. */
export type Assets = { readonly [Name in AssetName]: string };

/** How this platform keeps responses open. */
export interface Streams {
  /** Aborted when the server ends. */
  readonly closing: AbortSignal;
  /** At most so many at a time; beyond, callers ask again and again. */
  readonly limit: number;
}

export interface AuthSettings {
  /** True: a token is always required. False: only once there was one, though it be revoked. */
  readonly required: boolean;
  /** Hosts that a request without a token may name; null: any. Keeps web pages off an open API on loopback (DNS rebinding). */
  readonly hosts: ReadonlySet<string> | null;
  /** A reverse proxy sets X-Forwarded-Host: it is the host that the client asked for. Default: no, it counts for nothing. */
  readonly trustForwardedHost?: boolean;
  /** sha256 of an administrator's token that is kept outside the history. */
  readonly adminTokenHash?: string;
}

export interface ApiLimits {
  /** Bytes of one request body (of one line in a batch), compressed or not, whichever is more. */
  readonly bodyBytes: number;
  /** Requests of one caller that may be under way at a time; more are answered 429. */
  readonly concurrency: number;
  /** Bytes of all request bodies that are read or worked on at a time; more are answered 503. Absent: 32 of the largest. */
  readonly bodyBytesInFlight?: number;
  /** Nodes that have series of their own in /metrics, those that stand worst first. Absent: 100. */
  readonly metricsNodes?: number;
  /** Bytes a second below which a body that is on its way is given up with a 408. Absent: 4096; 0: never. */
  readonly bodyBytesPerSecond?: number;
}

/** Why a body could not be read whole. */
export type BodyFault = "too_large" | "too_dense" | "wide_window" | "too_slow" | "no_room" | "incomplete";

/** The limits on the cost of reading a body. */
export interface BodyBounds {
  /** Bytes. */
  readonly limit: number;
  /** False: all bodies together have too many bytes. */
  readonly take: (bytes: number) => boolean;
  /** As in `ApiLimits`. */
  readonly bytesPerSecond: number;
}

/** How this platform hands a request's body over. */
export interface Bodies {
  /** The whole body as posted. `env` is what the server gave the app beside the request. */
  bytes(request: Request, env: unknown, bounds: BodyBounds): Promise<Result<Uint8Array, BodyFault>>;
  /** Content-Encoding -> a stream that undoes it. What is not here is answered 415. */
  readonly decoders: ReadonlyMap<string, BodyDecoder>;
}

export interface BodyDecoder {
  open(): ReadableWritablePair<Uint8Array, Uint8Array>;
  /** Bytes of what it has unpacked that it keeps at most. Absent: so few that they are not counted. */
  readonly windowBytes?: number;
}

/** How this platform keeps what it knows of nodes between their turns. */
interface NodeStates {
  /** Bytes of them all together, as a guess. */
  readonly maxBytes: number;
  /** How long what a node decides again and again may wait for the history: see `NodeTurnsPorts`. */
  readonly holdMs: number;
  /** Has work done before the history is closed. */
  readonly atEnd: (work: () => Promise<void>) => void;
}

/** Calls `onSent` once, when the answer to a request has been handed over whole, or its connection is gone. */
export type WhenSent = (env: unknown, onSent: () => void) => void;

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;
/** The span of a request under way. */
export interface RequestSpan {
  readonly traceId: string;
  /** Adds a span that began at `startedMs` (of `performance.now`) and ends now. `error`: a closed code of what went wrong. */
  child(name: "decide" | "record", startedMs: number, attributes: SpanAttributes, error?: string): void;
  /** `route`: null: there is none. `code`: of the problem that was answered. */
  end(ended: { readonly route: string | null; readonly status: number; readonly code: string | undefined }): void;
}
/** Spans of requests, by OpenTelemetry's conventions. */
export interface Tracing {
  /** `env`: what the server gave the app beside the request. */
  request(request: Request, env: unknown, requestId: string): RequestSpan;
}

/** Everything that the app touches of the world. */
export interface ApiDeps {
  readonly store: Store;
  readonly now: () => EpochMs;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bodies: Bodies;
  /** Absent: an answer counts as sent when it is made. */
  readonly whenSent?: WhenSent;
  /** Decodes and decides; inline, or in threads of its own. */
  readonly evaluate: Evaluate;
  /** Absent: nobody wants spans. */
  readonly tracing?: Tracing;
  /** Absent: this platform has no threads, and all is done in the one that listens. */
  readonly offThread?: OffThread;
  /** Lower case hex of the text's UTF-8. */
  readonly sha256: (text: string) => string | Promise<string>;
  /** Ids of snapshots and decisions. Absent: hashes of what they are made of, alone. */
  readonly ids?: Ids;
  readonly auth: AuthSettings;
  readonly limits: ApiLimits;
  /** False: decisions are answered with `recorded: false` and nothing is written for them. */
  readonly recordDecisions: boolean;
  /** Absent: a process may end at any time, and has little memory: nothing waits. */
  readonly nodeStates?: NodeStates;
  /** The server makes it from these dependencies. Absent: this API takes no turns. */
  readonly turns?: NodeTurns;
  /** Takes a node's turn where its history is, and answers the JSON text of the answer. Absent: that is here. */
  readonly turnElsewhere?: (node: string, bytes: Uint8Array) => Promise<Result<string, Problem>>;
  /** Absent: this platform ends responses soon, so who wants to hear of news asks again and again. */
  readonly streams?: Streams;
  /** The files that the pages load. */
  readonly assets: Assets;
  /** Compresses pages and assets for a browser that takes it; absent: the platform does it by itself. */
  readonly gzip?: (text: string) => Uint8Array<ArrayBuffer>;
}
