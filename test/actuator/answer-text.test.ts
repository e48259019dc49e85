import { expect, test } from "vitest";
import { answerText, MAX_ANSWER_BYTES } from "../../actuator/client/api-access.ts";

const CHUNK = new Uint8Array(2 ** 20).fill("x".charCodeAt(0));
/** A response whose body has `count` MiB; `read` returns how many of them were read. */
function answerOf(count: number) {
  let read = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (read === count) return controller.close();
        read++;
        controller.enqueue(CHUNK);
      },
    },
    { highWaterMark: 0 },
  );
  return { response: new Response(body), read: () => read };
}
const MOST = MAX_ANSWER_BYTES / CHUNK.length;

test("a response body is read in full, also a character split over two chunks", async () => {
  const [head, tail] = [Uint8Array.of(0x22, 0xc3), Uint8Array.of(0xa4, 0x22)];
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const part of [head, tail]) controller.enqueue(part);
      controller.close();
    },
  });
  expect(await answerText(new Response(body))).toBe('"ä"');
  expect(await answerText(new Response(null))).toBe("");
  expect((await answerText(answerOf(MOST).response))?.length).toBe(MAX_ANSWER_BYTES);
});

test("an endless response body is read only up to the size limit", async () => {
  const { response, read } = answerOf(Number.POSITIVE_INFINITY);
  expect(await answerText(response)).toBe(null);
  expect(read()).toBe(MOST + 1);
});

test("a response body with a too large Content-Length is not read at all", async () => {
  const { response, read } = answerOf(3);
  const reported = new Response(response.body, { headers: { "content-length": `${3 * CHUNK.length}` } });
  expect(await answerText(reported, 2 * CHUNK.length)).toBe(null);
  expect(read()).toBe(0);
});

test("a response body that breaks off is an error", async () => {
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new Error("the connection is gone")),
  });
  await expect(answerText(new Response(body))).rejects.toThrow("the connection is gone");
});
