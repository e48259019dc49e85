import { expect, test } from "vitest";
import { lines } from "../../api/http/batch.ts";

async function read(chunks: readonly Uint8Array[], limit = 1000, broken = false) {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      if (!broken) controller.close();
    },
    pull(controller) {
      controller.error(new Error("cut off"));
    },
  });
  const found: [number, string][] = [];
  for await (const { number, bytes } of lines(stream, limit)) {
    found.push([number, bytes.ok ? new TextDecoder().decode(bytes.value) : bytes.error]);
  }
  return found;
}
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("lines are the same wherever the stream is split into chunks", async () => {
  const text = bytes('{"é":1}\n\n \t\r\n[2]\r\nlast');
  const whole = [
    [1, '{"é":1}'],
    [4, "[2]\r"],
    [5, "last"],
  ];
  for (let size = 1; size <= text.length; size++) {
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
      text.subarray(i * size, (i + 1) * size),
    );
    expect(await read(chunks), `chunks of ${size}`).toEqual(whole);
  }
});

test("a final line feed adds no line, and an empty stream has no lines", async () => {
  expect(await read([bytes("a\n")])).toEqual([[1, "a"]]);
  expect(await read([])).toEqual([]);
  expect(await read([bytes("\n\n")])).toEqual([]);
});

test("a line of the maximum length is accepted, and a longer one is too_large", async () => {
  for (const size of [1, 3, 100]) {
    const text = bytes(`${"x".repeat(10)}\n${"y".repeat(11)}\nz`);
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
      text.subarray(i * size, (i + 1) * size),
    );
    expect(await read(chunks, 10)).toEqual([
      [1, "xxxxxxxxxx"],
      [2, "too_large"],
      [3, "z"],
    ]);
  }
});

test("a stream that breaks off yields its whole lines and then incomplete", async () => {
  expect(await read([bytes("a\nb")], 1000, true)).toEqual([
    [1, "a"],
    [2, "incomplete"],
  ]);
});
