import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A server's answers to /start; PORT in a text is replaced by the server's port. */
export interface ServerCase {
  readonly status: number;
  readonly bodyBytes: number;
  /** `same:PATH`, `host:NAME`, or a literal value. */
  readonly location?: string;
  /** The status at /final. */
  readonly finalStatus?: number;
  readonly redirectsForEver?: boolean;
  readonly delayMs?: number;
  readonly hangsInBody?: boolean;
  readonly closesAtOnce?: boolean;
  readonly answersRaw?: string;
}

export interface ProbeServer {
  readonly port: number;
  close(): Promise<void>;
}
export async function probeServer(asked: ServerCase): Promise<ProbeServer> {
  const server: Server = createServer((request, response) => listener(asked, server)(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { port: portOf(server), close };
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

const listener =
  (asked: ServerCase, server: Server): RequestListener =>
  ({ url, socket }, response) => {
    if (url === "/final" && asked.redirectsForEver !== true) {
      response.writeHead(asked.finalStatus ?? 200).end();
      return;
    }
    if (asked.closesAtOnce === true) {
      socket.end();
      return;
    }
    if (asked.answersRaw !== undefined) {
      socket.end(asked.answersRaw);
      return;
    }
    const answer = (): void => {
      // the client may have given up, after which the server was closed
      if (!server.listening) return;
      const location = locationOf(asked.location, portOf(server));
      response.writeHead(asked.status, location === undefined ? {} : { location });
      response.flushHeaders();
      response.write("x".repeat(asked.bodyBytes));
      if (asked.hangsInBody !== true) response.end();
    };
    if (asked.delayMs === undefined) answer();
    else {
      const timer = setTimeout(answer, asked.delayMs);
      response.on("close", () => clearTimeout(timer));
    }
  };

function locationOf(location: string | undefined, port: number): string | undefined {
  return location
    ?.replace(/^same:/, `http://127.0.0.1:${port}`)
    .replace(/^host:/, "http://")
    .replace("PORT", String(port));
}
