import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { healthServer } from "../../../actuator/probes/health-server.ts";

/**
 * The server in a test's container: `tls PORT` serves HTTPS on loopback, and `grpc PATH` serves gRPC health checks on a
 * Unix socket. Files in /served, with one word each, contain the answers.
 */
const SERVED = "/served";
const said = (file: string): string | undefined => {
  try {
    return readFileSync(join(SERVED, file), "utf8").trim();
  } catch {
    return undefined;
  }
};

function serveTls(port: number): void {
  const pem = (name: string): Buffer => readFileSync(join(SERVED, name));
  const server = createServer({ key: pem("key.pem"), cert: pem("cert.pem") }, (request, response) => {
    const answer = said("http") ?? "200";
    if (answer !== "breaks") response.writeHead(Number(answer)).end(`${request.headers["user-agent"]}`);
    else response.writeHead(200, { "content-length": 100 }).write("half of it", () => response.destroy());
  });
  server.listen(port, "127.0.0.1");
}

function serveGrpc(path: string): void {
  // an instance that was killed has left its socket
  rmSync(path, { force: true });
  void healthServer((call, answer) => {
    const known = said(`grpc-${call.request.service || "all"}`);
    if (known === undefined) answer({ code: status.NOT_FOUND, details: "unknown service" });
    else answer(null, { status: known });
  }, `unix:${path}`);
}

const [, , how, where = ""] = process.argv;
if (how === "tls") serveTls(Number(where));
else serveGrpc(where);
process.on("SIGTERM", () => process.exit(0));
