import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import type { WhenSent } from "../dependencies.ts";
import { PROBLEMS } from "../http/problem.ts";
import { problemResponse } from "../http/respond.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { ProblemCode } from "../service/problem.ts";
import { inTurns, type Turns } from "../service/turns.ts";
import type { KeyPair } from "./tls.ts";

interface ListenOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Requests begin in these, however many come at once. */
  readonly turns?: Turns;
  /** A connection whose reader takes nothing of an answer for so long is cut. */
  readonly unreadMs?: number;
  /** Absent: plain HTTP. */
  readonly tls?: KeyPair;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  /** With TLS: the server, for a renewed certificate. */
  readonly tlsServer: TlsServer | null;
  /** Stops accepting, lets requests under way end within `graceMs`, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/** Time for the headers to arrive, and for a whole request: a slow sender does not hold a connection for ever. */
const HEADERS_MS = 30_000;
const REQUEST_MS = 300_000;
const KEEP_ALIVE_MS = 65_000;
/** How long a client may keep its connection open after its last answer at shutdown. */
const HANG_UP_MS = 1_000;
/** A connection whose client reads nothing for this long is closed. */
const UNREAD_MS = 60_000;

/** Serves the app over HTTP/1.1, with TLS 1.2 or newer where a key pair is given. Errors: the address cannot be listened on. */
export function listen(
  app: Hono,
  { host, port, turns = inTurns(), unreadMs = UNREAD_MS, tls }: ListenOptions,
): Promise<Result<Listening, string>> {
  const listener = getRequestListener(app.fetch, {
    errorHandler: () =>
      new Response(...problemOf("bad_request", "the request line is not valid, or the Host header is not, or missing")),
  });
  const settings = {
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // the listener answers a request without one, and not with an empty body
    requireHostHeader: false,
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    void turns(async () => {
      // its sender may be gone meanwhile, and is not waited for
      if (!response.destroyed) void listener(request, response);
    }, false);
  const tlsServer =
    tls === undefined
      ? null
      : createTlsServer({ ...settings, cert: tls.cert, key: tls.key, minVersion: "TLSv1.2" }, onRequest);
  const server: Server = tlsServer ?? createServer(settings, onRequest);
  server.timeout = unreadMs;
  server.on(tlsServer === null ? "connection" : "secureConnection", tellPipelined);
  server.on("request", (request, response) => {
    openOn.get(request.socket)?.add(response);
    response.once("close", () => openOn.get(request.socket)?.delete(response));
    // nothing moved either way; a slow reader that takes some moves it
    response.on("timeout", (socket: Socket) => {
      if (socket.writableLength > 0) socket.destroy();
      else socket.setTimeout(unreadMs);
    });
  });
  server.on("connect", (_request, socket) => {
    const detail = "CONNECT is not possible here: this is not a proxy";
    // the socket is no longer watched by the server
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

/** Calls `onSent` when the answer has been handed to the system whole, or its connection is gone. */
export const whenSent: WhenSent = (env, onSent) => {
  const outgoing = (env as { outgoing?: ServerResponse } | undefined)?.outgoing;
  if (outgoing === undefined || outgoing.destroyed || outgoing.writableFinished) onSent();
  else outgoing.once("close", onSent);
};

const openOn = new WeakMap<Socket, Set<ServerResponse>>();
/** Node tells only the answer whose turn it is that its connection is gone; those pipelined behind it are told here. */
function tellPipelined(socket: Socket): void {
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

/** RFC 9110 10.1.1: an Expect that is not `100-continue`. Its body is not read. */
function answerExpectation(request: IncomingMessage, response: ServerResponse): void {
  const found = String(request.headers.expect).slice(0, 100);
  const [body, { status, headers }] = problemOf("expectation_failed", `\`${found}\` is not \`100-continue\``);
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body), connection: "close" }).end(body);
}

const CODES: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/** Answers on the bare connection where the bytes never became a request. */
function answerBroken(error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }, socket: Duplex): void {
  // bytes that wait to be sent are those of an answer, in the middle of which there is no other
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
    EADDRINUSE: "another program listens there; name another port, or 0 for any free one",
    EACCES: "this user may not; name a port above 1023",
    EADDRNOTAVAIL: "this machine has no such address; name one of its own",
    ENOTFOUND: "this name has no address; name an address",
  }[error.code ?? ""];
  return `cannot listen on ${host} port ${port}: ${error.code ?? error.message}${advice === undefined ? "" : `: ${advice}`}`;
}

/** Connections that idle are closed again and again, since each becomes idle after its last answer. */
async function close(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}
