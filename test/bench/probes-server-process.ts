import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * As many ordinary servers on loopback as requested: in a cluster, thousands of probes per second rarely reach a single
 * server.
 */
const servers = Array.from({ length: Number(process.argv[2]) }, () =>
  createServer({ keepAlive: false }, (_request, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": 2 });
    response.end("ok");
  }),
);
const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => resolve((server.address() as AddressInfo).port));
  });
const ports = await Promise.all(servers.map(listening));
process.on("disconnect", () => process.exit());
process.send?.(ports);
