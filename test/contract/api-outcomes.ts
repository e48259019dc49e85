import { expect, test } from "vitest";
import type * as z from "zod";
import { agreementAnswer, outcomesRecorded, snapshotStored } from "../../api/http/openapi/answers.ts";
import { node as nodeOf } from "../kit/nodes.ts";
import { pod, requesting } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { type ApiSubject, answer, fresh, get, type Of, post, problemOf, send, tokenFor } from "./api-subject.ts";

const T = Date.parse("2026-01-31T12:00:00Z");
const at = (seconds: number): string => new Date(T + seconds * 1000).toISOString();
const RUNNING = { phase: "Running", containerStatuses: [{ name: "c", state: { running: {} } }] };
const CONFIGURATION = { evictionHard: { "memory.available": "1Gi" }, evictionPressureTransitionPeriod: "1m" };
export const bound = (name: string, cpu: string, more: Json = {}): Json => requesting(name, { cpu }, {}, more);
export const there = (name: string, cpu: string): Json => bound(name, cpu, { status: RUNNING });

/** A node of 4 CPUs with these pods, at a given time. */
export const snapshot = (name: string, seconds: number, pods: readonly Json[], more: Json = {}): Json => ({
  observedAt: at(seconds),
  node: nodeOf(
    {
      allocatable: { cpu: "4", memory: "8Gi", pods: "10", "ephemeral-storage": "10Gi" },
      conditions: [{ type: "MemoryPressure", status: "False" }],
    },
    { metadata: { name } },
  ),
  kubeletConfiguration: CONFIGURATION,
  pods: pods.map((one) => ({ ...one, spec: { ...(one["spec"] as Json), nodeName: name } })),
  ...more,
});
export const put = async (api: ApiSubject, name: string, body: Json): Promise<string> =>
  (await answer(await send(api, "PUT", `/v1/nodes/${name}/snapshot`, body), snapshotStored, 201)).id;

export const refOf = (object: Json): Json => {
  const { name, uid } = object["metadata"] as Json;
  return { namespace: "default", name, uid };
};
export const admission = (object: Json, seconds: number, more: Json = {}): Json => ({
  kind: "admission",
  at: at(seconds),
  seenIn: ["pod-status"],
  pod: refOf(object),
  object,
  admitted: true,
  reason: "",
  message: "",
  ...more,
});
export const short = (requested: number, used: number): Json => ({
  admitted: false,
  reason: "OutOfcpu",
  message: `Node didn't have enough resource: cpu, requested: ${requested}, used: ${used}, capacity: 4000`,
});
export const report = async (api: ApiSubject, name: string, outcomes: readonly Json[], status = 201) =>
  (await answer(await post(api, `/v1/nodes/${name}/outcomes`, { outcomes }), outcomesRecorded, status)).outcomes;
export const agreement = async (api: ApiSubject, query: string) =>
  answer(await get(api, `/v1/agreement?${query}`), agreementAnswer);
type Listed = z.output<typeof agreementAnswer>["outcomes"][number];
const reported = (one: Pick<Listed, "comparison"> | undefined) => [
  one?.comparison?.verdict,
  one?.comparison?.why?.code ?? one?.comparison?.difference ?? null,
];

export function outcomes(of: Of): void {
  test("a refusal agrees with the decision on the last snapshot before it, or has the first number that differs", async () => {
    const name = fresh("shadow");
    await put(of(), name, snapshot(name, 0, []));
    const id = await put(of(), name, snapshot(name, 10, [there("web", "3")]));
    const [same, other, admitted] = await report(of(), name, [
      admission(bound("batch", "2"), 20, short(2000, 3000)),
      admission(bound("job", "2"), 30, short(2000, 3500)),
      admission(bound("large", "8"), 35),
    ]);
    expect(same?.comparison).toMatchObject({
      verdict: "agrees",
      snapshotId: id,
      snapshotAgeMs: 10_000,
      difference: null,
    });
    expect(same?.comparison.nodewise).toEqual(same?.comparison.kubelet);
    expect(other?.comparison).toMatchObject({
      verdict: "differs",
      difference: { field: "used", kubelet: 3500, nodewise: 3000 },
      kubelet: { admitted: false, reason: "OutOfcpu", requested: 2000, used: 3500 },
      nodewise: { admitted: false, reason: "OutOfcpu", requested: 2000, used: 3000 },
      policyVersion: expect.stringMatching(/^kubelet-1[.]36/),
    });
    expect(reported(admitted)).toEqual(["differs", { field: "admitted", kubelet: true, nodewise: false }]);
  });

  test("pods admitted since the snapshot count, refused ones do not, and the order within a second is open", async () => {
    const name = fresh("shadow");
    await put(of(), name, snapshot(name, 0, [there("web", "1"), bound("early", "1")]));
    const all = await report(of(), name, [
      admission(bound("early", "1"), 2),
      admission(bound("refused", "9"), 3, short(9000, 2000)),
      admission(bound("second", "1"), 4),
      admission(bound("batch", "2"), 5, short(2000, 3000)),
      admission(bound("twin", "1"), 9),
      admission(bound("unlucky", "1"), 9, short(1000, 4000)),
    ]);
    expect(all.map((one) => reported(one))).toEqual([
      ["agrees", null],
      ["agrees", null],
      ["agrees", null],
      ["agrees", null],
      ["agrees", null],
      // the order of this outcome and its twin is unknown
      ["not-comparable", "order_not_known"],
    ]);
  });

  test("an outcome that cannot be compared is not-comparable with a code", async () => {
    const name = fresh("shadow");
    const code = async (outcome: Json) => reported((await report(of(), name, [outcome]))[0])[1];
    const refused = (uid: string, seconds: number) => admission(bound(uid, "2"), seconds, short(2000, 3000));
    expect(await code(refused("a", 1))).toBe("no_snapshot");
    await put(of(), name, snapshot(name, 10, [there("web", "3")]));
    expect(await code(refused("b", 71))).toBe("snapshot_too_old");
    expect(await code(refused("c", 9))).toBe("no_snapshot");
    expect(await code({ ...refused("d", 12), object: null })).toBe("pod_not_known");
    expect(await code({ ...refused("e", 12), reason: "VolumeAttachmentLimitExceeded" })).toBe("not_decided_here");
    const { kubeletConfiguration: _, ...unconfigured } = snapshot(name, 100, []);
    await put(of(), name, unconfigured);
    expect(await code(refused("f", 101))).toBe("configuration_not_known");
    const future = snapshot(name, 200, []) as { node: { status: Json } };
    const status = { ...future.node.status, nodeInfo: { kubeletVersion: "v1.99.0" } };
    await put(of(), name, { ...future, node: { ...future.node, status } });
    expect(await code(refused("g", 201))).toBe("version_not_known");
  });

  test("a snapshot stored after an outcome is not used for its comparison", async () => {
    const name = fresh("shadow");
    const outcome = admission(bound("batch", "2"), 20, short(2000, 3000));
    expect(reported((await report(of(), name, [outcome]))[0])[1]).toBe("no_snapshot");
    await put(of(), name, snapshot(name, 10, [there("web", "3")]));
    const [again] = await report(of(), name, [outcome], 200);
    expect(again).toMatchObject({ state: "same", comparison: { verdict: "not-comparable", snapshotId: null } });
    expect((await report(of(), name, [{ ...outcome, seenIn: ["event"] }], 200))[0]).toMatchObject({
      state: "changed",
      outcome: { seenIn: ["event", "pod-status"] },
      comparison: { why: { code: "no_snapshot" } },
    });
  });
}

export function preemptions(of: Of): void {
  const critical = bound("agent", "3");
  (critical["spec"] as Json)["priority"] = 2_000_001_000;
  const victim = (name: string, seconds: number): Json => ({
    kind: "preemption",
    at: at(seconds),
    seenIn: ["event"],
    pod: refOf(there(name, "1")),
    message: "Preempted in order to admit critical pod",
  });

  test("preemption victims are compared as a set once the preemptor is known, in any order of reports", async () => {
    const name = fresh("shadow");
    await put(of(), name, snapshot(name, 0, [there("small", "1"), there("large", "2")]));
    const first = await report(of(), name, [victim("small", 5)]);
    expect(reported(first[0])).toEqual(["not-comparable", "preemptor_not_known"]);
    const second = await report(of(), name, [admission(critical, 7)]);
    expect(second.map(({ outcome, state }) => [outcome.kind, state])).toEqual([
      ["admission", "new"],
      ["preemption", "changed"],
    ]);
    const victims = { kubelet: ["default/small"], nodewise: ["default/large"] };
    expect(reported(second[1])).toEqual(["differs", { field: "victims", ...victims }]);
    const other = fresh("shadow");
    await put(of(), other, snapshot(other, 0, [there("small", "1"), there("large", "2")]));
    await report(of(), other, [admission(critical, 7)]);
    expect(reported((await report(of(), other, [victim("large", 5)]))[0])).toEqual(["agrees", null]);
  });
}

const memory = (seconds: number, available: string, pods: readonly [string, number][] = []): Json => ({
  stats: {
    node: { memory: { time: at(seconds), availableBytes: Number(available), workingSetBytes: 4 * 2 ** 30 } },
    pods: pods.map(([name, bytes]) => ({
      podRef: { name, namespace: "default", uid: `uid-${name}` },
      memory: { time: at(seconds), workingSetBytes: bytes },
      containers: [{ name: "c", memory: { time: at(seconds), workingSetBytes: bytes } }],
    })),
  },
});
const MiB = 2 ** 20;

const pods = [there("greedy", "1"), there("modest", "1")];
const used: [string, number][] = [
  ["greedy", 900 * MiB],
  ["modest", 300 * MiB],
];

export function evictions(of: Of): void {
  const evicted = (name: string, seconds: number, threshold = "1Gi"): Json => ({
    kind: "eviction",
    at: at(seconds),
    seenIn: ["event"],
    pod: refOf(pod(name)),
    message: `The node was low on resource: memory. Threshold quantity: ${threshold}, available: 700Mi. Container c was using 900Mi, request is 0, has larger consumption of memory. `,
  });
  test("an eviction agrees by pod and threshold, with both sides' measurements beside it", async () => {
    const name = fresh("shadow");
    await put(of(), name, snapshot(name, 0, pods, memory(0, `${800 * MiB}`, used)));
    const [right] = await report(of(), name, [evicted("greedy", 5)]);
    expect(right?.comparison).toMatchObject({
      verdict: "agrees",
      kubelet: { resource: "memory", threshold: 1024 * MiB, pod: "default/greedy" },
      measured: [
        { field: "available", kubelet: 700 * MiB, nodewise: 800 * MiB },
        { field: "usage of c", kubelet: 900 * MiB, nodewise: 900 * MiB },
      ],
    });
    // once greedy is removed, modest is the next pod, as the kubelet also decided
    expect(reported((await report(of(), name, [evicted("modest", 8)]))[0])).toEqual(["agrees", null]);
  });
  test("another pod and another threshold differ, and a signal not below yet is not comparable", async () => {
    const name = fresh("shadow");
    await put(of(), name, snapshot(name, 0, pods, memory(0, `${800 * MiB}`, used)));
    const others = { kubelet: "default/modest", nodewise: "default/greedy" };
    expect(reported((await report(of(), name, [evicted("modest", 5)]))[0])).toEqual([
      "differs",
      { field: "pod", ...others },
    ]);
    await put(of(), name, snapshot(name, 20, pods, memory(20, `${800 * MiB}`, used)));
    expect(reported((await report(of(), name, [evicted("greedy", 25, "2Gi")]))[0])).toEqual([
      "differs",
      { field: "threshold", kubelet: 2048 * MiB, nodewise: [`${1024 * MiB}`] },
    ]);
    const calm = fresh("shadow");
    await put(of(), calm, snapshot(calm, 0, pods, memory(0, `${1800 * MiB}`, used)));
    expect(reported((await report(of(), calm, [evicted("greedy", 5)]))[0])).toEqual(["not-comparable", "signal_moved"]);
  });
}

export function conditions(of: Of): void {
  test("the end of a condition agrees with its transition period, when earlier passes are remembered", async () => {
    const turned = (status: string, seconds: number): Json => ({
      kind: "conditions",
      at: at(seconds),
      seenIn: ["node-status"],
      condition: "MemoryPressure",
      status,
      message: "",
    });
    const [remembered, unknown] = [fresh("shadow"), fresh("shadow")];
    const under = (name: string, seconds: number, available: number): Json => ({
      ...snapshot(name, seconds, pods, memory(seconds, `${available * MiB}`, used)),
      node: {
        ...(snapshot(name, 0, [])["node"] as Json),
        status: { ...((snapshot(name, 0, [])["node"] as Json)["status"] as Json), conditions: [] },
      },
    });
    for (const name of [remembered, unknown]) {
      for (const [seconds, available] of [
        [0, 800],
        [10, 1800],
        [50, 1800],
      ] as const) {
        const body = under(name, seconds, available);
        if (name === unknown) await put(of(), name, body);
        else expect((await post(of(), "/v1/decisions/eviction", { snapshot: body })).status).toBe(200);
      }
    }
    const both = [turned("True", 2), turned("False", 65)];
    expect((await report(of(), remembered, both)).map((one) => reported(one))).toEqual([
      ["agrees", null],
      ["agrees", null],
    ]);
    expect((await report(of(), unknown, both)).map((one) => reported(one))).toEqual([
      ["agrees", null],
      ["not-comparable", "observation_times"],
    ]);
    expect(reported((await report(of(), remembered, [turned("False", 53)]))[0])).toEqual([
      "differs",
      { field: "endsAt", kubelet: at(53), nodewise: at(60) },
    ]);
  });
}

export function agreements(of: Of): void {
  test("outcomes are counted by kind, filtered, and listed newest first in pages", async () => {
    const name = fresh("shadow");
    await put(of(), name, snapshot(name, 10, [there("web", "3")]));
    await report(of(), name, [
      admission(bound("a", "2"), 20, short(2000, 3000)),
      admission(bound("b", "2"), 25, short(2000, 3000)),
      admission(bound("c", "2"), 30, short(2000, 3100)),
      admission(bound("d", "2"), 90, short(2000, 3000)),
    ]);
    const kinds = [{ kind: "admission", agrees: 2, differs: 1, notComparable: 1, share: 2 / 3 }];
    const all = await agreement(of(), `node=${name}`);
    expect(all).toMatchObject({ kinds, nextPageToken: null });
    expect(all.outcomes.map(({ pod: one, verdict }) => [one?.name, verdict])).toEqual([
      ["d", "not-comparable"],
      ["c", "differs"],
      ["b", "agrees"],
      ["a", "agrees"],
    ]);
    const differing = await agreement(of(), `node=${name}&verdict=differs`);
    expect(differing.kinds).toEqual(kinds);
    expect(differing.outcomes.map(({ pod: one }) => one?.name)).toEqual(["c"]);
    const early = await agreement(of(), `node=${name}&kind=admission&until=${at(25)}`);
    expect(early.kinds).toEqual([{ ...kinds[0], agrees: 1, differs: 0, notComparable: 0, share: 1 }]);
    const seen: Listed[] = [];
    for (let token: string | null = ""; token !== null; ) {
      const page: z.output<typeof agreementAnswer> = await agreement(
        of(),
        `node=${name}&limit=3${token === "" ? "" : `&pageToken=${token}`}`,
      );
      seen.push(...page.outcomes);
      token = page.nextPageToken;
    }
    expect(seen).toEqual(all.outcomes);
    expect(JSON.stringify(all.outcomes)).not.toContain('"object"');
    expect((await agreement(of(), `node=${name}&kind=probes`)).kinds).toEqual([]);
    const metrics = await (await get(of(), "/metrics")).text();
    expect(metrics).toMatch(/^nodewise_agreement_total\{kind="admission",verdict="differs"\} [1-9]/m);
    expect(metrics).toMatch(/^nodewise_history_rows_total\{table="outcomes"\} \d/m);
  });
}

export function badOutcomes(of: Of): void {
  test("an invalid report is refused with all its faults, and nothing is recorded", async () => {
    const name = fresh("shadow");
    const issues = async (body: unknown) =>
      (await problemOf(await post(of(), `/v1/nodes/${name}/outcomes`, body), "invalid_input")).issues?.map(
        (i) => i.path,
      );
    const good = admission(bound("a", "2"), 20, short(2000, 3000));
    expect(await issues({ outcomes: [good, { ...good, admitted: true, after: at(21) }] })).toEqual([
      "outcomes[1].after",
      "outcomes[1].reason",
    ]);
    expect(await issues({ outcomes: [{ ...good, pod: { namespace: "default", name: "a", uid: "other" } }] })).toEqual([
      "outcomes[0].object.metadata.uid",
    ]);
    expect(await issues({ outcomes: [{ ...good, at: "yesterday", seenIn: [] }] })).toEqual([
      "outcomes[0].at",
      "outcomes[0].seenIn",
    ]);
    expect(await issues({ outcomes: [{ ...good, kind: "nonsense" }] })).toEqual(["outcomes[0].kind"]);
    expect(await issues([])).toEqual(["$"]);
    expect(await issues({ outcomes: Array(501).fill(good) })).toEqual(["outcomes"]);
    expect((await agreement(of(), `node=${name}`)).outcomes).toEqual([]);
    expect(await report(of(), name, [], 200)).toEqual([]);
    const query = async (text: string) =>
      (await problemOf(await get(of(), `/v1/agreement?${text}`), "invalid_query")).issues?.map(({ path }) => path);
    expect(await query("kind=cpus&verdict=refused&since=yesterday&limit=0")).toEqual([
      "kind",
      "verdict",
      "limit",
      "since",
    ]);
    expect(await query("pageToken=nonsense")).toEqual(["pageToken"]);
  });

  test("a node's token reports and reads outcomes of its own node, with the scopes for it", async () => {
    const [mine, theirs] = [fresh("shadow"), fresh("shadow")];
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const own = bearer(await tokenFor(of().store, ["decide", "read"], mine));
    const body = { outcomes: [admission(bound("a", "2"), 20)] };
    await report(of(), theirs, body.outcomes);
    expect((await post(of(), `/v1/nodes/${mine}/outcomes`, body, own)).status).toBe(201);
    await problemOf(await post(of(), `/v1/nodes/${theirs}/outcomes`, body, own), "forbidden_node");
    const seen = await answer(await get(of(), "/v1/agreement", own), agreementAnswer);
    expect(seen.outcomes.map(({ node }) => node)).toEqual([mine]);
    expect(seen.kinds).toMatchObject([{ kind: "admission", notComparable: 1 }]);
    await problemOf(await get(of(), `/v1/agreement?node=${theirs}`, own), "forbidden_node");
    const read = bearer(await tokenFor(of().store, ["read"]));
    const decide = bearer(await tokenFor(of().store, ["decide"]));
    await problemOf(await post(of(), `/v1/nodes/${mine}/outcomes`, body, read), "forbidden");
    await problemOf(await get(of(), "/v1/agreement", decide), "forbidden");
  });
}
