import { createServer, type Server, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { err, ok, type Result } from "../model/result.ts";
import { PROBLEM_TYPE, PROBLEMS, type ProblemCode, problemText } from "../routes/problem.ts";

export interface Listening {
  readonly host: string;
  readonly port: number;
  /** Stops accepting, lets requests under way end within `graceMs`, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/** Time for the headers to arrive, and for a whole request: a slow sender does not hold a connection for ever. */
const HEADERS_MS = 30_000;
const REQUEST_MS = 300_000;
const KEEP_ALIVE_MS = 65_000;

/** Serves the app over HTTP/1.1. Errors: the address cannot be listened on. */
export function listen(app: Hono, host: string, port: number): Promise<Result<Listening, string>> {
  const listener = getRequestListener(app.fetch, {
    errorHandler: () => badRequest("the request line or the Host header is not valid"),
  });
  const server = createServer(
    { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, keepAliveTimeout: KEEP_ALIVE_MS },
    listener,
  );
  server.on("clientError", answerBroken);
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(err(startFault(error, host, port))));
    server.listen(port, host, () => {
      const address = server.address() as AddressInfo;
      resolve(ok({ host: address.address, port: address.port, close: (graceMs) => close(server, graceMs) }));
    });
  });
}

function badRequest(detail: string): Response {
  const text = problemText({ code: "bad_request", detail }, crypto.randomUUID());
  return new Response(text, { status: 400, headers: { "content-type": PROBLEM_TYPE } });
}

const CODES: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/** What never became a request is answered on the bare connection. */
function answerBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const code = CODES[error.code ?? ""] ?? "bad_request";
  const { status, title } = PROBLEMS[code];
  const body = problemText({ code, detail: title }, crypto.randomUUID());
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
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
