import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { ProbeOutcome } from "../../../api/model/probe-spec.ts";

export const failure = (output: string): ProbeOutcome => ({ result: "failure", output });
export const failed = (status: string): ProbeOutcome =>
  failure(`error: health rpc probe failed: rpc error: code = ${status}`);

export type Answer = (stream: ServerHttp2Stream) => void;
export const OK = { ":status": 200, "content-type": "application/grpc" };
export const framed = (...bytes: number[]) => Buffer.from([0, 0, 0, 0, bytes.length, ...bytes]);
const reportOf =
  (body: Buffer, trailers: OutgoingHttpHeaders): Answer =>
  (stream) => {
    stream.respond(OK, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  };
const whole = (body: Buffer): Answer => reportOf(body, { "grpc-status": "0" });
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

/** Each answer with the outcome that a real kubelet 1.36.3's gRPC prober reports. */
export const ANSWERS: readonly (readonly [string, Answer, ProbeOutcome])[] = [
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
    reportOf(framed(8, 1), { "grpc-status": "3", "grpc-message": "late" }),
    failed("InvalidArgument desc = late"),
  ],
];
