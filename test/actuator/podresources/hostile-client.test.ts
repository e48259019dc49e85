import { describe, expect, test } from "vitest";
import { ok } from "../../../api/base/result.ts";
import { random, sayChanged, sayEndlessHeaders, sayNoise } from "../grpc/hostile.ts";
import { data, frame, framesIn, headers, PREFACE, plain, rawConnection, SETTINGS } from "../grpc/http2.ts";
import { clientOf, serving, sourceWith } from "./served.ts";

const SERVICE = "/v1.PodResourcesLister";
const A = { podName: "a", podNamespace: "default" };
/** A GetPodResourcesRequest for pod `a`. */
const GET_A = Buffer.concat([Buffer.from([0x0a, 1]), Buffer.from("a"), Buffer.from([0x12, 7]), Buffer.from("default")]);
const HEADERS = 1;
const DATA = 0;
const request = (stream: number, method: string, authority: string, message: Buffer): Buffer =>
  Buffer.concat([
    frame(HEADERS, 4, stream, headers(`${SERVICE}/${method}`, plain(authority), "indexed name")),
    data(stream, message),
  ]);

test("a client that sends the socket's path as :authority gets an answer to each method", async () => {
  const { path } = await serving();
  const raw = await rawConnection(path);
  const nothing = Buffer.alloc(0);
  raw.socket.write(
    Buffer.concat([
      PREFACE,
      SETTINGS,
      request(1, "List", path, nothing),
      request(3, "GetAllocatableResources", path, nothing),
      request(5, "Get", path, GET_A),
    ]),
  );
  const answered = () =>
    framesIn(raw.received())
      .filter(({ type, payload }) => type === DATA && payload.length > 5)
      .map(({ stream }) => stream);
  await expect.poll(answered).toEqual([1, 3, 5]);
  raw.socket.destroy();
});

test("a client that does not read a large answer still gets the answers to its other calls", async () => {
  const devices = Array.from({ length: 15_000 }, (_, i) => ({ id: `${"x".repeat(150)}-${i}`, numaNodes: [0] }));
  const source = sourceWith({
    allocatable: { devices: [{ resource: "example.com/gpu", devices }], cpus: [], memory: [] },
  });
  const { path } = await serving({ source: () => ok(source) });
  const raw = await rawConnection(path);
  const nothing = Buffer.alloc(0);
  const answered = (kind: number) => framesIn(raw.received()).filter(({ type }) => type === kind);
  raw.socket.write(Buffer.concat([PREFACE, SETTINGS, request(1, "GetAllocatableResources", path, nothing)]));
  // the connection's window is full: 65,535 bytes
  await expect.poll(() => answered(DATA).reduce((sum, { payload }) => sum + payload.length, 0)).toBe(65_535);
  raw.socket.write(request(3, "GetAllocatableResources", path, nothing));
  await expect.poll(() => answered(HEADERS).map(({ stream }) => stream)).toEqual([1, 3]);
  raw.socket.destroy();
});

describe("hostile bytes", () => {
  test("right behind a request end that connection, and nothing else", async () => {
    const { path } = await serving();
    const asked = {
      "a good request": request(1, "Get", "localhost", GET_A),
      "an unknown method": frame(HEADERS, 4, 1, headers(`${SERVICE}/None`, plain("localhost"), "indexed name")),
      // :method POST, :scheme http, :path
      "no gRPC": frame(HEADERS, 4, 1, Buffer.concat([Buffer.from([0x83, 0x86, 0x44]), plain(`${SERVICE}/Get`)])),
    };
    const broken = {
      "data on no stream": frame(DATA, 0, 0, Buffer.from("x")),
      "a stream's number that is not a client's": frame(HEADERS, 5, 2, Buffer.from([0x83])),
      "settings of no length that can be": frame(4, 0, 0, Buffer.alloc(5)),
      "headers that cannot be read": frame(HEADERS, 4, 3, Buffer.from([0xff, 0xff])),
      "a request that is taken back, without a reason's bytes": frame(3, 0, 1, Buffer.alloc(3)),
      "a continuation of nothing": frame(9, 4, 1, Buffer.alloc(1)),
      "a window that grows by nothing": frame(8, 0, 0, Buffer.alloc(4)),
    };
    for (const first of Object.values(asked)) {
      for (const bytes of Object.values(broken)) {
        const raw = await rawConnection(path);
        raw.socket.write(Buffer.concat([PREFACE, SETTINGS, first, bytes]));
        await raw.closed;
      }
    }
    const ask = clientOf(path);
    await expect.poll(() => ask("Get", A)).toHaveProperty("ok");
  });

  test("after any change to a valid conversation the server answers or closes, and keeps serving", async () => {
    const { path } = await serving();
    const conversation = Buffer.concat([
      PREFACE,
      SETTINGS,
      request(1, "Get", path, GET_A),
      request(3, "Get", "/x", Buffer.from([0x0a, 1, 0x62])),
    ]);
    const seen = await sayChanged(path, conversation, 400, random(20_261_122));
    expect(seen.answered).toBeGreaterThan(20);
    expect(seen.closed).toBeGreaterThan(20);
    const ask = clientOf(path);
    await expect.poll(() => ask("Get", A)).toHaveProperty("ok");
  }, 120_000);

  test("of another protocol, and endless headers, do no harm", async () => {
    const { path } = await serving();
    await sayNoise(path, 50, random(7));
    expect(await sayEndlessHeaders(path)).toBeLessThan(250 * 1024 * 1024);
    expect(await clientOf(path)("Get", A)).toHaveProperty("ok");
  });
});
