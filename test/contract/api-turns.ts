import { expect, test } from "vitest";
import type * as z from "zod";
import { turnAnswer } from "../../api/http/openapi/decision-answers.ts";
import { TURN } from "../../api/http/openapi/operation.ts";
import { requesting } from "../kit/pods.ts";
import {
  type ApiSubject,
  answer,
  exampleSnapshot,
  fresh,
  get,
  type Of,
  post,
  problemOf,
  tokenFor,
} from "./api-subject.ts";
import { value } from "./store-rows.ts";

type Answer = z.output<typeof turnAnswer>;
const path = (node: string): string => `/v1/nodes/${node}/turns`;
const turn = async (api: ApiSubject, node: string, body: unknown): Promise<Answer> =>
  answer(await post(api, path(node), body), turnAnswer);
const pod = (name: string, over: object = {}) =>
  requesting(name, { cpu: "100m" }, {}, { metadata: { name, namespace: "default", uid: name }, ...over });
const CGROUPS = { kind: "cgroups", explain: "off" } as const;
const first = (answered: Answer): Record<string, unknown> => answered.decisions[0] as Record<string, unknown>;

export function turns(of: Of): void {
  badTurns(of);
  test("the first turn posts a snapshot and the next ones changes, and a held decision is not answered again", async () => {
    const node = fresh("node");
    const begun = await turn(of(), node, { snapshot: exampleSnapshot(node), decisions: [CGROUPS] });
    expect(begun).toMatchObject({ node, decisions: [{ kind: "cgroups", recorded: true, verdict: "decided" }] });
    const holds = first(begun)["id"];
    const decisions = [{ ...CGROUPS, holds }];
    const same = await turn(of(), node, { base: begun.snapshotId, changes: { set: { sequence: 2 } }, decisions });
    expect(same.snapshotId).not.toBe(begun.snapshotId);
    expect(same.decisions).toEqual([
      expect.objectContaining({ id: holds, holds, patch: [], again: expect.objectContaining({ times: 2 }) }),
    ]);
    const changes = { pods: { upsert: [pod("b")] }, set: { sequence: 3 } };
    const more = await turn(of(), node, { base: same.snapshotId, changes, decisions });
    expect(first(more)["id"]).not.toBe(holds);
    const { snapshot } = JSON.parse(await (await get(of(), `/v1/snapshots/${more.snapshotId}`)).text()) as {
      snapshot: { pods: { metadata: { name: string } }[] };
    };
    expect(snapshot.pods.map(({ metadata }) => metadata.name)).toEqual(["web", "b"]);
    const whole = await turn(of(), node, { base: more.snapshotId, decisions: [CGROUPS] });
    expect(first(whole)).toHaveProperty("decision");
    expect(value(await of().store.getNode(node))?.lastSequence).toBe(3);
  });

  test("a turn without decisions stores the snapshot, and the documented example is answered", async () => {
    const node = TURN.snapshot.node.metadata.name;
    expect((await turn(of(), node, TURN)).decisions).toHaveLength(2);
    const other = fresh("node");
    const { snapshotId } = await turn(of(), other, { snapshot: exampleSnapshot(other) });
    expect((await get(of(), `/v1/snapshots/${snapshotId}`)).status).toBe(200);
    const decided = await post(of(), "/v1/decisions/cgroups", { snapshotId });
    expect(decided.status).toBe(200);
  });

  test("a refused decision of a turn does not affect the others, and is not recorded", async () => {
    const node = fresh("node");
    const { cgroup: _, ...snapshot } = exampleSnapshot(node);
    const { decisions } = await turn(of(), node, { snapshot, decisions: [CGROUPS, { kind: "allocatable" }] });
    expect(decisions).toMatchObject([
      { kind: "cgroups", problem: { code: "needs_input", needs: ["cgroup.version"] } },
      { kind: "allocatable", recorded: true },
    ]);
    const unwanted = await turn(of(), node, { snapshot, decisions: [{ kind: "allocatable", record: false }] });
    expect(first(unwanted)).toMatchObject({ recorded: false, notRecorded: "not-wanted" });
  });

  test("an unknown base is a 409 that asks for the whole snapshot", async () => {
    const node = fresh("node");
    const { snapshotId: base } = await turn(of(), node, { snapshot: exampleSnapshot(node) });
    const other = fresh("node");
    for (const [name, body] of [
      [node, { base: "0".repeat(32) }],
      [other, { base }],
    ] as const) {
      const { advice } = await problemOf(await post(of(), path(name), body), "unknown_base");
      expect(advice).toContain("post the whole snapshot");
    }
  });

  test("a turn with another node's token is refused", async () => {
    const node = fresh("node");
    const token = await tokenFor(of().store, ["decide"], fresh("node"));
    const body = { snapshot: exampleSnapshot(node) };
    await problemOf(await post(of(), path(node), body, { authorization: `Bearer ${token}` }), "forbidden_node");
  });
}

/** Invalid turns, and the path of each fault. */
const WRONG: readonly (readonly [at: string, body: object])[] = [
  ["base", { base: "x" }],
  ["changes", { changes: { sett: {} } }],
  ["changes.set", { changes: { set: { nodes: {} } } }],
  ["changes.merge", { changes: { merge: { machine: {} } } }],
  ["changes.set.cgroup.version", { changes: { set: { cgroup: { version: 3 } } } }],
  ["changes.merge.cgroup.version", { changes: { merge: { cgroup: { version: 3 } } } }],
  ["changes.merge.cgroup", { changes: { set: { cgroup: { version: 1 } }, merge: { cgroup: { driver: "systemd" } } } }],
  ["changes.pods", { changes: { set: { pods: [] }, pods: { remove: ["web"] } } }],
  ["changes.images", { changes: { set: { runtime: {} }, images: { remove: [] } } }],
  ["changes.containers", { changes: { merge: { runtime: { containers: [] } }, containers: { remove: [] } } }],
  ["changes.pods.remove[0]", { changes: { pods: { remove: ["nobody"] } } }],
  ["changes.pods.remove[1]", { changes: { pods: { remove: ["p", "p"] } } }],
  ["changes.pods.upsert[1]", { changes: { pods: { upsert: [pod("q"), pod("q")] } } }],
  ["changes.pods.upsert[0]", { changes: { pods: { remove: ["p"], upsert: [pod("p")] } } }],
  ["changes.pods.upsert[0].spec.containers", { changes: { pods: { upsert: [pod("q", { spec: {} })] } } }],
  ["changes.pods.upsert[0]", { changes: { pods: { upsert: [{ ...pod("q"), metadata: { name: "q" } }] } } }],
  ["changes.pods.order", { changes: { pods: { order: ["p", "p"] } } }],
  ["changes.set.node.metadata.name", { changes: { set: { node: { metadata: { name: "another" } } } } }],
  ["changes.set.stats.node.nodeName", { changes: { set: { stats: { node: { nodeName: "another" } } } } }],
  ["snapshot", { snapshot: {} }],
  ["decisions[0]", { decisions: [1] }],
  ["decisions[0].kind", { decisions: [{ kind: "nothing" }] }],
  ["decisions[0].holds", { decisions: [{ ...CGROUPS, holds: 1 }] }],
  ["decisions[0].snapshot", { decisions: [{ ...CGROUPS, snapshot: {} }] }],
  ["decisions[1].explain", { decisions: [CGROUPS, { ...CGROUPS, explain: "loud" }] }],
];

function badTurns(of: Of): void {
  test("an invalid turn is refused with the path, and does not change the node's state", async () => {
    const node = fresh("node");
    const snapshot = exampleSnapshot(node, { pods: [pod("p")], runtime: { containers: [] } });
    const { snapshotId: base } = await turn(of(), node, { snapshot, decisions: [CGROUPS] });
    for (const [at, body] of WRONG) {
      const problem = await problemOf(await post(of(), path(node), { base, ...body }), "invalid_input");
      expect(problem.issues?.map((issue) => issue.path).join(" "), JSON.stringify(body)).toContain(at);
    }
    const { decisions } = await turn(of(), node, { base, decisions: [CGROUPS] });
    expect(decisions).toMatchObject([{ snapshotId: base }]);
    expect(value(await of().store.listDecisions({ node, limit: 9 })).items).toHaveLength(1);
  });
}
