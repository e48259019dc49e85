import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import zlib from "node:zlib";
import { afterEach, expect, test, vi } from "vitest";
import { lines } from "../../api/http/batch.ts";
import { MAX_DENSE } from "../../api/http/body.ts";
import { bodyBudget, ChunkBuffer } from "../../api/http/body-budget.ts";
import { exampleSnapshot, problemOf } from "../contract/api-subject.ts";
import { appOver, serving } from "./serving.ts";

const MIB = 1024 ** 2;
const headers = { "content-type": "application/json" };
const decision = JSON.stringify({ snapshot: exampleSnapshot("n1") });

afterEach(() => void vi.useRealTimers());

const { ZSTD_c_windowLog } = zlib.constants;
const zstd = (text: string, windowLog: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(zlib.zstdCompressSync(text, { params: { [ZSTD_c_windowLog]: windowLog } }));

test("a zstd window of 8 MiB is accepted, and a larger one is refused with advice", async () => {
  const { app } = appOver();
  const post = (path: string, type: string, body: Uint8Array<ArrayBuffer>) =>
    app.request(path, { method: "POST", body, headers: { "content-type": type, "content-encoding": "zstd" } });
  // a body that is smaller than its window needs only a window of its own size
  const room = " ".repeat(9 * MIB);
  const line = `${JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot("n1"), explain: "off" })}\n`;
  const batch = async (log: number) =>
    JSON.parse(
      (await (await post("/v1/batch", "application/x-ndjson", zstd(`${line}${room}\n`, log))).text()).split(
        "\n",
        1,
      )[0] ?? "",
    );
  expect(await batch(23)).toMatchObject({ line: 1, verdict: "decided" });
  const refused = {
    code: "unsupported_encoding",
    detail: expect.stringContaining("zstd window of more than 8388608 bytes"),
  };
  expect(await batch(24)).toMatchObject({ line: 1, problem: refused });
  const whole = await post("/v1/decisions/cgroups", "application/json", zstd(room, 27));
  expect(await whole.json()).toMatchObject(refused);
});

test("zstd windows of batches count towards the bytes in flight, and are given back", async () => {
  const { app } = appOver({ limits: { bodyBytes: MIB, bodyBytesInFlight: 2 * MIB, concurrency: 64 } });
  // compressed to an eighth, which is below the limit on the compression ratio
  const blank = (bytes: number): string =>
    Array.from({ length: bytes }, (_, i) => (i % 1000 === 0 ? "\n" : Math.random() < 0.5 ? " " : "\t")).join("");
  const body = zstd(blank(4 * MIB), 23);
  const post = async (encoding: string, packed: Uint8Array<ArrayBuffer>) =>
    (
      await app.request("/v1/batch", {
        method: "POST",
        body: packed,
        headers: { "content-type": "application/x-ndjson", "content-encoding": encoding },
      })
    ).text();
  for (let i = 0; i < 3; i++) {
    expect(JSON.parse(await post("zstd", body))).toMatchObject({ problem: { code: "overloaded" } });
    expect(await post("zstd", zstd(blank(MIB), 23))).toBe("");
  }
});

/** A connection that sends `bytes` bytes of a body of 1 MiB, and stops. */
async function stopped(port: number, bytes: number) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString();
  });
  const head = `POST /v1/decisions/cgroups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${MIB}\r\n\r\n`;
  await new Promise<void>((resolve) => socket.write(head + " ".repeat(bytes), () => resolve()));
  return { socket, answer: () => answer };
}

test("bodies that stop halfway hold only their share of memory; others get 503 and succeed on a retry", async () => {
  const { api } = await serving({ limits: { bodyBytes: MIB, bodyBytesInFlight: 2 * MIB }, threads: 0 });
  const halves = await Promise.all(Array.from({ length: 12 }, () => stopped(api.port, MIB / 2)));
  const refused = () => halves.filter(({ answer }) => answer().includes("HTTP/1.1 503"));
  await expect.poll(() => refused().length).toBe(8);
  const message = refused()[0]?.answer() ?? "";
  expect(message.toLowerCase()).toContain("retry-after: 2");
  expect(message).toContain('"code":"overloaded"');
  // a small body is refused too, until the connections that hold the room are closed
  const post = () => fetch(`${api.url}/v1/decisions/cgroups`, { method: "POST", headers, body: decision });
  await problemOf(await post(), "overloaded");
  for (const { socket } of halves) socket.destroy();
  await expect.poll(async () => (await post()).status).toBe(200);
});

test("a body that stops halfway is answered with 408, in a batch on the line that it cut", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { api } = await serving({ threads: 0 });
  // few enough bytes that the first check of the connection already counts all of them
  const half = await stopped(api.port, 1000);
  const batch = request(`${api.url}/v1/batch`, { method: "POST", headers: { "content-type": "application/x-ndjson" } });
  batch.on("error", () => {});
  batch.write(`${JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot("n1") })}\n{"kind"`);
  const [response] = await once(batch, "response");
  let text = "";
  response.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await expect.poll(() => text).toContain('"line":1,');
  // the bytes arrived within the first of these periods; no byte arrives in the second
  for (let i = 0; i < 2; i++) {
    vi.advanceTimersByTime(20_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await expect.poll(half.answer).toMatch(/^HTTP\/1.1 408/);
  expect(half.answer()).toContain('"code":"request_timeout"');
  await expect.poll(() => text).toContain('{"line":2,"problem":{"code":"request_timeout"');
});

test("bytes given back to the body budget can be taken again, but not by a request that has left", () => {
  const room = bodyBudget(10);
  const [a, b] = [room(), room()];
  expect([a.take(6), b.take(5), b.take(4), b.take(1)]).toEqual([true, false, true, false]);
  a.give(100);
  expect(b.take(6)).toBe(true);
  b.leave();
  expect([b.take(1), a.take(10)]).toEqual([false, true]);
});

test("a ChunkBuffer gathers chunks of any size, and does not copy a single one", () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, i) => i % 251);
  for (const expected of [0, 100, 5000, 9000]) {
    for (const size of [1, 7, 4999, 5000]) {
      const gathered = new ChunkBuffer(expected);
      for (let at = 0; at < bytes.length; at += size) gathered.add(bytes.subarray(at, at + size));
      expect(gathered.size).toBe(5000);
      expect(gathered.take()).toEqual(bytes);
      expect([gathered.size, gathered.take().length]).toEqual([0, 0]);
    }
  }
  const gathered = new ChunkBuffer();
  gathered.add(bytes);
  expect(gathered.take()).toBe(bytes);
});

test("a ChunkBuffer that takes over chunks frees their buffers, but none that chunks share", () => {
  const whole = [1, 2, 3].map((byte) => new Uint8Array(10).fill(byte));
  const shared = new Uint8Array(20);
  const gathered = new ChunkBuffer(50, true);
  for (const chunk of [...whole, shared.subarray(0, 10), shared.subarray(10)]) gathered.add(chunk);
  expect(Array.from(gathered.take())).toEqual([1, 2, 3, 0, 0].flatMap((byte) => Array(10).fill(byte)));
  expect([...whole, shared].map(({ length }) => length)).toEqual([0, 0, 0, 20]);
  const single = new Uint8Array(5);
  gathered.add(single);
  expect(gathered.take()).toBe(single);
  expect(single.length).toBe(5);
});

test("a batch of highly compressed line feeds is refused for its density, and blocks no other request", async () => {
  const { app } = appOver();
  let turns = 0;
  const count = (): void => {
    turns++;
    if (turns > 0) setImmediate(count);
  };
  setImmediate(count);
  const packed = zlib.gzipSync("\n".repeat(64 * MIB));
  expect((64 * MIB) / packed.length).toBeGreaterThan(MAX_DENSE);
  const posted = new Request("http://localhost/v1/batch", {
    method: "POST",
    headers: { "content-type": "application/x-ndjson", "content-encoding": "gzip" },
    body: packed,
  });
  const text = await (await app.fetch(posted)).text();
  const passed = turns;
  turns = Number.NEGATIVE_INFINITY;
  expect(JSON.parse(text)).toMatchObject({ problem: { code: "body_too_large" } });
  // each decompressed body accounted for 64 KiB
  expect(passed).toBeGreaterThan((packed.length * MAX_DENSE) / (128 * 1024));
});

test.each(["\n", "\r\n", "\r\n\n"])("a chunk of blank lines that end in %j is skipped in one step", async (end) => {
  const text = `${end.repeat(200_000)}a`;
  const found: number[] = [];
  let looked = 0;
  const chunk = new TextEncoder().encode(text);
  const indexOf = chunk.indexOf.bind(chunk);
  chunk.indexOf = (...of) => {
    looked++;
    return indexOf(...of);
  };
  const whole = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(chunk);
      controller.close();
    },
  });
  for await (const { number } of lines(whole, 1000)) found.push(number);
  expect(found).toEqual([(end.match(/\n/g)?.length ?? 0) * 200_000 + 1]);
  expect(looked).toBeLessThan(5);
});

test("blank lines are not read further when the caller has disconnected", async () => {
  const gone = new AbortController();
  let pulled = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (++pulled === 5) gone.abort();
      controller.enqueue(new Uint8Array(64 * 1024).fill(0x0a));
    },
  });
  for await (const line of lines(stream, 1000, { signal: gone.signal })) expect(line).toBeNull();
  expect(pulled).toBeLessThan(10);
});

test("blank lines count in the line numbers, whatever is between them", async () => {
  const text = `${"\n".repeat(1000)}a\n \n\n\t\n\n\nb`;
  const found: number[] = [];
  for await (const { number } of lines(new Response(text).body as ReadableStream<Uint8Array>, 1000)) found.push(number);
  expect(found).toEqual([1001, 1007]);
});
