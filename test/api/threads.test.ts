import zlib from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { evaluator } from "../../api/routes/evaluate.ts";
import { sha256 } from "../../api/server/digest.ts";
import { threads } from "../../api/server/threads.ts";
import { problemOf, snapshotOf } from "../contract/api-subject.ts";
import { capturedSnapshot } from "../contract/captured.ts";
import { serving } from "./serving.ts";

const bytesOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const headers = { "content-type": "application/json" };

test("threads answer what this thread would, large or small, right or wrong", async () => {
  const pool = threads(2);
  onTestFinished(() => pool.close());
  const inline = evaluator(sha256);
  const padding = " ".repeat(20_000);
  const bodies = [
    bytesOf({ snapshot: capturedSnapshot() }),
    bytesOf({ snapshot: snapshotOf("n1") }),
    bytesOf({ snapshot: {}, padding }),
    bytesOf({ snapshot: { observedAt: padding } }),
    Buffer.from(`{"snapshot": ${padding}`),
    bytesOf({ snapshotId: "0".repeat(32), explain: "off" }),
  ];
  const both = bodies.map(async (bytes) => {
    const here = await inline({ bytes: Uint8Array.from(bytes), kind: "cgroups" });
    const there = await pool.evaluate({ bytes, kind: "cgroups" });
    expect({ ...there, seconds: 0 }).toEqual({ ...here, seconds: 0 });
    return here.state;
  });
  expect(await Promise.all(both)).toEqual(["decided", "decided", "invalid", "invalid", "invalid", "wants_snapshot"]);
});

test("a stored snapshot is decided on, also when the request that names it is large", async () => {
  const { api } = await serving({ threads: 1 });
  const put = await fetch(`${api.url}/v1/nodes/n1/snapshot`, {
    method: "PUT",
    headers,
    body: JSON.stringify(capturedSnapshot()),
  });
  const { id } = (await put.json()) as { id: string };
  for (const padding of ["", " ".repeat(40_000)]) {
    const response = await fetch(`${api.url}/v1/decisions/cgroups`, {
      method: "POST",
      headers,
      body: `{"snapshotId":"${id}"${padding}}`,
    });
    expect(await response.json()).toMatchObject({ snapshotId: id, node: "n1" });
  }
});

test("a zstd body is taken on Node, its size bounded after decompression", async () => {
  const { api } = await serving();
  const post = (body: Uint8Array) =>
    fetch(`${api.url}/v1/decisions/cgroups`, {
      method: "POST",
      headers: { ...headers, "content-encoding": "zstd" },
      body: new Uint8Array(body),
    });
  const packed = zlib.zstdCompressSync(JSON.stringify({ snapshot: snapshotOf("n1") }));
  expect(await (await post(packed)).json()).toMatchObject({ recorded: true });
  await problemOf(await post(zlib.zstdCompressSync(" ".repeat(64 * 1024 * 1024))), "body_too_large");
  await problemOf(await post(packed.subarray(0, packed.length - 5)), "malformed_body");
});
