import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { err, ok, type Result } from "../../api/base/result.ts";
import { hostText, isOwnHost, type ListenAddress } from "../core/addresses.ts";
import type { DaemonMetrics } from "./metrics.ts";
import type { NodeStatus } from "./node-status.ts";

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}
interface AnswerSources {
  readonly status: () => NodeStatus;
  /** Reads the probe history, newest first; absent: there is none. Error: it cannot be read. */
  readonly probeHistory?: (asked: HistoryQuery) => Result<readonly object[], string>;
  readonly metrics: Pick<DaemonMetrics, "render">;
}

const PATHS = [
  "/healthz",
  "/readyz",
  "/v1/status",
  "/v1/pods",
  "/v1/events",
  "/v1/probes",
  "/v1/probes/history",
  "/metrics",
];
/** Entries of a history in one answer. */
const MAX_ENTRIES = 1000;
const DEFAULT_ENTRIES = 50;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

const json = (value: unknown, status = 200): Answer => ({
  status,
  type: "application/json",
  text: `${JSON.stringify(value)}\n`,
});
/** A problem in the API's form. */
export const problem = (status: number, code: string, detail: string): Answer => ({
  ...json({ status, code, detail }, status),
  type: "application/problem+json",
});

/** Lists what prevents the daemon from working; empty: it is ready. */
function notReady({ pass, runtime, mode, runsPods, unwritable = [] }: NodeStatus): readonly string[] {
  return [
    ...(pass === null ? ["the first pass has not ended yet"] : []),
    // a daemon that runs no pods needs no runtime
    ...(runtime === null && mode === "enforce" && runsPods !== false ? ["the container runtime does not answer"] : []),
    ...unwritable.map((fault) => `its own files cannot be written: ${fault}`),
  ];
}

/** Answers a request for a path with a query, such as `/v1/events?since=2026-01-31T12:00:00Z`. */
export async function answer(target: string, { status, metrics, probeHistory }: AnswerSources): Promise<Answer> {
  const [path = "", ...query] = target.split("?");
  switch (path) {
    case "/healthz":
      return json({ status: "ok" });
    case "/readyz": {
      const reasons = notReady(status());
      return json({ ready: reasons.length === 0, reasons }, reasons.length === 0 ? 200 : 503);
    }
    case "/v1/status":
      return json(status());
    case "/v1/pods": {
      const { at, nodeName, pods, refusedManifests } = status();
      return json({ at, nodeName, pods, refusedManifests });
    }
    case "/v1/events":
      return events(status(), new URLSearchParams(query.join("?")).get("since"));
    case "/v1/probes": {
      const { at, nodeName, probes } = status();
      return json({ at, nodeName, probes: probes ?? null });
    }
    case "/v1/probes/history":
      return history(status(), new URLSearchParams(query.join("?")), probeHistory);
    case "/metrics": {
      const { type, text } = await metrics.render(status());
      return { status: 200, type, text };
    }
    default:
      return problem(404, "not_found", `there is no such path here, but ${PATHS.join(", ")}`);
  }
}

/** Events that were seen at that time or later. */
function events({ at, nodeName, events }: NodeStatus, since: string | null): Answer {
  const sinceMs = since === null ? Number.NEGATIVE_INFINITY : TIME.test(since) ? Date.parse(since) : Number.NaN;
  if (Number.isNaN(sinceMs)) return problem(400, "bad_request", "since: expected a time such as 2026-01-31T12:00:00Z");
  return json({ at, nodeName, events: events.filter((event) => Date.parse(event.at) >= sinceMs) });
}

/** `limit` entries of a `pod`, or of all. */
function history({ at, nodeName }: NodeStatus, asked: URLSearchParams, read: AnswerSources["probeHistory"]): Answer {
  const limit = Number(asked.get("limit") ?? DEFAULT_ENTRIES);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ENTRIES)
    return problem(400, "bad_request", `limit: expected a whole number from 1 to ${MAX_ENTRIES}`);
  const entries = read?.({ limit, pod: asked.get("pod") ?? undefined });
  if (entries?.ok === false) return problem(500, "internal", entries.error);
  return json({ at, nodeName, entries: entries?.value ?? [] });
}

export interface HistoryQuery {
  readonly limit: number;
  /** NAMESPACE/NAME: entries about it only, the guard's with its containers too. */
  readonly pod?: string | undefined;
}

export interface StatusServerOptions extends AnswerSources {
  readonly listen: ListenAddress;
  /** The node's names, under which it may be requested besides `localhost` and addresses. */
  readonly ownNames: readonly string[];
}
export interface StatusServer {
  /** Without a trailing slash. */
  readonly url: string;
  /** Aborts running requests. */
  close(): Promise<void>;
}

/** INVARIANT: each client uses a bounded part of the daemon for a bounded time, however slow it is. */
const LIMITS = { connections: 32, headerBytes: 8192, requestsPerConnection: 1000 } as const;
const TIMES = { headersTimeout: 5000, requestTimeout: 10_000, keepAliveTimeout: 5000 } as const;
/** The longest that a connection may have no traffic. */
const IDLE_MS = 30_000;

const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
} as const;

/** Serves what the daemon sees and did, read-only. Errors: the address cannot be listened on, with what to do. */
export function startStatusServer(options: StatusServerOptions): Promise<Result<StatusServer, string>> {
  const { host, port } = options.listen;
  const server = createServer({ ...TIMES, maxHeaderSize: LIMITS.headerBytes }, (request, response) => {
    void reply(request, response, options);
  });
  server.maxConnections = LIMITS.connections;
  server.maxRequestsPerSocket = LIMITS.requestsPerConnection;
  server.setTimeout(IDLE_MS);
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(err(startFault(error, host, port))));
    server.listen(port, host, () => {
      // later ones concern single connections, which the server ends by itself
      server.on("error", () => {});
      const own = server.address() as AddressInfo;
      resolve(ok({ url: `http://${hostText(host)}:${own.port}`, close: () => close(server) }));
    });
  });
}

async function reply(request: IncomingMessage, response: ServerResponse, options: StatusServerOptions): Promise<void> {
  const refused = refusalOf(request, options.ownNames);
  const { status, type, text } = refused ?? (await answered(request.url ?? "", options));
  const body = Buffer.from(text, "utf8");
  response.writeHead(status, {
    ...HEADERS,
    "content-type": type,
    "content-length": body.length,
    ...(status === 405 ? { allow: "GET" } : {}),
    // the rest of the connection's requests is not read
    ...(refused === null ? {} : { connection: "close" }),
  });
  response.end(body);
}

/** Why a request is refused; null: it is allowed. */
function refusalOf(request: IncomingMessage, ownNames: readonly string[]): Answer | null {
  const { method, headers, url = "" } = request;
  if (!isOwnHost(headers.host ?? "", ownNames))
    return problem(403, "wrong_host", "the Host header does not name this node: ask by its address, or by localhost");
  if (method !== "GET") return problem(405, "method_not_allowed", "only GET: nothing can be changed here");
  if (!url.startsWith("/")) return problem(400, "bad_request", "the request's target is no path");
  const hasBody = headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
  return hasBody ? problem(413, "body_too_large", "no path takes a body") : null;
}

async function answered(url: string, sources: AnswerSources): Promise<Answer> {
  try {
    return await answer(url, sources);
  } catch (error) {
    return problem(500, "internal", (error as Error).message);
  }
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

function startFault({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  const advice = {
    EADDRINUSE: "another program listens there, perhaps another nodewise: name another port, or off",
    EACCES: "this user may not: name a port above 1023",
    EADDRNOTAVAIL: "this machine has no such address: name one of its own",
  }[code ?? ""];
  const why = advice === undefined ? "" : `: ${advice}`;
  return `statusListen: cannot listen on ${hostText(host)}:${port}: ${code ?? message}${why}`;
}
