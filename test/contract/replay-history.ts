import { expect, test } from "vitest";
import type * as z from "zod";
import { decisionAnswer, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { encodeResume, historyReplay } from "../../api/service/replay/replay-answer.ts";
import { passedOf } from "../../api/service/replay/tally.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import {
  type ApiSubject,
  answer,
  exampleSnapshot,
  fresh,
  type Of,
  post,
  problemOf,
  TWO_NUMA_NODES,
  tokenFor,
  untilWhole,
} from "./api-subject.ts";
import { decisionRow, snapshotRow, T0, value } from "./store-rows.ts";

/** Nodes that report no version are decided with the newest one. */
const UNDER = { recordedUnder: NEWEST.version, replayedUnder: NEWEST.version };

type Replayed = z.output<typeof historyReplay>;
const onePage = async (api: ApiSubject, body: object, headers = {}): Promise<Replayed> =>
  answer(await post(api, "/v1/replay", body, headers), historyReplay);
const replay = (api: ApiSubject, body: object, headers = {}): Promise<Replayed> =>
  untilWhole(
    () => onePage(api, body, headers),
    ({ nextPageToken, counts }) => nextPageToken === null || ("limit" in body && passedOf(counts) === body.limit),
  );

async function pages(api: ApiSubject, body: object): Promise<Replayed[]> {
  const found = [await replay(api, body)];
  for (let token = found[0]?.nextPageToken; token !== null; token = found.at(-1)?.nextPageToken) {
    found.push(await replay(api, { ...body, pageToken: token }));
  }
  return found;
}
const sum = (found: readonly Replayed[], name: keyof Replayed["counts"]): number =>
  found.reduce((total, { counts }) => total + counts[name], 0);

const resources = { cpu: "16", memory: "30Gi", pods: "110" };
const machineOf = (name: string) => ({
  ...exampleSnapshot(name),
  machine: TWO_NUMA_NODES,
  node: { metadata: { name }, status: { capacity: resources, allocatable: resources } },
});
const limitedPod = (name: string, cpu: string) =>
  pod(name, {
    metadata: { namespace: "shop", uid: `u-${name}` },
    spec: { containers: [container("app", undefined, { cpu, memory: "1Gi" })] },
  });
/** With this configuration only pods whose CPUs fit on one NUMA node are admitted. */
const ALIGNED = {
  cpuManagerPolicy: "static",
  topologyManagerPolicy: "single-numa-node",
  kubeReserved: { cpu: "1", memory: "256Mi" },
};

/**
 * Records three different cgroups decisions, and two admissions: one pod requests more CPUs than a NUMA node has, the
 * other requests a part of one node's.
 */
async function decided(api: ApiSubject, node: string): Promise<{ large: string; small: string }> {
  for (let sequence = 0; sequence < 3; sequence++) {
    const kubeletConfiguration = { podPidsLimit: 200 + sequence };
    const body = { snapshot: exampleSnapshot(node, { sequence, kubeletConfiguration }) };
    await answer(await post(api, "/v1/decisions/cgroups", body), decisionAnswer);
  }
  const asks = async (name: string, cpu: string) => {
    const body = { snapshot: machineOf(node), ask: { pod: limitedPod(name, cpu) } };
    return (await answer(await post(api, "/v1/decisions/admission", body), decisionAnswer)).id;
  };
  return { large: await asks("large", "10"), small: await asks("small", "100m") };
}

export function historyReplays(of: Of): void {
  test("without a change every decision is the same, page by page, each once", async () => {
    const node = fresh("node");
    await decided(of(), node);
    const whole = await replay(of(), { node });
    const all = { replayed: 5, same: 5, differs: 0, refused: 0, gone: 0, unreadable: 0, decisions: 5 };
    expect(whole).toMatchObject({ counts: all, changed: [], verdicts: [], progress: 1, nextPageToken: null });
    expect(whole.byNode).toEqual({ [node]: all });
    expect(whole.byVersion).toEqual([{ ...UNDER, ...all }]);
    expect(whole.byKind).toEqual({
      cgroups: { ...all, replayed: 3, same: 3, decisions: 3 },
      admission: { ...all, replayed: 2, same: 2, decisions: 2 },
    });
    const found = await pages(of(), { node, limit: 2 });
    expect(sum(found, "replayed")).toBe(5);
    expect(Math.max(...found.map(({ counts }) => counts.replayed))).toBeLessThanOrEqual(2);
    expect(found[0]?.progress).toBeLessThanOrEqual(found[1]?.progress ?? 0);
    expect(new Set(found.map(({ until }) => until)).size).toBe(1);
    expect(found.at(-1)?.reachedAt).toBe(whole.reachedAt);
  });

  test("a pod that would be refused is listed with both verdicts, like in its own replay", async () => {
    const node = fresh("node");
    const { large } = await decided(of(), node);
    const change = { kubeletConfigurationPatch: ALIGNED };
    const found = await replay(of(), { node, kind: "admission", ...change });
    expect(found.counts).toEqual({
      replayed: 2,
      same: 0,
      differs: 2,
      refused: 0,
      gone: 0,
      unreadable: 0,
      decisions: 2,
    });
    expect(found.verdicts).toEqual([
      { kind: "admission", recorded: "decided", replayed: "decided", count: 1 },
      { kind: "admission", recorded: "decided", replayed: "refused", count: 1 },
    ]);
    const [changed] = found.changed;
    expect(changed).toMatchObject({
      id: large,
      kind: "admission",
      node,
      pod: { namespace: "shop", name: "large", uid: "u-large" },
      ...UNDER,
      recordedVerdict: "decided",
      verdict: "refused",
      pods: ["shop/large"],
      podCount: 1,
      problem: null,
    });
    const alone = await answer(await post(of(), `/v1/decisions/${large}/replay`, change), replayAnswer);
    expect(changed?.differenceCount).toBe(alone.differences.length);
    for (const [i, { path, recorded, omitted = [] }] of (changed?.differences ?? []).entries()) {
      expect(path).toBe(alone.differences[i]?.path);
      if (!omitted.includes("recorded")) expect(recorded).toEqual(alone.differences[i]?.recorded);
    }
    const cut = await replay(of(), { node, kind: "cgroups", ...change });
    expect(cut.verdicts).toEqual([{ kind: "cgroups", recorded: "decided", replayed: "decided", count: 3 }]);
    for (const { differences, differenceCount } of cut.changed) expect(differences).toHaveLength(differenceCount);
  });

  replaysOfTheSame(of);
  pagesOfChanges(of);
  rangesOfTime(of);
}

function replaysOfTheSame(of: Of): void {
  test("a repeated decision is replayed on its first and its last snapshot, and counted with its repetitions", async () => {
    const node = fresh("node");
    const ask = async (sequence: number) => {
      const posted = await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(node, { sequence }) });
      return answer(posted, decisionAnswer);
    };
    const [first] = [await ask(1), await ask(2), await ask(3)];
    const counts = { replayed: 1, same: 1, differs: 0, refused: 0, gone: 0, unreadable: 0, decisions: 3 };
    const replayed = async (change = {}) => (await replay(of(), { node, ...change })).counts;
    expect(await replayed()).toEqual(counts);
    const differs = { ...counts, same: 0, differs: 1 };
    expect(await replayed({ kubeletConfigurationPatch: { kubeReserved: { cpu: "250m" } } })).toEqual(differs);
    // a last snapshot with which the decision would differ, and a removed last snapshot
    const larger = { metadata: { name: node }, status: { capacity: { cpu: "64", memory: "256Gi", pods: "110" } } };
    const body = JSON.stringify(exampleSnapshot(node, { node: larger }));
    const other = snapshotRow({ id: hex(70), node, body });
    const count = {
      kind: "allocatable",
      decisionId: first.id,
      times: 1,
      lastAtMs: Date.now(),
      lastSnapshotId: other.id,
      lastId: "0",
    };
    const nothing = { node, atMs: Date.now(), decisions: [] };
    value(await of().store.recordTurn({ ...nothing, snapshots: [other], again: [count] }));
    expect(await replayed()).toEqual({ ...differs, decisions: 4 });
    const gone = { ...count, lastSnapshotId: hex(71) };
    value(await of().store.recordTurn({ ...nothing, snapshots: [], again: [gone] }));
    expect(await replayed()).toEqual({ ...counts, decisions: 5 });
  });
}

function pagesOfChanges(of: Of): void {
  test("the pages of a replay add up to the whole", async () => {
    const node = fresh("node");
    await decided(of(), node);
    const body = { node, kubeletConfiguration: { podPidsLimit: 100 } };
    const whole = await replay(of(), body);
    const found = await pages(of(), { ...body, limit: 1 });
    expect(found).toHaveLength(5);
    for (const name of ["replayed", "same", "differs", "refused", "gone", "unreadable", "decisions"] as const) {
      expect(sum(found, name), name).toBe(whole.counts[name]);
    }
    expect(found.flatMap(({ changed }) => changed)).toEqual(whole.changed);
    expect(whole.counts.differs).toBeGreaterThan(0);
  });

  test("an unreadable decision is counted and named, and the replay continues", async () => {
    const node = fresh("node");
    const { large } = await decided(of(), node);
    const row = value(await of().store.getDecision(large));
    if (row === null) throw new Error("not recorded");
    const broken = ['{"broken', "[]", "null", '{"decision":[]}'].map((body, i) => ({ ...row, body, id: hex(50 + i) }));
    for (const decision of broken) value(await of().store.record({ decision }));
    const last = { ...row, id: hex(60), decidedAtMs: row.decidedAtMs + 60_000 };
    value(await of().store.record({ decision: last }));
    const whole = await replay(of(), { node, until: new Date(last.decidedAtMs + 1).toISOString() });
    expect(whole.counts).toEqual({
      replayed: 6,
      same: 6,
      differs: 0,
      refused: 0,
      gone: 0,
      unreadable: 4,
      decisions: 10,
    });
    expect(whole.changed).toEqual([]);
    expect(whole.unreadable.map(({ id }) => id)).toEqual(broken.map(({ id }) => id));
    for (const { id, unreadable } of whole.unreadable) {
      expect(unreadable).toContain(`decision \`${id}\`: what is stored of it is no`);
      const alone = await problemOf(await post(of(), `/v1/decisions/${id}/replay`, {}), "history_unavailable");
      expect(alone.detail).toBe(unreadable);
    }
    const found = await pages(of(), { node, limit: 2, until: whole.until });
    expect(found.flatMap(({ unreadable }) => unreadable)).toEqual(whole.unreadable);
    expect(found.map(({ counts }) => counts.replayed + counts.unreadable)).toEqual([2, 2, 2, 2, 2]);
  });

  test("a refused replay has its reason, and a missing snapshot is counted as gone", async () => {
    const node = fresh("node");
    const posted = await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(node) });
    const { id } = await answer(posted, decisionAnswer);
    const [gone, none] = [decisionRow({ id: hex(1), node, snapshotId: hex(2) }), decisionRow({ id: hex(3), node })];
    for (const decision of [gone, none]) value(await of().store.record({ decision }));
    const change = { kubeletConfigurationPatch: { evictionHard: { "memory.available": "lots" } } };
    const found = await replay(of(), { node, ...change });
    expect(found.counts).toEqual({
      replayed: 1,
      same: 0,
      differs: 0,
      refused: 1,
      gone: 2,
      unreadable: 0,
      decisions: 3,
    });
    expect(found.verdicts).toEqual([{ kind: "allocatable", recorded: "decided", replayed: null, count: 1 }]);
    expect(found.changed).toMatchObject([{ id, verdict: null, differences: [], differenceCount: 0 }]);
    const alone = await post(of(), `/v1/decisions/${id}/replay`, change);
    const code = found.changed[0]?.problem?.code ?? "internal";
    expect((await problemOf(alone, code)).detail).toBe(found.changed[0]?.problem?.detail);
  });
}

function rangesOfTime(of: Of): void {
  test("since and until narrow the replay, and a node without decisions gives an empty one", async () => {
    const node = fresh("node");
    value(await of().store.putSnapshot(snapshotRow({ node })));
    const none = { replayed: 0, same: 0, differs: 0, refused: 0, gone: 0, unreadable: 0, decisions: 0 };
    const empty = await replay(of(), { node });
    expect(empty).toMatchObject({ counts: none, byKind: {}, byNode: {}, progress: 1, reachedAt: null });
    const at = (seconds: number): string => new Date(T0 + seconds * 1000).toISOString();
    for (let i = 0; i < 5; i++) {
      value(await of().store.record({ decision: decisionRow({ id: hex(10 + i), node, decidedAtMs: T0 + i * 1000 }) }));
    }
    const count = async (range: object) => (await replay(of(), { node, ...range })).counts.gone;
    expect(await count({ since: at(1), until: at(3) })).toBe(2);
    expect(await count({ since: at(1) })).toBe(4);
    expect(await count({ until: at(1) })).toBe(1);
    expect(await count({ since: at(9) })).toBe(0);
    expect(await count({ since: at(2), until: at(2) })).toBe(0);
    // relative to now, as lists accept it
    value(
      await of().store.record({ decision: decisionRow({ id: hex(19), node, decidedAtMs: Date.now() - 7_200_000 }) }),
    );
    expect(await count({ since: "3h" })).toBe(1);
    expect(await count({ since: "3h", until: "2h30m" })).toBe(0);
    expect(await count({ until: "1d" })).toBe(5);
    const [first, second] = await pages(of(), { node, until: at(4), limit: 2 });
    expect([first?.progress, second?.progress, first?.until]).toEqual([1 / 3, 1, at(4)]);
  });

  test("decisions recorded during a paged replay are not included", async () => {
    const node = fresh("node");
    await decided(of(), node);
    const first = await replay(of(), { node, limit: 4 });
    const later = decisionRow({ id: hex(30), node, decidedAtMs: Date.now() + 60_000 });
    value(await of().store.record({ decision: later }));
    const rest = await replay(of(), { node, limit: 4, pageToken: first.nextPageToken });
    expect([rest.counts.replayed, rest.nextPageToken]).toEqual([1, null]);
  });
}
/** An id that no other test uses. */
const hex = (n: number): string => `${n}`.padStart(4, "0").padStart(32, "e");

export function badHistoryReplays(of: Of): void {
  test("an invalid configuration is refused with its path before anything is replayed", async () => {
    const pathsOf = async (body: object) =>
      (await problemOf(await post(of(), "/v1/replay", body), "invalid_input")).issues?.map(({ path }) => path);
    expect(await pathsOf({ kubeletConfiguration: { maxPods: -1 } })).toEqual(["kubeletConfiguration.maxPods"]);
    expect(await pathsOf({ kubeletConfigurationPatch: { maxPods: -1 } })).toEqual([
      "kubeletConfigurationPatch.maxPods",
    ]);
    expect(await pathsOf({ kubeletConfigurationPatch: { kubeletconfig: { maxPods: -1 } } })).toEqual([
      "kubeletConfigurationPatch.kubeletconfig.maxPods",
    ]);
    expect(await pathsOf({ kubeletConfigurationPatch: [] })).toEqual(["kubeletConfigurationPatch"]);
    expect(await pathsOf({ kubeletConfiguration: 7 })).toEqual(["kubeletConfiguration"]);
    expect(await pathsOf({ kubeletConfiguration: {}, kubeletConfigurationPatch: {} })).toEqual([
      "kubeletConfigurationPatch",
    ]);
  });

  test("invalid times, kinds, limits and fields are refused with their paths", async () => {
    const pathsOf = async (body: unknown) =>
      (await problemOf(await post(of(), "/v1/replay", body), "invalid_input")).issues?.map(({ path }) => path);
    expect(await pathsOf({ since: "yesterday", until: 7, kind: "x", node: [] })).toEqual([
      "until",
      "node",
      "since",
      "kind",
    ]);
    expect(await pathsOf({ since: "2026-01-02T00:00:00Z", until: "2026-01-01T00:00:00Z" })).toEqual(["since"]);
    for (const limit of [0, 1001, 1.5, "2"]) expect(await pathsOf({ limit })).toEqual(["limit"]);
    expect(await pathsOf({ config: {} })).toEqual(["config"]);
    expect(await pathsOf([])).toEqual(["$"]);
    await problemOf(await post(of(), "/v1/replay", "{"), "malformed_json");
    await problemOf(await post(of(), "/v1/replay?since=1", {}), "invalid_query");
  });

  test("an unknown node is a 404 with similar names", async () => {
    const node = fresh("replayed-node");
    await decided(of(), node);
    const problem = await problemOf(await post(of(), "/v1/replay", { node: `${node}x` }), "unknown_node");
    expect(problem.near).toContain(node);
  });

  test("a page token is valid for its own replay only", async () => {
    const node = fresh("node");
    await decided(of(), node);
    const body = { node, limit: 1, kubeletConfigurationPatch: { maxPods: 50 } };
    const { nextPageToken: pageToken } = await replay(of(), body);
    // a time that was given relative to now may differ in the next request
    expect((await replay(of(), { ...body, since: "2020-01-01T00:00:00Z", pageToken })).counts.replayed).toBe(1);
    const others: readonly object[] = [
      { ...body, kind: "cgroups" },
      { limit: 1, kubeletConfigurationPatch: { maxPods: 50 } },
      { ...body, kubeletConfigurationPatch: { maxPods: 51 } },
      { node, limit: 1 },
    ];
    for (const other of others) {
      const problem = await problemOf(await post(of(), "/v1/replay", { ...other, pageToken }), "invalid_input");
      expect(problem.issues).toMatchObject([{ path: "pageToken", message: /another replay/ }]);
    }
    const place = { fromMs: 0, untilMs: 1, atMs: 0, seq: 1, print: "0".repeat(16) };
    const far = encodeResume({ ...place, untilMs: 9_000_000_000_000_000 });
    for (const bad of ["", "x", "MTIz", "a".repeat(500), far, 7]) {
      const problem = await problemOf(await post(of(), "/v1/replay", { ...body, pageToken: bad }), "invalid_input");
      expect(problem.issues?.[0]?.path).toBe("pageToken");
    }
  });
}

export function replaysOfANodesToken(of: Of): void {
  test("a node's token replays decisions of its own node only", async () => {
    const [node, other] = [fresh("node"), fresh("node")];
    await decided(of(), node);
    await decided(of(), other);
    const own = { authorization: `Bearer ${await tokenFor(of().store, ["read"], node)}` };
    expect(Object.keys((await replay(of(), {}, own)).byNode)).toEqual([node]);
    expect(Object.keys((await replay(of(), { node }, own)).byNode)).toEqual([node]);
    await problemOf(await post(of(), "/v1/replay", { node: other }, own), "forbidden_node");
    const everyones = await replay(of(), { limit: 1 });
    const stolen = { limit: 1, pageToken: everyones.nextPageToken };
    await problemOf(await post(of(), "/v1/replay", stolen, own), "invalid_input");
    const decide = { authorization: `Bearer ${await tokenFor(of().store, ["decide"])}` };
    await problemOf(await post(of(), "/v1/replay", {}, decide), "forbidden");
    const unheard = { authorization: `Bearer ${await tokenFor(of().store, ["read"], fresh("unheard"))}` };
    expect((await replay(of(), {}, unheard)).counts.replayed).toBe(0);
  });
}
