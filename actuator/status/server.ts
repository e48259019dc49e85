import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { err, ok, type Result } from "../../api/model/result.ts";
import { http } from "../http.ts";
import { type Answer, type AnswerSources, answer, problem } from "./answers.ts";
import { hostText, isOwnHost, type ListenAddress } from "./listen.ts";

export interface StatusServerOptions extends AnswerSources {
  readonly listen: ListenAddress;
  /** Names, beside `localhost` and addresses, by which it may be asked: the node's. */
  readonly ownNames: readonly string[];
}
export interface StatusServer {
  /** Without a trailing slash. */
  readonly url: string;
  /** Cuts what is under way. */
  close(): Promise<void>;
}

/** INVARIANT: whoever asks, and however slowly, holds a bounded part of the daemon for a bounded time. */
const LIMITS = { connections: 32, headerBytes: 8192, requestsPerConnection: 1000 } as const;
const TIMES = { headersTimeout: 5000, requestTimeout: 10_000, keepAliveTimeout: 5000 } as const;
/** Of a connection on which nothing moves. */
const IDLE_MS = 30_000;

const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** Answers what the daemon sees and did; changes nothing. Errors: the address cannot be listened on, with what to do. */
export function startStatusServer(options: StatusServerOptions): Promise<Result<StatusServer, string>> {
  const { host, port } = options.listen;
  const server = http.createServer({ ...TIMES, maxHeaderSize: LIMITS.headerBytes }, (request, response) => {
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
    // what else is under way on the connection is not read
    ...(refused === null ? {} : { connection: "close" }),
  });
  response.end(body);
}

/** Null: it may be answered. */
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
