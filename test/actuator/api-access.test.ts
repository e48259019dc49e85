import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { postJson } from "../../actuator/client/api-access.ts";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { Problem } from "../../actuator/core/interfaces.ts";
import { LIMITS } from "../../api/base/limits.ts";
import { serving } from "../api/serving.ts";
import { diskSnapshot, localImage } from "../contract/gc-snapshots.ts";
import { scratchFolder } from "../kit/scratch.ts";

vi.setConfig({ testTimeout: 60_000 });

const PATH = "/v1/decisions/image-gc";
const MB = 1_000_000;
const accessTo = (url: string) => ({ url, token: undefined, timeoutMs: 20_000, fetch });
/** A body whose JSON is slightly longer than `bytes`. */
const bodyOf = (bytes: number) => ({ snapshot: "x".repeat(bytes) });

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The actuator's own client, with its own state directory. */
function clientOf(url: string) {
  const dir = scratchFolder();
  const problems: Problem[] = [];
  const outbox = Outbox.open(join(dir, "outbox.jsonl"));
  const memory = new FactsStore(dir, (message) => problems.push({ from: "memory", message }));
  return { client: new ApiClient(accessTo(url), outbox, memory, (one) => problems.push(one)), outbox, problems };
}
/** A snapshot with one image whose id has `bytes` bytes. */
const snapshotOfBytes = (bytes: number) =>
  diskSnapshot("n", 0, [localImage("a", { annotations: { x: "x".repeat(bytes) } })]);

test.each([1, 1.1, 9, 20])(
  "a server with a limit of 1 MB refuses a body of %d MB so that the client learns it is too large",
  async (mb) => {
    const { api } = await serving({ threads: 0, limits: { bodyBytes: MB } });
    for (let i = 0; i < 3; i++) {
      const reported = await postJson(accessTo(api.url), PATH, bodyOf(mb * MB));
      expect(reported.ok ? null : reported.error).toMatchObject({
        final: true,
        tooLargeBytes: mb * MB + '{"snapshot":""}'.length,
      });
    }
  },
);

test("a request posted right after an oversized body was refused is answered", async () => {
  const { api } = await serving({ threads: 0, limits: { bodyBytes: MB } });
  let connections = 0;
  // a connection that passes on only the first bytes of each request
  const line = createServer((from) => {
    connections++;
    let room = 16_384;
    const to = connect(api.port, "127.0.0.1");
    from.on("data", (chunk) => {
      to.write(chunk.subarray(0, room));
      room -= Math.min(room, chunk.length);
    });
    to.pipe(from, { end: false });
    to.on("close", () => from.resetAndDestroy()).on("error", () => {});
    from.on("close", () => to.destroy()).on("error", () => {});
  });
  const { client, outbox, problems } = clientOf(await listening(line));
  const large = await client.decide("image-gc", snapshotOfBytes(1.1 * MB));
  const small = await client.decide("container-gc", snapshotOfBytes(1));
  expect([large, small].map((one) => one.ok && one.value.decidedBy)).toEqual(["here", "api"]);
  expect(connections).toBe(2);
  expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining("answered 413 body_too_large")]);
  if (large.ok) await client.commit(large.value);
  expect(outbox.size).toBe(0);
});

test.each([
  ["more than an API takes by default counts as too large, and is not kept for later", LIMITS.bodyBytes, 0],
  ["less may be taken yet: it is kept for later", LIMITS.bodyBytes / 2, 1],
])("a body that the server cuts off repeatedly: %s", async (_, bytes, kept) => {
  let connections = 0;
  const cutting = createServer((socket) => {
    connections++;
    socket.on("data", () => socket.resetAndDestroy()).on("error", () => {});
  });
  const { client, outbox, problems } = clientOf(await listening(cutting));
  const reported = await client.decide("image-gc", snapshotOfBytes(bytes));
  expect(reported.ok && reported.value.decidedBy).toBe("here");
  expect(connections).toBe(2);
  if (reported.ok) await client.commit(reported.value);
  expect(outbox.size).toBe(kept);
  const words = kept === 1 ? /does not answer .*: deciding here$/ : /does not answer .*too large for the API/;
  expect(problems.map(({ message }) => message)).toEqual([expect.stringMatching(words)]);
});
