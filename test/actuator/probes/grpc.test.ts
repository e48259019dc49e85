import { createServer as http1 } from "node:http";
import { createServer } from "node:http2";
import { connect } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { grpcProbe } from "../../../actuator/probes/grpc/grpc.ts";
import type { ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { ANSWERS, failed, failure, framed, OK } from "./grpc-answers.ts";
import { type Check, healthServer } from "./health-server.ts";
import { Servers, TARGET } from "./servers.ts";

const servers = new Servers();
afterAll(() => servers.close());
/** The timeout of probes that time out, and that of probes that do not. */
const SHORT_MS = 2000;
const LONG_MS = 20_000;
const probe = (port: number, timeoutMs = LONG_MS, service = "svc"): Promise<ProbeOutcome> =>
  grpcProbe({ port, service }, TARGET, timeoutMs);

describe("a gRPC probe of a server by Node's library", () => {
  const answering =
    (status: string): Check =>
    (_, answer) =>
      answer(null, { status });
  const failing =
    (code: number, details: string): Check =>
    (_, answer) =>
      answer({ code, details });

  test.each<readonly [string, Check, ProbeOutcome]>([
    ["SERVING", answering("SERVING"), { result: "success", output: "service healthy" }],
    ["NOT_SERVING", answering("NOT_SERVING"), failure('service unhealthy (responded with "NOT_SERVING")')],
    ["UNKNOWN", answering("UNKNOWN"), failure('service unhealthy (responded with "UNKNOWN")')],
    ["SERVICE_UNKNOWN", answering("SERVICE_UNKNOWN"), failure('service unhealthy (responded with "SERVICE_UNKNOWN")')],
    ["no such service", failing(5, "unknown service"), failed("NotFound desc = unknown service")],
    ["an error of many signs", failing(13, 'a "b" ü 100%'), failed('Internal desc = a "b" ü 100%')],
    ["a deadline of its own", failing(4, "own"), failure("timeout: health rpc did not complete within 20s")],
    [
      "no health at all",
      null,
      failure(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " +
          "The server does not implement the method /grpc.health.v1.Health/Check",
      ),
    ],
  ])("%s", async (_, check, outcome) => {
    await using server = await healthServer(check);
    expect(await probe(server.port)).toEqual(outcome);
  });
  test("sends service, user agent and deadline", async () => {
    const seen: unknown[] = [];
    await using server = await healthServer((call, answer) => {
      seen.push(call.request.service, call.metadata.get("user-agent"), call.getDeadline() !== Number.POSITIVE_INFINITY);
      answer(null, { status: "SERVING" });
    });
    await probe(server.port);
    await probe(server.port, LONG_MS, "");
    const agent = "kube-probe/1.36 grpc-go/1.79.3";
    expect(seen).toEqual(["svc", [agent], true, "", [agent], true]);
  });
  test("times out when the server never answers", async () => {
    await using server = await healthServer(() => {});
    expect(await probe(server.port, SHORT_MS)).toEqual(failure("timeout: health rpc did not complete within 2s"));
  });
});

describe("a gRPC probe of a server that does not speak gRPC", () => {
  const noConnection = (port: number) =>
    failure(`timeout: failed to connect service "127.0.0.1:${port}" within 2s: context deadline exceeded`);

  test("fails for a closed port, an HTTP/1 server, a silent server and one that closes at once", async () => {
    const web = await servers.listen(http1((_, response) => response.end("ok")));
    const ends = await servers.serve((socket) => socket.end());
    for (const port of [1, web, await servers.serve(), ends]) {
      expect(await probe(port, SHORT_MS)).toEqual(noConnection(port));
    }
  });
  test("succeeds when a server comes up within the timeout", async () => {
    let asked = 0;
    await using server = await healthServer((_, answer) => answer(null, { status: "SERVING" }));
    const late = await servers.serve((socket) => {
      // the first connection is closed, the next is forwarded to the server
      if (asked++ === 0) return void socket.end();
      const behind = connect(server.port, "127.0.0.1");
      behind.on("error", () => socket.destroy());
      socket.on("close", () => behind.destroy());
      socket.pipe(behind).pipe(socket);
    });
    expect(await probe(late)).toEqual({ result: "success", output: "service healthy" });
    expect(asked).toBe(2);
  });
});

test.each(ANSWERS)(
  "a gRPC probe of a server that answers with %s has the kubelet's outcome",
  async (_, answer, outcome) => {
    const server = createServer().on("sessionError", () => {});
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      answer(stream);
    });
    expect(await probe(await servers.listen(server))).toEqual(outcome);
  },
);
test("a gRPC probe times out when the server never ends its answer", async () => {
  const server = createServer().on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond(OK);
    stream.write(framed(8, 1));
  });
  const port = await servers.listen(server);
  expect(await probe(port, SHORT_MS)).toEqual(failure("timeout: health rpc did not complete within 2s"));
});
