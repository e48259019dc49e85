import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { onTestFinished } from "vitest";

/**
 * A decoded protobuf message: the values of each field number, as bytes or as the number of a varint or 8-byte value.
 */
type Message = ReadonlyMap<number, readonly (Uint8Array | bigint)[]>;

function messageIn(bytes: Uint8Array): Message {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fields = new Map<number, (Uint8Array | bigint)[]>();
  let at = 0;
  const varint = (): bigint => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = bytes[at++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
      shift += 7n;
    }
  };
  const moved = (by: number): number => {
    at += by;
    return at - by;
  };
  const ofType: Readonly<Record<number, () => Uint8Array | bigint>> = {
    0: varint,
    1: () => view.getBigUint64(moved(8), true),
    2: () => {
      const length = Number(varint());
      const from = moved(length);
      return bytes.subarray(from, at);
    },
    5: () => BigInt(view.getUint32(moved(4), true)),
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const read = ofType[tag & 7];
    if (read === undefined) throw new Error(`no wire type ${tag & 7}`);
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), read()]);
  }
  return fields;
}
const all = (message: Message, field: number): readonly Message[] =>
  (message.get(field) ?? []).map((one) => messageIn(one as Uint8Array));
const text = (message: Message, field: number): string =>
  new TextDecoder().decode((message.get(field)?.[0] as Uint8Array | undefined) ?? new Uint8Array());
const hex = (message: Message, field: number): string =>
  Buffer.from((message.get(field)?.[0] as Uint8Array | undefined) ?? []).toString("hex");
const number = (message: Message, field: number): number => Number(message.get(field)?.[0] ?? 0n);
function double(message: Message, field: number): number {
  const bits = message.get(field)?.[0];
  return typeof bits === "bigint" ? (new Float64Array(BigUint64Array.of(bits).buffer)[0] as number) : Number.NaN;
}
const packed = (message: Message, field: number): DataView => {
  const bytes = (message.get(field)?.[0] as Uint8Array | undefined) ?? new Uint8Array();
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
};
const each = <T>(view: DataView, read: (at: number) => T): readonly T[] =>
  Array.from({ length: view.byteLength / 8 }, (_, i) => read(i * 8));

type Attributes = Readonly<Record<string, unknown>>;
/** opentelemetry/proto/common/v1: KeyValue and AnyValue. */
const attributesIn = (message: Message, field: number): Attributes =>
  Object.fromEntries(all(message, field).map((one) => [text(one, 1), valueIn(all(one, 2)[0] ?? new Map())]));
function valueIn(any: Message): unknown {
  if (any.has(1)) return text(any, 1);
  if (any.has(2)) return any.get(2)?.[0] === 1n;
  if (any.has(3)) return number(any, 3);
  if (any.has(4)) return double(any, 4);
  return all(all(any, 5)[0] ?? new Map(), 1).map(valueIn);
}

export interface SpanSeen {
  readonly resource: Attributes;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  readonly ms: number;
  readonly attributes: Attributes;
  readonly status: number;
}
/** opentelemetry/proto/trace/v1 */
const spansIn = (request: Message): readonly SpanSeen[] =>
  all(request, 1).flatMap((of) => {
    const resource = attributesIn(all(of, 1)[0] ?? new Map(), 1);
    return all(of, 2).flatMap((scope) =>
      all(scope, 2).map((span) => ({
        resource,
        traceId: hex(span, 1),
        spanId: hex(span, 2),
        parentId: hex(span, 4),
        name: text(span, 5),
        kind: number(span, 6),
        ms: Number((span.get(8)?.[0] as bigint) - (span.get(7)?.[0] as bigint)) / 1e6,
        attributes: attributesIn(span, 9),
        status: number(all(span, 15)[0] ?? new Map(), 3),
      })),
    );
  });

export interface MetricSeen {
  readonly name: string;
  readonly unit: string;
  readonly type: "gauge" | "sum" | "histogram";
  /** 2: cumulative. */
  readonly temporality: number;
  readonly isMonotonic: boolean;
  readonly points: readonly {
    readonly attributes: Attributes;
    readonly value: number;
    readonly counts: readonly number[];
    readonly bounds: readonly number[];
    readonly sum: number;
  }[];
}
/** opentelemetry/proto/metrics/v1 */
const metricsIn = (request: Message): readonly MetricSeen[] =>
  all(request, 1).flatMap((of) =>
    all(of, 2).flatMap((scope) =>
      all(scope, 2).map((metric) => {
        const [type, field] = metric.has(5)
          ? (["gauge", 5] as const)
          : metric.has(7)
            ? (["sum", 7] as const)
            : (["histogram", 9] as const);
        const data = all(metric, field)[0] ?? new Map();
        const points = all(data, 1).map((point) => {
          const [counts, bounds] = [packed(point, 6), packed(point, 7)];
          return type === "histogram"
            ? {
                attributes: attributesIn(point, 9),
                value: number(point, 4),
                counts: each(counts, (at) => Number(counts.getBigUint64(at, true))),
                bounds: each(bounds, (at) => bounds.getFloat64(at, true)),
                sum: double(point, 5),
              }
            : { attributes: attributesIn(point, 7), value: double(point, 4), counts: [], bounds: [], sum: 0 };
        });
        return {
          name: text(metric, 1),
          unit: text(metric, 3),
          type,
          temporality: number(data, 2),
          isMonotonic: number(data, 3) === 1,
          points,
        };
      }),
    ),
  );

/** A collector that accepts OTLP over HTTP on loopback, until the running test ends. */
export async function collector() {
  const spans: SpanSeen[] = [];
  const exports: (readonly MetricSeen[])[] = [];
  const bodies: Buffer[] = [];
  const answers = { status: 200 };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const sent = Buffer.concat(parts);
      const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
      bodies.push(body);
      if (answers.status === 200 && request.url === "/v1/traces") spans.push(...spansIn(messageIn(body)));
      if (answers.status === 200 && request.url === "/v1/metrics") exports.push(metricsIn(messageIn(body)));
      response.writeHead(answers.status, { "content-type": "application/x-protobuf" }).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, exports, bodies, answers };
}
