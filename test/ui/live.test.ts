import { expect, test } from "vitest";
import { appOver } from "../api/serving.ts";
import { decisionRow, value } from "../contract/store-rows.ts";

const asks = { headers: { accept: "text/event-stream" } };
const closing = () => new AbortController();

async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const { value: bytes, done } = await reader.read();
  return done ? "(end)" : new TextDecoder().decode(bytes);
}
const readerOf = (response: Response) => (response.body as ReadableStream<Uint8Array>).getReader();

test("a stream sends the newest decision, then each newer one, and ends with the server", async () => {
  const closer = closing();
  const { app, store } = appOver({ streams: { closing: closer.signal, limit: 2 } });
  const first = decisionRow({ node: "a", decidedAtMs: Date.now() });
  value(await store.record({ decision: first }));
  const response = await app.request("/live?node=a", asks);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = readerOf(response);
  expect(await next(reader)).toContain(`"id":"${first.id}"`);
  value(await store.record({ decision: decisionRow({ node: "b", decidedAtMs: Date.now() + 1 }) }));
  const second = decisionRow({ node: "a", decidedAtMs: Date.now() + 2 });
  value(await store.record({ decision: second }));
  expect(await next(reader)).toContain(`"id":"${second.id}"`);
  closer.abort();
  expect(await next(reader)).toBe("(end)");
});

test("beyond the limit of streams, or without streams, the newest decision is answered once", async () => {
  const { app, store } = appOver({ streams: { closing: closing().signal, limit: 1 } });
  const first = await app.request("/live", asks);
  const reader = readerOf(first);
  await next(reader);
  expect(await (await app.request("/live", asks)).json()).toEqual({ id: null, decidedAt: null, streams: false });
  await reader.cancel();
  const again = await app.request("/live", asks);
  expect(again.headers.get("content-type")).toBe("text/event-stream");
  await again.body?.cancel();
  const { app: without } = appOver({ store });
  expect(await (await without.request("/live", asks)).json()).toEqual({ id: null, decidedAt: null, streams: false });
});

test("a stream ends when the history cannot be read, so that the client reconnects", async () => {
  const { app, store } = appOver({ streams: { closing: closing().signal, limit: 1 } });
  const reader = readerOf(await app.request("/live", asks));
  await next(reader);
  await store.close();
  expect(await next(reader)).toBe("(end)");
});
