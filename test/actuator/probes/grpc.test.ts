import { createServer as http1 } from "node:http";
import { createServer, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { afterAll, describe, expect, test } from "vitest";
import { grpcProbe } from "../../../actuator/probes/grpc.ts";
import type { ProbeOutcome } from "../../../api/model/probe.ts";
import { type Check, healthServer } from "./health-server.ts";
import { Servers, TARGET } from "./servers.ts";

const servers = new Servers();
afterAll(() => servers.close());
/** Of what ends by it, and of what does not. */
const SHORT_MS = 1000;
const LONG_MS = 20_000;
const probe = (port: number, timeoutMs = LONG_MS, service = "svc"): Promise<ProbeOutcome> =>
  grpcProbe({ port, service }, TARGET, timeoutMs);
const failure = (output: string) => ({ result: "failure", output });
const failed = (status: string) => failure(`error: health rpc probe failed: rpc error: code = ${status}`);

describe("what a server of Node's library says", () => {
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
  test("it is told who asks for what, and until when", async () => {
    const seen: unknown[] = [];
    await using server = await healthServer((call, answer) => {
      seen.push(call.request.service, call.metadata.get("user-agent"), call.getDeadline() !== Number.POSITIVE_INFINITY);
      answer(null, { status: "SERVING" });
    });
    await probe(server.port);
    await probe(server.port, LONG_MS, "");
    expect(seen).toEqual(["svc", ["kube-probe/1.36"], true, "", ["kube-probe/1.36"], true]);
  });
  test("nothing", async () => {
    await using server = await healthServer(() => {});
    expect(await probe(server.port, SHORT_MS)).toEqual(failure("timeout: health rpc did not complete within 1s"));
  });
});

describe("what is no server of gRPC", () => {
  const noConnection = (port: number) =>
    failure(`timeout: failed to connect service "127.0.0.1:${port}" within 1s: context deadline exceeded`);

  test("nobody, one of HTTP/1, one that says nothing, one that ends at once", async () => {
    const web = await servers.listen(http1((_, response) => response.end("ok")));
    const ends = await servers.serve((socket) => socket.end());
    for (const port of [1, web, await servers.serve(), ends]) {
      expect(await probe(port, SHORT_MS)).toEqual(noConnection(port));
    }
  });
  test("but one that comes within the timeout is found", async () => {
    let asked = 0;
    await using server = await healthServer((_, answer) => answer(null, { status: "SERVING" }));
    const { connect } = await import("node:net");
    const late = await servers.serve((socket) => {
      // the first connection is lost, the next goes on to the server
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

type Answer = (stream: ServerHttp2Stream) => void;
const OK = { ":status": 200, "content-type": "application/grpc" };
const framed = (...bytes: number[]) => Buffer.from([0, 0, 0, 0, bytes.length, ...bytes]);
const told =
  (body: Buffer, trailers: OutgoingHttpHeaders): Answer =>
  (stream) => {
    stream.respond(OK, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  };
const whole = (body: Buffer): Answer => told(body, { "grpc-status": "0" });
const only =
  (headers: OutgoingHttpHeaders): Answer =>
  (stream) =>
    stream.respond({ ...OK, ...headers }, { endStream: true });
const page =
  (headers: OutgoingHttpHeaders): Answer =>
  (stream) => {
    stream.respond(headers);
    stream.end("nope");
  };
const UNIMPLEMENTED = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ";
const UNEXPECTED = "unexpected HTTP status code received from server:";

/** With what a real kubelet 1.36.3's gRPC prober says. */
const ANSWERS: readonly (readonly [string, Answer, ProbeOutcome])[] = [
  [
    "a page that is missing",
    page({ ":status": 404, "content-type": "text/html" }),
    failure(`${UNIMPLEMENTED}${UNEXPECTED} 404 (Not Found); transport: received unexpected content-type "text/html"`),
  ],
  [
    "a page",
    page({ ":status": 200, "content-type": "text/html" }),
    failed(`Unknown desc = ${UNEXPECTED} 200 (OK); transport: received unexpected content-type "text/html"`),
  ],
  [
    "a proxy's error",
    page({ ":status": 503 }),
    failed(`Unavailable desc = ${UNEXPECTED} 503 (Service Unavailable); malformed header: missing HTTP content-type`),
  ],
  [
    "a reset",
    (stream) => stream.close(2),
    failed("Internal desc = stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
  ],
  [
    "a refusal",
    (stream) => stream.close(7),
    failed("Unavailable desc = stream terminated by RST_STREAM with error code: REFUSED_STREAM"),
  ],
  [
    "an end of the connection",
    (stream) => stream.session?.destroy(),
    failed(
      'Unavailable desc = closing transport due to: connection error: desc = "error reading from server: EOF", ' +
        "received prior goaway: code: NO_ERROR",
    ),
  ],
  ["trailers alone", only({ "grpc-status": "14", "grpc-message": "b%C3%BC%20x%" }), failed("Unavailable desc = bü x%")],
  [
    "a status that is none",
    only({ "grpc-status": "abc" }),
    failed('Unknown desc = transport: malformed grpc-status: strconv.ParseInt: parsing "abc": invalid syntax'),
  ],
  ["an unknown status", only({ "grpc-status": "99", "grpc-message": "m" }), failed("Code(99) desc = m")],
  [
    "no trailers",
    (stream) => {
      stream.respond(OK);
      stream.end(framed(8, 1));
    },
    failed("Internal desc = server closed the stream without sending trailers"),
  ],
  [
    "no message",
    whole(Buffer.alloc(0)),
    failed("Internal desc = cardinality violation: received no response message from non-server-streaming RPC"),
  ],
  ["an empty message", whole(framed()), failure('service unhealthy (responded with "UNKNOWN")')],
  ["an unknown health", whole(framed(8, 77)), failure('service unhealthy (responded with "77")')],
  [
    "a message that is none",
    whole(framed(0x0f, 0xff)),
    failed(
      "Internal desc = grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data",
    ),
  ],
  ["half of a message", whole(Buffer.from([0, 0, 0, 0, 9, 8])), failed("Internal desc = unexpected EOF")],
  [
    "a compressed message",
    whole(Buffer.from([1, 0, 0, 0, 2, 8, 1])),
    failed("Internal desc = grpc: compressed flag set with identity or empty encoding"),
  ],
  [
    "two messages",
    whole(Buffer.concat([framed(8, 1), framed(8, 2)])),
    failed(
      "Internal desc = cardinality violation: " +
        "expected <EOF> for non server-streaming RPCs, but received another message",
    ),
  ],
  [
    "a message beyond all measure",
    (stream) => {
      stream.respond(OK);
      stream.write(Buffer.from([0, 0x7f, 0, 0, 0]));
    },
    failed("ResourceExhausted desc = grpc: received message larger than max (2130706432 vs. 4194304)"),
  ],
  [
    "health, and an error behind it",
    told(framed(8, 1), { "grpc-status": "3", "grpc-message": "late" }),
    failed("InvalidArgument desc = late"),
  ],
];
test.each(ANSWERS)("a server that answers with %s", async (_, answer, outcome) => {
  const server = createServer().on("sessionError", () => {});
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    answer(stream);
  });
  expect(await probe(await servers.listen(server))).toEqual(outcome);
});
test("a server that never ends its answer", async () => {
  const server = createServer().on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond(OK);
    stream.write(framed(8, 1));
  });
  const port = await servers.listen(server);
  expect(await probe(port, SHORT_MS)).toEqual(failure("timeout: health rpc did not complete within 1s"));
});
