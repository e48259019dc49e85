import { describe, expect, test } from "vitest";
import { decodeSnapshot, snapshotDecoder } from "../../api/model/decode.ts";
import { sha256 } from "../../api/server/digest.ts";
import { evaluator } from "../../api/service/evaluate.ts";
import { parseJson } from "../../api/service/json.ts";
import { jsonReader } from "../../api/service/json-reader.ts";
import { capturedSnapshot } from "../contract/captured.ts";

const bytesOf = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
const body = (over: Record<string, unknown> = {}): string => JSON.stringify({ snapshot: capturedSnapshot(over) });
const limits = (memory: string): string => body().replace(/"memory":"[^"]*"/, `"memory":${memory}`);

/** As one node posts them, one after the other; some are wrong. */
const POSTS = [
  body(),
  body({ sequence: 1 }),
  body({ sequence: 2, observedAt: "2026-11-21T07:00:00Z" }),
  limits('"64Mi"'),
  limits('"96Mi"'),
  limits("null"),
  limits('"lots"'),
  limits('"96Mi"'),
  body({ pods: null }),
  body({ pods: [] }),
  body({ machine: undefined }),
  body({ cgroup: { version: 3 } }),
  body({ cgroup: { version: 2 } }),
  body({ observedAt: "yesterday" }),
  body().slice(0, -1),
  body({ sequence: 3 }),
  body().replace('"snapshot":{', '"snapshot":{"machine":{},'),
  "[]",
  '{"snapshot":[]}',
  '{"snapshot":null}',
  body({ node: { metadata: { name: "n2" } } }),
  body({ sequence: 4 }),
];

describe("a node that posts again and again", () => {
  test("is answered as one that posts for the first time", async () => {
    const ours = evaluator(sha256);
    const states = new Set<string>();
    for (const [i, post] of [...POSTS, ...POSTS].entries()) {
      const fresh = await evaluator(sha256)({ bytes: bytesOf(post), kind: "cgroups" });
      const again = await ours({ bytes: bytesOf(post), kind: "cgroups" });
      expect({ ...again, seconds: 0 }, `post ${i}`).toEqual({ ...fresh, seconds: 0 });
      states.add(again.state);
    }
    expect([...states].sort()).toEqual(["decided", "invalid", "refused"]);
  });
  test("is told that the stats which it has posted before are another node's", () => {
    const decode = snapshotDecoder();
    const own = capturedSnapshot();
    expect(decode(own, "snapshot").ok).toBe(true);
    const message = "the stats are of node n1, the snapshot is of node n2: post the /stats/summary of n2's kubelet";
    expect(decode({ ...own, node: { metadata: { name: "n2" } } }, "snapshot")).toEqual({
      ok: false,
      error: [{ path: "snapshot.stats.node.nodeName", message }],
    });
    expect(decode(own, "snapshot").ok).toBe(true);
  });
  test("is read and checked as if it were the first time", () => {
    const [read, decode] = [jsonReader(), snapshotDecoder()];
    for (const post of [...POSTS, ...POSTS]) {
      const value = read(bytesOf(post));
      expect(value).toEqual(parseJson(bytesOf(post)));
      if (!value.ok) continue;
      const { snapshot } = value.value as { readonly snapshot: unknown };
      const decoded = decode(snapshot, "snapshot");
      expect(decoded).toEqual(decodeSnapshot(snapshot, "snapshot"));
      expect(JSON.stringify(decoded)).toBe(JSON.stringify(decodeSnapshot(snapshot, "snapshot")));
    }
  });
  test("its parts are checked once", () => {
    const [read, decode] = [jsonReader(), snapshotDecoder()];
    const decoded = [1, 2, 3, 4].map((sequence) => {
      const value = read(bytesOf(body({ sequence })));
      const result = value.ok ? decode((value.value as { snapshot: unknown }).snapshot) : value;
      return result.ok ? (result.value as { readonly pods: unknown; readonly sequence: number }) : null;
    });
    expect(decoded.map((snapshot) => snapshot?.sequence)).toEqual([1, 2, 3, 4]);
    expect(decoded[3]?.pods).toBe(decoded[2]?.pods);
  });
});

test("the same text under another member's name is checked as that member", () => {
  const [read, decode] = [jsonReader(), snapshotDecoder()];
  const named = (name: string): unknown => {
    const value = read(bytesOf(`{"snapshot":{"${name}":{"version":2}}}`));
    return value.ok && decode((value.value as { snapshot: unknown }).snapshot);
  };
  for (let i = 0; i < 3; i++) expect(named("cgroup")).toMatchObject({ ok: true });
  expect(named("devices")).toMatchObject({ ok: false });
});

test("nodes that post in turns are kept apart, and more of them than are kept do no harm", () => {
  const read = jsonReader();
  for (let turn = 0; turn < 3; turn++) {
    for (let i = 0; i < 100; i++) {
      const text = `{"snapshot":{"node":{"labels":{"kubernetes.io/hostname":"n${i % (turn === 2 ? 100 : 5)}"}},"sequence":${turn}}}`;
      expect(read(bytesOf(text))).toEqual({ ok: true, value: JSON.parse(text) });
    }
  }
});
