import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../api/base/limits.ts";
import { batchLine } from "../../api/http/openapi/decision-answers.ts";
import { BATCH } from "../../api/http/openapi/operation.ts";
import { type ApiSubject, admin, exampleSnapshot, fresh, type Of, problemOf } from "./api-subject.ts";
import { value } from "./store-rows.ts";

const NDJSON = "application/x-ndjson";
const problemLine = z.object({ line: z.number(), problem: z.object({ code: z.string() }) });

export async function batch(
  api: ApiSubject,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<z.output<typeof batchLine>[]> {
  const response = await api.fetch("/v1/batch", {
    method: "POST",
    body,
    duplex: "half",
    headers: { "content-type": NDJSON, ...(await admin(api)), ...headers },
  } as RequestInit);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  expect(response.headers.get("content-type")).toBe(NDJSON);
  expect(text.endsWith("\n") || text === "").toBe(true);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => batchLine.parse(JSON.parse(line)));
}
export const line = (node: string, over: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot(node), explain: "off", ...over });

export function batches(of: Of): void {
  test("a thousand lines are answered in order, and each is recorded", { timeout: 120_000 }, async () => {
    const node = fresh("node");
    const body = Array.from({ length: 1000 }, (_, i) =>
      line(node, { snapshot: exampleSnapshot(node, { sequence: i + 1 }) }),
    ).join("\n");
    const answers = await batch(of(), body);
    expect(answers.map((a) => a.line)).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1));
    for (const a of answers) expect(a).toMatchObject({ recorded: true, node });
    // all 1000 requests lead to the same decision
    const [id, ...others] = new Set(answers.map((a) => ("id" in a ? a.id : "")));
    expect(others).toEqual([]);
    expect(new Set(answers.map((a) => ("snapshotId" in a ? a.snapshotId : ""))).size).toBe(1000);
    const { items } = value(await of().store.listDecisions({ node, limit: 5 }));
    expect(items).toEqual([expect.objectContaining({ id, series: expect.objectContaining({ times: 1000 }) })]);
    expect(value(await of().store.getNode(node))?.lastSequence).toBe(1000);
  });

  test("a fault of a line is answered under its line number, and the other lines are decided", async () => {
    const lines = [
      line(fresh("node")),
      "",
      '{"kind": "cgroups", "snapshot": {',
      line(fresh("node"), { kind: "nothing" }),
      JSON.stringify({ snapshot: {} }),
      line(fresh("node"), { kindd: 1 }),
      JSON.stringify({ kind: "cgroups", snapshot: {} }),
      "   \r",
      JSON.stringify({ kind: "cgroups", snapshotId: "0".repeat(32) }),
      line(fresh("node"), { kind: "allocatable" }),
    ];
    const answers = await batch(of(), lines.join("\n"));
    expect(answers.map((a) => [a.line, "problem" in a ? a.problem.code : a.kind])).toEqual([
      [1, "cgroups"],
      [3, "malformed_json"],
      [4, "unknown_kind"],
      [5, "invalid_input"],
      [6, "invalid_input"],
      [7, "needs_input"],
      [9, "unknown_snapshot"],
      [10, "allocatable"],
    ]);
  });
}

export function batchProblems(of: Of): void {
  test("a line's problem has only the fields that are specific to it", async () => {
    const [unread] = await batch(of(), '{"kind": "cgroups", "snapshot": {"pods": 5}}');
    expect(unread).toEqual({
      line: 1,
      problem: {
        code: "invalid_input",
        detail: expect.stringContaining("snapshot.pods: "),
        issues: [{ path: "snapshot.pods", message: expect.any(String) }],
      },
    });
  });

  test("a batch of invalid lines ends with too_many_bad_lines after a thousand", async () => {
    const [first, late] = [fresh("node"), fresh("node")];
    const answers = await batch(of(), `${line(first)}\n${"x\n".repeat(5000)}${line(late)}`);
    expect(answers.map((a) => a.line)).toEqual(answers.map((_, i) => i + 1));
    expect(answers[0]).toMatchObject({ recorded: true, verdict: "decided" });
    const codes = answers.slice(1).map((a) => problemLine.parse(a).problem.code);
    expect(codes.pop()).toBe("too_many_bad_lines");
    expect(new Set(codes)).toEqual(new Set(["malformed_json"]));
    expect(codes.length).toBeGreaterThanOrEqual(1000);
    expect(codes.length).toBeLessThan(1100);
    expect(value(await of().store.getNode(late))).toBeNull();
  });

  test("a line over the limit is refused, and the next one is answered", async () => {
    const answers = await batch(of(), `${" ".repeat(LIMITS.bodyBytes)}${line(fresh("node"))}\n${line(fresh("node"))}`);
    expect(problemLine.parse(answers[0])).toMatchObject({ line: 1, problem: { code: "body_too_large" } });
    expect(answers[1]).toMatchObject({ line: 2, recorded: true });
  });

  test("the documented example, a gzip one and an empty one are answered", async () => {
    expect(await batch(of(), BATCH)).toHaveLength(2);
    const packed = new Blob([BATCH]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    expect(await batch(of(), bytes, { "content-encoding": "gzip" })).toHaveLength(2);
    expect(await batch(of(), "\n\n")).toEqual([]);
  });

  test("a truncated gzip batch is answered as far as it came, and ends with malformed_body", async () => {
    const packed = new Blob([`${line(fresh("node"))}\n`.repeat(3)]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    const answers = await batch(of(), bytes.slice(0, -9), { "content-encoding": "gzip" });
    expect(problemLine.parse(answers.at(-1)).problem.code).toBe("malformed_body");
  });

  test("another content type than NDJSON is refused", async () => {
    const headers = { "content-type": "application/json", ...(await admin(of())) };
    await problemOf(await of().fetch("/v1/batch", { method: "POST", body: BATCH, headers }), "unsupported_media_type");
  });
}
