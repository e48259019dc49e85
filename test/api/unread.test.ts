import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { Hono } from "hono";
import { expect, onTestFinished, test } from "vitest";
import { listen, whenSent } from "../../api/server/listen.ts";
import { taskQueue } from "../../api/service/task-queue.ts";
import { exampleSnapshot, problemOf } from "../contract/api-subject.ts";
import { appOver } from "./serving.ts";

const MIB = 1024 ** 2;

/** A server that cuts connections whose answer is not read for a second; it reports each answer that is sent. */
async function answering() {
  const sent: string[] = [];
  const app = new Hono();
  app.use(async (c, next) => {
    await next();
    whenSent(c.env, () => sent.push(c.req.path));
  });
  app.get("/large", (c) => c.body(new Uint8Array(48 * MIB)));
  app.get("/never", () => new Promise<Response>(() => {}));
  app.get("/small", (c) => c.text("small"));
  app.get("/quiet", (c) =>
    c.body(
      new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(Buffer.from("first "));
          await wait(2500);
          controller.enqueue(Buffer.from("last"));
          controller.close();
        },
      }),
    ),
  );
  const listening = await listen(app, { host: "127.0.0.1", port: 0, tasks: taskQueue(), unreadMs: 1000 });
  if (!listening.ok) throw new Error(listening.error);
  onTestFinished(() => listening.value.close(0));
  const ask = (...paths: string[]) => {
    const socket = connect(listening.value.port, "127.0.0.1");
    socket.on("error", () => {});
    for (const path of paths) socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { sent, ask };
}

test("an answer that the client does not read is cut off, and one read or produced slowly is not", async () => {
  const { sent, ask } = await answering();
  const unread = ask("/large").pause();
  const slow = ask("/large");
  const quiet = ask("/quiet");
  let [received, text] = [0, ""];
  quiet.on("data", (chunk) => {
    text += chunk.toString();
  });
  slow.on("data", (chunk: Buffer) => {
    received += chunk.length;
    slow.pause();
    setTimeout(() => slow.resume(), 4);
  });
  await expect.poll(() => sent, { timeout: 10_000 }).toContain("/large");
  await expect.poll(() => received, { timeout: 60_000 }).toBeGreaterThan(48 * MIB);
  await expect.poll(() => text, { timeout: 10_000 }).toContain("last");
  // the bytes that the operating system buffers still arrive, and then the connection ends
  let rest = 0;
  unread.on("data", (chunk: Buffer) => {
    rest += chunk.length;
  });
  unread.resume();
  await once(unread, "close");
  expect(rest).toBeLessThan(48 * MIB);
}, 90_000);

test("pipelined answers are reported as sent when their connection is closed", async () => {
  const { sent, ask } = await answering();
  const socket = ask("/small", "/never", "/small", "/small");
  await once(socket, "data");
  await expect.poll(() => sent).toEqual(["/small"]);
  socket.destroy();
  await expect.poll(() => sent).toEqual(["/small", "/small", "/small"]);
});

test("a request counts as concurrent until its answer has been sent", async () => {
  const unsent: (() => void)[] = [];
  const { app } = appOver({
    limits: { bodyBytes: MIB, concurrency: 1 },
    whenSent: (_env, onSent) => void unsent.push(() => onSent(false)),
  });
  expect((await app.request("/v1/nodes")).status).toBe(200);
  await problemOf(await app.request("/v1/nodes"), "too_many_requests");
  unsent[0]?.();
  expect((await app.request("/v1/nodes")).status).toBe(200);
});

test("a batch is not read further while the client does not read its answers", async () => {
  const { app } = appOver();
  const line = Buffer.from(
    `${JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot("n1"), explain: "full" })}\n`,
  );
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setImmediate(resolve));
      if (++pulled > 20_000) controller.close();
      else controller.enqueue(line);
    },
  });
  const headers = { "content-type": "application/x-ndjson" };
  const response = await app.fetch(
    new Request("http://localhost/v1/batch", { method: "POST", body, headers, duplex: "half" } as RequestInit),
  );
  let before = -1;
  while (before !== pulled) {
    before = pulled;
    await wait(1000);
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const { value: first } = await reader.read();
  expect(before * (first?.length ?? 0)).toBeLessThan(1.5 * MIB);
  // the lines that were decided meanwhile come first
  for (let i = 0; i < 50; i++) await reader.read();
  await expect.poll(() => pulled).toBeGreaterThan(before);
  await reader.cancel();
}, 60_000);

test("the task queue yields after some milliseconds of batch work, and runs single tasks in between", async () => {
  const tasks = taskQueue();
  const done: string[] = [];
  let passed = 0;
  const count = (): void => {
    if (++passed > 0) setImmediate(count);
  };
  setImmediate(count);
  const busy = (name: string) => async () => {
    for (const end = performance.now() + 2; performance.now() < end; );
    done.push(name);
    if (name === "bad") throw new Error("bad");
  };
  const many = Array.from({ length: 200 }, () => tasks(busy("many"), true));
  const single = tasks(busy("single"), false);
  const bad = tasks(busy("bad"), false);
  await expect(bad).rejects.toThrow("bad");
  await Promise.all([single, ...many]);
  const seen = passed;
  passed = Number.NEGATIVE_INFINITY;
  expect(done.indexOf("single")).toBeLessThan(5);
  expect(done.indexOf("bad")).toBeLessThan(7);
  expect(seen).toBeGreaterThan(200 / 10);
});
