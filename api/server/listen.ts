import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { err, ok, type Result } from "../base/result.ts";
import type { WhenSent } from "../dependencies.ts";
import { PROBLEMS } from "../http/problem.ts";
import { problemResponse } from "../http/respond.ts";
import type { ProblemCode } from "../service/problem.ts";
import { type TaskQueue, taskQueue } from "../service/task-queue.ts";
import type { KeyPair } from "./tls.ts";

interface ListenOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Requests start as these tasks, however many arrive at once. */
  readonly tasks?: TaskQueue;
  /** A connection whose client reads nothing of a response for this long is closed. */
  readonly unreadMs?: number;
  /** Absent for plain HTTP. */
  readonly tls?: KeyPair;
}

export interface ListeningServer {
  readonly host: string;
  readonly port: number;
  /** The server with TLS, whose certificate can be renewed; null without. */
  readonly tlsServer: TlsServer | null;
  /** Stops accepting, lets open requests finish within `graceMs`, then closes the rest. */
  close(graceMs: number): Promise<void>;
}

/** The time for the headers, and for a whole request: a slow sender cannot keep a connection forever. */
const HEADERS_MS = 30_000;
const REQUEST_MS = 300_000;
const KEEP_ALIVE_MS = 65_000;
/** How long a client may keep its connection open after its last response at shutdown. */
const HANG_UP_MS = 1_000;
/** A connection whose client reads nothing for this long is closed. */
const UNREAD_MS = 60_000;

/** Serves the app over HTTP/1.1, with TLS 1.2 or newer if there is a key pair. Errors: the address cannot be listened on. */
export function listen(
  app: Hono,
  { host, port, tasks = taskQueue(), unreadMs = UNREAD_MS, tls }: ListenOptions,
): Promise<Result<ListeningServer, string>> {
  const listener = getRequestListener(app.fetch, {
    errorHandler: () =>
      new Response(...problemOf("bad_request", "the request line is not valid, or the Host header is not, or missing")),
  });
  const settings = {
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // the listener answers a request without a Host header with a body of its own
    requireHostHeader: false,
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    void tasks(async () => {
      // the client may have disconnected meanwhile
      if (!response.destroyed) void listener(request, response);
    }, false);
  const tlsServer =
    tls === undefined
      ? null
      : createTlsServer({ ...settings, cert: tls.cert, key: tls.key, minVersion: "TLSv1.2" }, onRequest);
  const server: Server = tlsServer ?? createServer(settings, onRequest);
  server.timeout = unreadMs;
  server.on(tlsServer === null ? "connection" : "secureConnection", closePipelined);
  server.on("request", (request, response) => {
    openOn.get(request.socket)?.add(response);
    response.once("close", () => openOn.get(request.socket)?.delete(response));
    // no data moved in either direction; a slow reader that reads a little does not get here
    response.on("timeout", (socket: Socket) => {
      if (socket.writableLength > 0) socket.destroy();
      else socket.setTimeout(unreadMs);
    });
  });
  server.on("connect", (_request, socket) => {
    const detail = "CONNECT is not possible here: this is not a proxy";
    // the server no longer watches the socket
    socket.on("error", () => socket.destroy()).resume();
    endWith(socket, problemOf("method_not_allowed", detail, { allow: "GET, HEAD, POST, PUT" }));
    (socket as Socket).setTimeout(HANG_UP_MS, () => socket.destroy());
  });
  server.on("clientError", answerBroken);
  server.on("checkExpectation", answerExpectation);
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(err(startFault(error, host, port))));
    server.listen(port, host, () => {
      const address = server.address() as AddressInfo;
      const { address: at, port: bound } = address;
      resolve(ok({ host: at, port: bound, tlsServer, close: (graceMs) => close(server, graceMs) }));
    });
  });
}

/**
 * Calls `onSent` when the response has been handed to the system completely, or its connection is closed: then a write that was cut off
 * may still use the body.
 */
export const whenSent: WhenSent = (env, onSent) => {
  const outgoing = (env as { outgoing?: ServerResponse } | undefined)?.outgoing;
  if (outgoing === undefined || outgoing.destroyed || outgoing.writableFinished) onSent(false);
  else outgoing.once("close", () => onSent(outgoing.writableFinished));
};

const openOn = new WeakMap<Socket, Set<ServerResponse>>();
/** Node tells only the current response that its connection is closed; this tells the pipelined ones behind it. */
function closePipelined(socket: Socket): void {
  const open = new Set<ServerResponse>();
  openOn.set(socket, open);
  socket.once("close", () => {
    for (const response of open) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit("close");
    }
  });
}

type Headers = Readonly<Record<string, string>>;
const problemOf = (code: ProblemCode, detail: string = PROBLEMS[code].title, headers: Headers = {}) =>
  problemResponse({ code, detail, headers }, crypto.randomUUID());

/** RFC 9110 10.1.1: an Expect other than `100-continue`. The body is not read. */
function answerExpectation(request: IncomingMessage, response: ServerResponse): void {
  const found = String(request.headers.expect).slice(0, 100);
  const [body, { status, headers }] = problemOf("expectation_failed", `\`${found}\` is not \`100-continue\``);
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body), connection: "close" }).end(body);
}

const CODES: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/** Answers on the bare connection if the bytes never became a request. */
function answerBroken(error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }, socket: Duplex): void {
  // unsent bytes belong to a response, and another one must not be written into it
  if (error.code === "ECONNRESET" || !socket.writable || socket.writableLength > 0) return void socket.destroy();
  const isHead = error.rawPacket?.subarray(0, 5).toString("latin1") === "HEAD ";
  endWith(socket, problemOf(CODES[error.code ?? ""] ?? "bad_request"), isHead);
}

function endWith(socket: Duplex, [body, { status, headers }]: ReturnType<typeof problemOf>, isHead = false): void {
  const all = { ...headers, "content-length": Buffer.byteLength(body), connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${isHead ? "" : body}`);
}

function startFault(error: NodeJS.ErrnoException, host: string, port: number): string {
  const advice = {
    EADDRINUSE: "another program listens there; use another port, or 0 for any free one",
    EACCES: "this user may not bind it; use a port above 1023",
    EADDRNOTAVAIL: "this machine has no such address; use one of its own",
    ENOTFOUND: "this name has no address; use an address",
  }[error.code ?? ""];
  return `cannot listen on ${host} port ${port}: ${error.code ?? error.message}${advice === undefined ? "" : `: ${advice}`}`;
}

/** Idle connections are closed repeatedly, since each becomes idle after its last response. */
async function close(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}
