import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { ProbeTarget } from "../../../actuator/probes/net/dial.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";

/** The servers of one test file, and their open connections. */
export class Servers {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  /** Listens on loopback, and returns the port. */
  async listen(server: Server, host = "127.0.0.1"): Promise<number> {
    this.#servers.push(server);
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    });
    server.listen(0, host);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }
  /** Listens; by default the server reads all data of a connection and never answers. */
  serve(onSocket: (socket: Socket) => void = (socket) => socket.resume()): Promise<number> {
    return this.listen(createServer(onSocket));
  }
  /** Sends one text to each client. */
  raw(text: string, after: "keep" | "end" | "reset" = "keep"): Promise<number> {
    return this.serve((socket) =>
      socket.once("data", () => {
        socket.write(text);
        if (after === "end") socket.end();
        if (after === "reset") socket.resetAndDestroy();
      }),
    );
  }
  /** The number of connections that are open at this moment. */
  get open(): number {
    return this.#sockets.size;
  }
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers.splice(0)) server.close();
  }
}

export const TARGET: ProbeTarget = { podIP: "127.0.0.1", ports: [], containerId: "c1", env: [], profile: v1_36 };
export const getAt = (port: number, more: Partial<ProbeHttpGet> = {}): ProbeHttpGet => ({
  ...{ scheme: "HTTP", host: "", port, path: "/", headers: [] },
  ...more,
});
/** A word for the result, and its text, with addresses replaced by HOST. */
export function reportOf(outcome: ProbeOutcome): readonly [string, string] {
  const [word, text] = "error" in outcome ? ["error", outcome.error] : [outcome.result, outcome.output];
  return [word, text.replace(/127\.0\.0\.1:\d{2,}/g, "HOST")];
}
