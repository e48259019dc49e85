import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { SNAPSHOT } from "../../api/documents/kind-examples.ts";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { decisionList, nodeAnswer, nodeDeleted, nodeList } from "../../api/http/openapi/list-answers.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send, tokenFor } from "./api-subject.ts";
import { capturedSnapshot } from "./captured.ts";
import { decisionRow, value } from "./store-rows.ts";

/** The example's node with free resources, so that a pod can be admitted. */
function labelled(name: string, labels: Readonly<Record<string, string>> = {}, kubeletVersion = "v1.36.3") {
  const { status } = SNAPSHOT.node;
  const node = {
    metadata: { name, labels },
    status: { ...status, allocatable: status.capacity, nodeInfo: { kubeletVersion } },
  };
  return exampleSnapshot(name, { node });
}
const large = {
  metadata: { name: "large", namespace: "prod" },
  spec: { containers: [{ name: "c", resources: { requests: { cpu: "64" } } }] },
};
const names = async (response: Response): Promise<string[]> =>
  (await answer(response, nodeList)).nodes.map(({ name }) => name);

/** Nodes that their clusters deleted. */
function deletions(of: Of): void {
  test("a node deleted from its cluster has severity gone until there is news of it again", async () => {
    const [name, other] = [fresh("deleted"), fresh("deleted")];
    for (const one of [name, other]) await post(of(), "/v1/decisions/allocatable", { snapshot: labelled(one) });
    const path = `/v1/nodes/${name}/deletion`;
    const { deletedAt } = await answer(await send(of(), "POST", path, ""), nodeDeleted);
    const node = async () => answer(await get(of(), `/v1/nodes/${name}`), nodeAnswer);
    expect(await node()).toMatchObject({ severity: "gone", silent: false, deletedAt });
    expect(await answer(await get(of(), `/v1/nodes/${other}`), nodeAnswer)).toMatchObject({ deletedAt: null });
    const page = await (await get(of(), `/?q=${name}`)).text();
    expect(page).toContain('<span class="tag" title="its cluster deleted it">deleted</span>');
    expect(await (await get(of(), `/nodes/${name}`)).text()).toContain(", by its cluster");
    expect(await (await get(of(), "/metrics")).text()).not.toContain(`node="${name}"`);

    await delay(2);
    await post(of(), "/v1/decisions/admission", { snapshot: labelled(name), ask: { pod: large } });
    expect(await node()).toMatchObject({ deletedAt: null });
    await problemOf(await send(of(), "POST", `/v1/nodes/${fresh("nobody")}/deletion`, ""), "unknown_node");
    const authorization = `Bearer ${await tokenFor(of().store, ["decide"], other)}`;
    await problemOf(await send(of(), "POST", path, "", { authorization }), "forbidden_node");
  });
}

/** The list of all nodes, and decisions about all nodes. */
export function fleetAnswers(of: Of): void {
  fleetLists(of);
  deletions(of);
  fleetPressure(of);
  fleetPages(of);
  decisionLists(of);
}

/** Filters of the node list by properties and state. */
function fleetLists(of: Of): void {
  test("nodes are filtered by name, labels, zone, version, verdict and pressure", async () => {
    const prefix = fresh("fleet");
    const zone = "topology.kubernetes.io/zone";
    const [web, db, old] = [`${prefix}-web`, `${prefix}-db`, `${prefix}-old`];
    const snapshots = [
      labelled(web, { pool: "web", [zone]: "a" }),
      labelled(db, { pool: "db", [zone]: "b" }, "v1.35.4"),
      labelled(old, { gpu: "" }, "v1.34.4"),
    ];
    for (const snapshot of snapshots) await post(of(), "/v1/decisions/allocatable", { snapshot });
    await post(of(), "/v1/decisions/admission", { snapshot: snapshots[0], ask: { pod: large } });
    const found = async (query: string) => names(await get(of(), `/v1/nodes?namePrefix=${prefix}&${query}`));
    expect(await found("")).toEqual([db, old, web]);
    expect(await found("name=WEB")).toEqual([web]);
    expect(await found(`labelSelector=${encodeURIComponent("pool in (web,db),!gpu")}`)).toEqual([db, web]);
    expect(await found("labelSelector=pool!=web")).toEqual([db, old]);
    expect(await found("zone=b")).toEqual([db]);
    expect(await found("kubelet=1.35")).toEqual([db]);
    expect(await found("kubelet=v1.34.4")).toEqual([old]);
    expect(await found("kubelet=not-known")).toEqual([]);
    expect(await found("kubelet=1.3")).toEqual([]);
    expect(await found("verdict=refused")).toEqual([web]);
    expect(await found("verdict=refused&kind=allocatable")).toEqual([]);
    expect(await found("show=refused")).toEqual([web]);
    expect(await found("pressure=any")).toEqual([]);
    expect(await found("sort=severity&limit=1")).toEqual([web]);
    expect(await found("sort=lastDecision&limit=1")).toEqual([web]);
  });

  test("a node in the list has everything that the fleet page shows", async () => {
    const node = fresh("node");
    await post(of(), "/v1/decisions/admission", { snapshot: labelled(node, { pool: "web" }), ask: { pod: large } });
    const { nodes, countedSince } = await answer(await get(of(), `/v1/nodes?name=${node}`), nodeList);
    expect(Date.parse(countedSince) % 3_600_000).toBe(0);
    expect(nodes).toMatchObject([
      {
        ...{ name: node, kubeletVersion: "v1.36.3", decidedAs: "1.36", severity: "refuses", silent: false, zone: null },
        ...{ conditions: [], headroom: null, decisions: 1, refused: 1, evicted: 0, drift: null },
        refusals: [{ reason: "OutOfcpu", count: 1 }],
        latest: { admission: { verdict: "refused", reason: "OutOfcpu" } },
      },
    ]);
    expect(nodes[0]?.lastDecisionAt).toBe(nodes[0]?.latest.admission?.decidedAt);
    const one = await answer(await get(of(), `/v1/nodes/${node}`), nodeAnswer);
    expect(one).toMatchObject({
      labels: { pool: "web" },
      refused: 1,
      thresholds: [],
      latest: { admission: { reason: "OutOfcpu" } },
    });
  });
}

/** The captured stats with another node name. */
function statsOf(captured: object, nodeName: string): unknown {
  const { stats } = captured as { stats: { node: object } };
  return { ...stats, node: { ...stats.node, nodeName }, pods: [] };
}

/** The distance of nodes from eviction. */
function fleetPressure(of: Of): void {
  test("an eviction pass gives each threshold's headroom, and metrics have the same numbers", async () => {
    const node = fresh("node");
    const captured = capturedSnapshot() as { node: { metadata: object } };
    const pods: unknown[] = [];
    const snapshot = {
      ...captured,
      pods,
      stats: statsOf(captured, node),
      node: { ...captured.node, metadata: { name: node } },
    };
    const kubeletConfiguration = { evictionHard: { "memory.available": "99.9%", "nodefs.available": "1%" } };
    const decided = await answer(
      await post(of(), "/v1/decisions/eviction", { snapshot: { ...snapshot, kubeletConfiguration } }),
      decisionAnswer,
    );
    expect(decided.verdict).toBe("under-pressure");
    const { thresholds, conditions, headroom, severity } = await answer(
      await get(of(), `/v1/nodes/${node}`),
      nodeAnswer,
    );
    expect({ conditions, severity }).toEqual({ conditions: ["MemoryPressure"], severity: "under-pressure" });
    expect(headroom).toEqual(thresholds[0]);
    const distances = (decided.decision as { forecast: { threshold: { signal: string }; distance: number }[] })
      .forecast;
    for (const { threshold, distance } of distances) {
      const reported = thresholds.find(({ signal }) => signal === threshold.signal);
      expect(reported).toMatchObject({ distance, type: "hard" });
    }
    expect(await names(await get(of(), `/v1/nodes?name=${node}&pressure=MemoryPressure`))).toEqual([node]);
    const text = await (await get(of(), "/metrics")).text();
    const csv = await (await get(of(), `/v1/nodes?name=${node}&format=csv`)).text();
    const [columns = [], cells = []] = csv.split("\r\n").map((line) => line.split(","));
    const cell = (name: string): string | undefined => cells[columns.indexOf(name)];
    for (const { signal, threshold, type, distance, ratio, metAt } of thresholds)
      expect(["threshold", "type", "distance", "ratio", "metAt"].map((of) => cell(`${signal}.${of}`))).toEqual(
        [threshold, type, distance, ratio, metAt].map((value) => String(value ?? "")),
      );
    expect([thresholds.length > 1, cell("pid.available.ratio")]).toEqual([true, ""]);
    const worst = thresholds.find(({ signal }) => signal === "memory.available");
    expect(text).toContain(`nodewise_node_pressure{node="${node}",condition="MemoryPressure"} 1\n`);
    expect(text).toContain(
      `nodewise_node_threshold_distance_bytes{node="${node}",signal="memory.available",type="hard"} ${worst?.distance}\n`,
    );
  });
}

/** The node list's orders, pages, CSV files and page tokens. */
function fleetPages(of: Of): void {
  test("pages in any order contain each node once, and a page token is valid for its order only", async () => {
    const prefix = fresh("fleet");
    for (let i = 0; i < 5; i++)
      value(
        await of().store.record({
          decision: decisionRow({ node: `${prefix}-${i}`, decidedAtMs: Date.now() - (i % 3) }),
        }),
      );
    for (const order of ["sort=lastDecision", "sort=headroom&order=desc", "sort=severity", "sort=name&order=desc"]) {
      const query = `/v1/nodes?namePrefix=${prefix}&limit=2&${order}`;
      const seen: string[] = [];
      for (let next: string | null = ""; next !== null; ) {
        const page: { nodes: { name: string }[]; nextPageToken: string | null } = await answer(
          await get(of(), `${query}${next === "" ? "" : `&pageToken=${next}`}`),
          nodeList,
        );
        seen.push(...page.nodes.map(({ name }) => name));
        next = page.nextPageToken;
      }
      expect([...seen].sort(), order).toEqual([0, 1, 2, 3, 4].map((i) => `${prefix}-${i}`));
      expect(new Set(seen).size).toBe(5);
    }
    const { nextPageToken } = await answer(await get(of(), "/v1/nodes?limit=1&sort=seen"), nodeList);
    await problemOf(await get(of(), `/v1/nodes?pageToken=${nextPageToken}`), "invalid_query");
    expect((await get(of(), `/v1/nodes?sort=seen&pageToken=${nextPageToken}`)).status).toBe(200);
  });

  test("invalid parameters of the node list are named", async () => {
    const wrong: Readonly<Record<string, string>> = {
      "sort=size": "sort",
      "order=up": "order",
      "hours=0": "hours",
      "hours=721": "hours",
      "labelSelector=a%20b": "labelSelector",
      "kubelet=new": "kubelet",
      "pressure=Memory": "pressure",
      "verdict=bad": "verdict",
      "kind=bad": "kind",
      "show=x": "show",
      "format=xml": "format",
      "zone=a&zone=b": "zone",
    };
    for (const [query, path] of Object.entries(wrong)) {
      const { issues } = await problemOf(await get(of(), `/v1/nodes?${query}`), "invalid_query");
      expect(
        issues?.map((issue) => issue.path),
        query,
      ).toEqual([path]);
    }
  });

  test("nodes are served as CSV by format or Accept, with a Link to the next page", async () => {
    const prefix = fresh("fleet");
    for (let i = 0; i < 3; i++)
      await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(`${prefix}-${i}`) });
    const all = await get(of(), `/v1/nodes?namePrefix=${prefix}`, { accept: "text/csv" });
    expect(all.headers.get("content-type")).toMatch(/^text\/csv/);
    expect(all.headers.get("content-disposition")).toBe('attachment; filename="nodes.csv"');
    expect(all.headers.get("link")).toBeNull();
    const [head, ...lines] = (await all.text()).trimEnd().split("\r\n");
    expect(head).toMatch(/^name,zone,kubeletVersion,/);
    expect(lines.map((line) => line.split(",")[0])).toEqual([0, 1, 2].map((i) => `${prefix}-${i}`));
    expect(lines[0]).toContain("allocatable=decided");
    const first = await get(of(), `/v1/nodes?format=csv&namePrefix=${prefix}&limit=2`);
    const next = /^<(\?[^>]+)>; rel="next"$/.exec(first.headers.get("link") ?? "")?.[1];
    const rest = await (await get(of(), `/v1/nodes${next}`)).text();
    expect(
      rest
        .trimEnd()
        .split("\r\n")
        .slice(1)
        .map((line) => line.split(",")[0]),
    ).toEqual([`${prefix}-2`]);
  });
}

/** Lists of decisions about all nodes. */
function decisionLists(of: Of): void {
  test("pods refused for one reason are one request over all nodes", async () => {
    const pods = { ...large, metadata: { name: fresh("pod"), namespace: "prod" } };
    const nodes = [fresh("node"), fresh("node")];
    for (const node of nodes) {
      const snapshot = labelled(node);
      await post(of(), "/v1/decisions/admission", { snapshot, ask: { pod: pods } });
      await post(of(), "/v1/decisions/allocatable", { snapshot });
    }
    const list = async (query: string) =>
      (await answer(await get(of(), `/v1/decisions?${query}`), decisionList)).decisions;
    const found = await list(`reason=OutOfcpu&since=12h&pod=${pods.metadata.name}`);
    expect(found.map(({ node, kind, verdict, reason }) => [node, kind, verdict, reason])).toEqual(
      nodes.toReversed().map((node) => [node, "admission", "refused", "OutOfcpu"]),
    );
    expect(await list(`reason=OutOfcpu&node=${nodes[0]}`)).toHaveLength(1);
    expect(await list(`node=${nodes[0]}`)).toHaveLength(2);
    expect(await list(`node=${nodes[0]}&verdict=decided&kind=allocatable`)).toMatchObject([{ reason: null }]);
    expect(await list("reason=OutOfnothing")).toEqual([]);
    expect(await list(`node=${nodes[0]}&until=1h`)).toEqual([]);
    expect((await list("limit=3")).length).toBe(3);
    const [shown] = (
      await answer(await get(of(), `/v1/nodes/${nodes[1]}/decisions?reason=OutOfcpu&since=1d`), decisionList)
    ).decisions;
    expect(shown?.id).toBe(found[0]?.id);
    const page = await get(of(), `/decisions?reason=OutOfcpu&pod=${pods.metadata.name}`, { accept: "text/html" });
    const text = await page.text();
    expect(page.status, text).toBe(200);
    for (const { id } of found) expect(text).toContain(`href="/decisions/${id}"`);
  });

  test("invalid parameters of the decision list are named, and an unknown node comes with similar names", async () => {
    for (const query of [
      "reason=",
      "since=yesterday",
      "until=5",
      "limit=501",
      "kind=x",
      "verdict=x",
      "format=x",
      "nope=1",
    ])
      await problemOf(await get(of(), `/v1/decisions?${query}`), "invalid_query");
    await problemOf(await get(of(), "/v1/decisions?pageToken=nonsense"), "invalid_query");
    const node = fresh("some-node-there");
    await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(node) });
    expect((await problemOf(await get(of(), `/v1/decisions?node=${node}x`), "unknown_node")).near).toContain(node);
  });

  test("a node's token lists decisions, metrics and nodes of its own node only", async () => {
    const [mine, theirs] = [fresh("node"), fresh("node")];
    for (const node of [mine, theirs])
      await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(node) });
    const own = { authorization: `Bearer ${await tokenFor(of().store, ["read"], mine)}` };
    const { decisions } = await answer(await get(of(), "/v1/decisions", own), decisionList);
    expect(decisions.map(({ node }) => node)).toEqual([mine]);
    await problemOf(await get(of(), `/v1/decisions?node=${theirs}`, own), "forbidden_node");
    const metrics = await (await get(of(), "/metrics", own)).text();
    expect(metrics).toContain(`node="${mine}"`);
    expect(metrics).not.toContain(theirs);
    expect(await names(await get(of(), "/v1/nodes?sort=severity", own))).toEqual([mine]);
    const csv = await (await get(of(), "/v1/decisions?format=csv", own)).text();
    expect(csv.trimEnd().split("\r\n")).toHaveLength(2);
  });

  test("decisions as CSV may exceed a page, and cells that look like formulas are escaped", async () => {
    const [node, now] = [`=${fresh("node")}`, Date.now()];
    const rows = Array.from({ length: 620 }, (_, i) => decisionRow({ node, decidedAtMs: now - i }));
    const turn = { node, atMs: now, snapshots: [], decisions: rows.map((decision) => ({ decision })), again: [] };
    value(await of().store.recordTurn(turn));
    const response = await get(of(), `/v1/decisions?node=${encodeURIComponent(node)}`, { accept: "text/csv" });
    expect(response.headers.get("content-disposition")).toBe('attachment; filename="decisions.csv"');
    const [head, ...lines] = (await response.text()).trimEnd().split("\r\n");
    expect(head).toBe(
      "decidedAt,node,kind,verdict,reason,namespace,pod,podUid,policyVersion,snapshotId,id,times,lastDecidedAt,outcome",
    );
    expect(lines.map((line) => line.split(",").at(-4))).toEqual(rows.map(({ id }) => id));
    expect(lines[0]).toContain(`,'${node},`);
  });
}
