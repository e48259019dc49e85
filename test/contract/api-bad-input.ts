import { describe, expect, test } from "vitest";
import { LIMITS } from "../../api/base/limits.ts";
import type { ProblemCode } from "../../api/service/problem.ts";
import { pod, requesting } from "../kit/pods.ts";
import { many } from "../kit/snapshots.ts";
import { admin, exampleSnapshot, fresh, get, type Of, post, problemOf, send } from "./api-subject.ts";
import { value } from "./store-rows.ts";

const requestingMemory = (memory: unknown) => requesting("p", { memory });
const deep = (levels: number): string => `{"snapshot":{"x":${"[".repeat(levels)}${"]".repeat(levels)}}}`;

/** The name, the body of the decision request, the error code, and the path of an issue if there is one. */
type Case = [name: string, body: unknown, code: ProblemCode, path?: string];
const CASES: readonly Case[] = [
  ["an empty body", "", "malformed_json"],
  ["truncated JSON", '{"snapshot": {"node": {"metadata": {"name": "n', "malformed_json"],
  ["a trailing comma", '{"snapshot": {},}', "malformed_json"],
  ["what is not JSON", "NaN", "malformed_json"],
  ["what is not UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), "malformed_json"],
  ["deep nesting in a field that nobody reads", deep(1000), "malformed_json"],
  ["nesting a million deep", deep(1_000_000), "malformed_json"],
  ["an array", "[]", "invalid_input", "$"],
  ["null", "null", "invalid_input", "$"],
  ["text", '"snapshot"', "invalid_input", "$"],
  ["a misspelt field", { snapshoot: {} }, "invalid_input", "snapshoot"],
  ["neither snapshot nor snapshotId", {}, "invalid_input", "snapshot"],
  ["both snapshot and snapshotId", { snapshot: {}, snapshotId: "0".repeat(32) }, "invalid_input", "snapshot"],
  ["a snapshotId that is none", { snapshotId: "../../etc" }, "invalid_input", "snapshotId"],
  ["a snapshotId that is not stored", { snapshotId: "0".repeat(32) }, "unknown_snapshot"],
  ["an ask where there is none", { snapshot: {}, ask: { pod: "p" } }, "invalid_input", "ask"],
  ["an unknown explain", { snapshot: {}, explain: "everything" }, "invalid_input", "explain"],
  ["a snapshot that is a list", { snapshot: [] }, "invalid_input", "snapshot"],
  ["pods that are text", { snapshot: { pods: "all" } }, "invalid_input", "snapshot.pods"],
  [
    "a pod without containers",
    { snapshot: { pods: [pod("p", { spec: { containers: [] } })] } },
    "invalid_input",
    "snapshot.pods[0].spec.containers",
  ],
  [
    "a pod without a spec, in a PodList",
    { snapshot: { pods: { items: [{ metadata: { name: "p" } }] } } },
    "invalid_input",
    "snapshot.pods.items[0].spec",
  ],
  [
    "two pods with one uid",
    { snapshot: { pods: [pod("p"), pod("q", { metadata: { uid: "uid-p" } })] } },
    "invalid_input",
    "snapshot.pods[1].metadata.uid",
  ],
  [
    "a negative quantity",
    { snapshot: { pods: [requestingMemory("-1Gi")] } },
    "invalid_input",
    "snapshot.pods[0].spec.containers[0].resources.requests.memory",
  ],
  [
    "an absurd quantity",
    { snapshot: { pods: [requestingMemory("9e99")] } },
    "invalid_input",
    "snapshot.pods[0].spec.containers[0].resources.requests.memory",
  ],
  [
    "a quantity that is a list",
    { snapshot: { pods: [requestingMemory([])] } },
    "invalid_input",
    "snapshot.pods[0].spec.containers[0].resources.requests.memory",
  ],
  [
    "a uid that climbs out of its cgroup",
    { snapshot: { pods: [pod("p", { metadata: { uid: "../../x" } })] } },
    "invalid_input",
    "snapshot.pods[0].metadata.uid",
  ],
  [
    "more pods than there may be",
    {
      snapshot: {
        pods: many(LIMITS.pods + 1, (i) => pod(`p${i}`)),
      },
    },
    "invalid_input",
    "snapshot.pods",
  ],
  ["a wrong time", { snapshot: { observedAt: "yesterday" } }, "invalid_input", "snapshot.observedAt"],
  ["a sequence that is no whole number", { snapshot: { sequence: 1.5 } }, "invalid_input", "snapshot.sequence"],
  ["a key named __proto__", '{"snapshot":{},"__proto__":{"explain":"off"}}', "invalid_input", "__proto__"],
  ["a snapshot without what the decision needs", { snapshot: { node: { metadata: { name: "n" } } } }, "needs_input"],
];

export function badInput(of: Of): void {
  describe.each<Case>(CASES)("%s", (_name, body, code, path) => {
    test(`is answered with ${code}`, async () => {
      const problem = await problemOf(await post(of(), "/v1/decisions/cgroups", body), code);
      if (path !== undefined) expect(problem.issues?.map((issue) => issue.path)).toContain(path);
      if (code === "needs_input") expect(problem.needs?.length).toBeGreaterThan(0);
    });
  });

  test("a JSON syntax error is reported with line and column", async () => {
    const response = await post(of(), "/v1/decisions/cgroups", '{\n  "snapshot": {\n    "sequence": 01\n  }\n}');
    expect((await problemOf(response, "malformed_json")).detail).toBe(
      "line 3, column 18: expected `,` or `}`, found `1`",
    );
  });

  test("all issues of a body are listed", async () => {
    const pods = [requestingMemory("x"), { ...pod("q"), spec: {} }];
    const problem = await problemOf(
      await post(of(), "/v1/decisions/cgroups", { snapshot: { pods, sequence: -1 } }),
      "invalid_input",
    );
    expect(problem.issues?.map((issue) => issue.path).sort()).toEqual([
      "snapshot.pods[0].spec.containers[0].resources.requests.memory",
      "snapshot.pods[1].spec.containers",
      "snapshot.sequence",
    ]);
  });

  test("a body over the limit is refused, with or without a Content-Length", async () => {
    const large = new Uint8Array(LIMITS.bodyBytes + 1).fill(0x20);
    await problemOf(await post(of(), "/v1/decisions/cgroups", large), "body_too_large");
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent > LIMITS.bodyBytes) return controller.close();
        sent += 1 << 20;
        controller.enqueue(new Uint8Array(1 << 20).fill(0x20));
      },
    });
    const init = {
      method: "POST",
      body: stream,
      duplex: "half",
      headers: { "content-type": "application/json", ...(await admin(of())) },
    };
    await problemOf(await of().fetch("/v1/decisions/cgroups", init as RequestInit), "body_too_large");
  });
}

export function badRequests(of: Of): void {
  test.each(["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/json; charset=latin1"])(
    "content type %s is refused",
    async (type) => {
      await problemOf(
        await post(of(), "/v1/decisions/cgroups", { snapshot: {} }, { "content-type": type }),
        "unsupported_media_type",
      );
    },
  );
  test("a content type with the suffix +json is accepted", async () => {
    const response = await post(
      of(),
      "/v1/decisions/cgroups",
      { snapshot: exampleSnapshot(fresh("node")) },
      { "content-type": "application/vnd.x+json; charset=UTF-8" },
    );
    expect(response.status).toBe(200);
  });

  test("unknown kinds, routes, nodes, decisions, snapshots and methods get their problem codes", async () => {
    expect(
      (await problemOf(await post(of(), "/v1/decisions/cgroup", { snapshot: {} }), "unknown_kind")).detail,
    ).toMatch(/allocatable, cgroups, .*; did you mean cgroups\?$/);
    await problemOf(await get(of(), "/v2/anything"), "not_found");
    await problemOf(await get(of(), "/v1/nodes/nobody"), "unknown_node");
    await problemOf(await get(of(), "/v1/nodes/nobody/decisions"), "unknown_node");
    await problemOf(await get(of(), "/v1/decisions/nothing"), "unknown_decision");
    await problemOf(await get(of(), "/v1/snapshots/nothing"), "unknown_snapshot");
    const response = await send(of(), "DELETE", "/v1/decisions/cgroups", "");
    expect(response.headers.get("allow")).toBe("POST, GET, HEAD");
    expect((await problemOf(response, "method_not_allowed")).detail).toMatch(/; POST, GET, HEAD are$/);
  });

  test("a snapshot of another node than the path's, or of no node, is refused", async () => {
    const other = await problemOf(
      await send(of(), "PUT", "/v1/nodes/a/snapshot", exampleSnapshot("b")),
      "invalid_input",
    );
    expect(other.issues?.[0]?.path).toBe("node.metadata.name");
    await problemOf(
      await send(of(), "PUT", "/v1/nodes/a/snapshot", { snapshot: exampleSnapshot("a") }),
      "invalid_input",
    );
  });

  test("unknown and invalid query parameters are refused by name", async () => {
    const node = fresh("node");
    await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node));
    for (const query of [
      "kindd=cgroups",
      "kind=all",
      "verdict=maybe",
      "limit=0",
      "limit=501",
      "limit=x",
      "since=monday",
      "kind=cgroups&kind=cgroups",
      "pageToken=nonsense",
    ]) {
      const problem = await problemOf(await get(of(), `/v1/nodes/${node}/decisions?${query}`), "invalid_query");
      expect(problem.issues?.[0]?.path).toBe(query.split("=")[0]);
    }
  });

  test("refused requests leave nothing in the history", async () => {
    const before = value(await of().store.listNodes());
    for (const [, body] of CASES) await post(of(), "/v1/decisions/cgroups", body);
    expect(value(await of().store.listNodes())).toEqual(before);
    expect(value(await of().store.listDecisions({ node: "n", limit: 10 })).items).toEqual([]);
  });
}
