import { expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { PARTS } from "../../api/documents/inputs/parts.ts";
import { KIND_EXAMPLES } from "../../api/documents/kind-examples.ts";
import { KINDS, type Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { appOver } from "../api/serving.ts";
import { recordedCases } from "../model/decision-cases.ts";
import { run } from "./run.ts";

type Fields = Record<string, unknown>;

/** A posted snapshot without the parts whose options the help of the kind does not show. */
function shownOf(kind: Kind, posted: unknown): unknown {
  const snapshot = structuredClone(posted) as Fields;
  for (const { option, path } of PARTS) {
    if ((KIND_EXAMPLES[kind].parts as readonly string[]).includes(option)) continue;
    const [field, inner] = path;
    if (inner === undefined) delete snapshot[field];
    else delete (snapshot[field] as Fields | undefined)?.[inner];
  }
  return snapshot;
}

test("a part of the snapshot left out of a kind's help does not change that kind's answers", () => {
  const seen = new Map<Kind, number>();
  const answer = (kind: Kind, posted: unknown, ask: unknown): unknown => {
    const [snapshot, asked] = [decodeSnapshot(posted), decodeAsk(kind, ask ?? null)];
    if (!snapshot.ok || !asked.ok) return undefined;
    return decideKind(kind, { snapshot: snapshot.value, ask: asked.value, facts: {}, explain: "off" });
  };
  for (const { kind, snapshot, ask } of recordedCases()) {
    const count = (seen.get(kind) ?? 0) + 1;
    seen.set(kind, count);
    // the first cases of a kind differ the most
    if (count > 60 && count % 25 > 0) continue;
    expect(answer(kind, shownOf(kind, snapshot), ask), `${kind} ${count}`).toEqual(answer(kind, snapshot, ask));
  }
  const withSnapshot = KINDS.filter((kind) => KIND_EXAMPLES[kind].parts.length > 0 && kind !== "probes");
  expect([...seen.keys()]).toEqual(expect.arrayContaining(withSnapshot));
});

test.each([
  [["lint", "--fromat", "json"], "Did you mean --output?"],
  [["lint", "--ouput", "json"], "Did you mean --output?"],
  [["lint", "--config-folder", "x"], "Did you mean --config-dir?"],
  [["schema", "evct"], "did you mean eviction?"],
  [["decide", "evct"], "Did you mean eviction?"],
])("%j gets the closest option or word suggested", async (args, proposal) => {
  const { code, stderr } = await run(args);
  expect(code).toBe(2);
  expect(stderr.split(proposal)).toHaveLength(2);
});
test("a word unlike any other gets no suggestion", async () => {
  for (const args of [
    ["lint", "--qqqq"],
    ["schema", "xxxx"],
  ])
    expect((await run(args)).stderr).not.toMatch(/did you mean/i);
});

test("an unknown query parameter of the API gets the closest one suggested", async () => {
  const response = await appOver({}).app.request("/v1/nodes?labels=pool=web");
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    code: "invalid_query",
    issues: [
      { path: "labels", message: expect.stringMatching(/; did you mean labelSelector\?$/), near: "labelSelector" },
    ],
  });
});
