import { expect, test } from "vitest";
import { type JsonPatch, patched } from "../../api/base/json-patch.ts";
import { mergePatch } from "../../api/base/merge-patch.ts";
import type { Kind } from "../../api/model/decision.ts";
import { epochMs } from "../../api/model/units.ts";
import { PostedBodies } from "../../api/server/posted-bodies.ts";
import type { Store } from "../../db/store.ts";
import { appOver } from "../api/serving.ts";
import { capturedSnapshot } from "../contract/captured.ts";
import { value } from "../contract/store-rows.ts";
import { type Draws, draws, Met, shuffled } from "./draws.ts";

type Json = Record<string, unknown>;
interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [member: string]: unknown;
}
interface Changes {
  readonly set: Json;
  readonly merge: Json;
  pods?: { upsert?: unknown[]; remove?: string[]; order?: string[] };
  containers?: { upsert?: unknown[]; remove?: string[]; order?: string[] };
}
/** A whole node as posted, with its pods as a plain list. */
interface Posted extends Json {
  pods: Pod[];
  runtime: { containers: { id: string }[] } & Json;
}
const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const uidOf = ({ metadata }: Pod): string => metadata.annotations?.["kubernetes.io/config.mirror"] ?? metadata.uid;

function captured(): Posted {
  const { pods, runtime, kubeletConfiguration, ...rest } = capturedSnapshot() as Json & {
    pods: { items: Pod[] };
    runtime: { containers: { containers: { id: string }[] } } & Json;
    kubeletConfiguration: { kubeletconfig: Json };
  };
  const { kubeletconfig } = kubeletConfiguration;
  return copy({
    ...rest,
    kubeletConfiguration: kubeletconfig,
    pods: pods.items,
    runtime: { ...runtime, containers: runtime.containers.containers },
  }) as unknown as Posted;
}

/** One change of each form, applied both to the posted node and to the changes of a turn. */
const FORMS: Readonly<Record<string, (node: Posted, changes: Changes, d: Draws) => void>> = {
  "a pod's status": (node, changes, d) => {
    const i = d.below(node.pods.length);
    const pod = copy(node.pods[i] as Pod) as Pod & { status?: { containerStatuses?: { restartCount: number }[] } };
    for (const status of pod.status?.containerStatuses ?? []) status.restartCount += 1 + d.below(3);
    Object.assign(pod.metadata, { labels: { turn: `${d.below(1000)}` } });
    node.pods[i] = pod;
    upsert(changes, pod);
  },
  "a pod's resources": (node, changes, d) => {
    const i = d.below(node.pods.length);
    const pod = copy(node.pods[i] as Pod) as Pod & { spec: { containers: Json[] } };
    const memory = `${16 + d.below(64)}Mi`;
    pod.spec.containers[0] = {
      ...pod.spec.containers[0],
      resources: { requests: { memory, cpu: "10m" }, limits: { memory } },
    };
    node.pods[i] = pod;
    upsert(changes, pod);
  },
  "a pod that is new": (node, changes, d) => {
    const pod = copy(d.pick(node.pods)) as Pod & { status?: unknown };
    const uid = `0000${d.below(1e9)}`;
    Object.assign(pod, { status: { phase: "Pending" } });
    Object.assign(pod.metadata, { name: `new-${uid}`, uid, annotations: {} });
    node.pods.push(pod);
    upsert(changes, pod);
  },
  "a pod that is gone": (node, changes, d) => {
    if (node.pods.length < 3) return;
    const [gone] = node.pods.splice(d.below(node.pods.length), 1) as [Pod];
    changes.pods ??= {};
    changes.pods.upsert = (changes.pods.upsert ?? []).filter((pod) => uidOf(pod as Pod) !== uidOf(gone));
    const isNew = gone.metadata.name.startsWith("new-") && fresh.has(gone.metadata.uid);
    if (!isNew) changes.pods.remove = [...(changes.pods.remove ?? []), uidOf(gone)];
  },
  "another order of pods": (node, changes, d) => {
    node.pods = shuffled(node.pods, d);
    changes.pods ??= {};
    changes.pods.order = [];
  },
  "a whole list of pods": (node, changes, d) => {
    delete changes.pods;
    node.pods = shuffled(node.pods, d).slice(0, 3 + d.below(9));
    changes.set["pods"] = d.chance(2) ? copy(node.pods) : { kind: "PodList", items: copy(node.pods) };
  },
  "the stats": (node, changes, d) => {
    const patch = { node: { memory: { availableBytes: 1e9 + d.below(1e9), workingSetBytes: d.below(1e9) } } };
    node["stats"] = mergePatch(node["stats"], patch);
    changes.merge["stats"] = mergePatch(changes.merge["stats"], patch);
  },
  "a time": (node, changes, d) => {
    const at = new Date(Date.parse(String(node["observedAt"])) + 10_000 + d.below(1000)).toISOString();
    node["observedAt"] = at;
    changes.set["observedAt"] = at;
  },
  "a member of the configuration": (node, changes, d) => {
    const patch = d.chance(2)
      ? { maxPods: 100 + d.below(100) }
      : { podPidsLimit: d.chance(2) ? null : 500 + d.below(10) };
    node["kubeletConfiguration"] = mergePatch(node["kubeletConfiguration"], patch);
    changes.merge["kubeletConfiguration"] = mergePatch(changes.merge["kubeletConfiguration"], patch);
    // merging two patches loses a null in the later one, so the later patch is assigned
    Object.assign(changes.merge["kubeletConfiguration"] as Json, patch);
  },
  "a field that nobody knows": (node, changes, d) => {
    const patch = { maxPodz: d.below(9) };
    node["kubeletConfiguration"] = mergePatch(node["kubeletConfiguration"], patch);
    changes.merge["kubeletConfiguration"] = { ...(changes.merge["kubeletConfiguration"] as Json), ...patch };
  },
  "a part that is gone": (node, changes, d) => {
    // without `cgroup` a decision is refused
    const part = d.pick(["machine", "cgroup"]);
    delete node[part];
    changes.set[part] = null;
  },
  "parts that are there again": (node, changes) => {
    const { machine, cgroup } = captured();
    Object.assign(node, { machine, cgroup });
    Object.assign(changes.set, { machine, cgroup });
  },
  "a label of the node": (node, changes, d) => {
    const patch = { metadata: { labels: { turn: `t${d.below(5)}` } } };
    node["node"] = mergePatch(node["node"], patch);
    changes.merge["node"] = patch;
  },
  "a container that is gone": (node, changes, d) => {
    if (node.runtime.containers.length < 3) return;
    const [gone] = node.runtime.containers.splice(d.below(node.runtime.containers.length), 1) as [{ id: string }];
    changes.containers ??= {};
    changes.containers.upsert = (changes.containers.upsert ?? []).filter(
      (one) => (one as { id: string }).id !== gone.id,
    );
    if (!fresh.has(gone.id)) changes.containers.remove = [...(changes.containers.remove ?? []), gone.id];
  },
  "a container that is new": (node, changes, d) => {
    const container = { ...copy(d.pick(node.runtime.containers)), id: `c${d.below(1e9)}` };
    node.runtime.containers.push(container);
    changes.containers ??= {};
    changes.containers.upsert = [...(changes.containers.upsert ?? []), container];
    fresh.add(container.id);
  },
  nothing: () => {},
};
/** Keys of entries that the same changes added. */
const fresh = new Set<string>();

function upsert(changes: Changes, pod: Pod): void {
  if ("pods" in changes.set) {
    // the changes contain the whole list
    return;
  }
  changes.pods ??= {};
  const others = (changes.pods.upsert ?? []).filter((one) => uidOf(one as Pod) !== uidOf(pod));
  if (pod.metadata.name.startsWith("new-") && !known.has(pod.metadata.uid)) fresh.add(pod.metadata.uid);
  changes.pods.upsert = [...others, pod];
}
/** Uids of pods in earlier turns. */
const known = new Set<string>();

const ASKS: readonly { readonly kind: Kind; readonly explain?: string; readonly ask?: object }[] = [
  { kind: "cgroups" },
  { kind: "cgroups", explain: "off" },
  { kind: "allocatable" },
  { kind: "eviction" },
  { kind: "image-gc" },
  { kind: "container-gc" },
  {
    kind: "preemption",
    ask: {
      pod: {
        metadata: { name: "p", uid: "p" },
        spec: { priority: 1000, containers: [{ name: "c", resources: { requests: { cpu: "100" } } }] },
      },
    },
  },
];
interface Answer extends Json {
  readonly id: string;
  readonly kind: Kind;
  readonly snapshotId: string;
}
const BODY = ["decision", "reasons", "needs", "next"] as const;
const bodyOf = (answer: Json): Json => Object.fromEntries(BODY.map((name) => [name, answer[name]]));

/** The rows that both histories must contain, and the facts for decisions about the node. */
async function rowsOf(store: Store, node: string) {
  const listed = value(await store.listDecisions({ node, limit: 500 }));
  const rows = listed.items.map(({ id, kind, verdict, reason, decidedAtMs, series }) => ({
    id,
    kind,
    verdict,
    reason,
    decidedAtMs,
    series,
  }));
  const ids = listed.items.flatMap(({ snapshotId, series }) => [snapshotId, series?.lastSnapshotId ?? null]);
  const snapshots = await Promise.all(
    [...new Set(ids)].map(async (id) => (id === null ? null : value(await store.getSnapshot(id))?.body)),
  );
  return [...rows, ...snapshots, value(await store.readFacts(node))];
}

async function post({ app }: Pick<ReturnType<typeof appOver>, "app">, path: string, body: unknown) {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await app.fetch(new Request(`http://localhost${path}`, init));
  return { status: response.status, body: (await response.json()) as Json };
}

test("the stats of nodes that take turns at the same time are not mixed up", async () => {
  const d = draws(4);
  const clock = { ms: Date.parse("2026-11-21T07:00:00Z") };
  const now = () => epochMs(clock.ms);
  const ends: (() => Promise<void>)[] = [];
  const nodeStates = { maxBytes: 1e8, holdMs: 600_000, atEnd: (work: () => Promise<void>) => void ends.push(work) };
  const [ours, theirs] = [appOver({ now, nodeStates }), appOver({ now })];
  const names = ["n1", "n2", "n3", "n4"];
  const bases = new Map<string, string>();
  const snapshotOf = (name: string) => {
    const node = JSON.parse(JSON.stringify(captured()).replaceAll('"n1"', JSON.stringify(name))) as Json;
    const stats = node["stats"] as { node: { memory: Json }; pods: { podRef: Json }[] };
    stats.node.memory["workingSetBytes"] = d.below(1e9);
    // texts of different lengths, some with more bytes than characters
    stats.pods.splice(d.below(stats.pods.length));
    for (const { podRef } of stats.pods) podRef["name"] = d.pick(["p", "ü"]);
    return node;
  };
  for (let turn = 0; turn < 20; turn++) {
    clock.ms += 10_000;
    await Promise.all(
      names.map(async (name) => {
        const whole = snapshotOf(name);
        const base = bases.get(name);
        const from = base === undefined ? { snapshot: whole } : { base, changes: { set: { stats: whole["stats"] } } };
        // stats change no answer of allocatable, so the snapshots of these turns are not written immediately
        const kind = d.chance(5) ? "eviction" : "allocatable";
        const taken = await post(ours, `/v1/nodes/${name}/turns`, { ...from, decisions: [{ kind }] });
        const { body } = await post(theirs, `/v1/decisions/${kind}`, { snapshot: whole });
        expect(taken.status, JSON.stringify(taken.body)).toBe(200);
        expect(taken.body["snapshotId"], JSON.stringify(body)).toBe(body["snapshotId"]);
        bases.set(name, taken.body["snapshotId"] as string);
        if (d.chance(6)) await ours.app.fetch(new Request(`http://localhost/v1/decisions?node=${name}`));
      }),
    );
  }
  for (const end of ends) await end();
  for (const name of names) {
    const [own, whole] = await Promise.all([rowsOf(ours.store, name), rowsOf(theirs.store, name)]);

    expect(own, name).toEqual(whole);
    expect(own.filter((one) => typeof one === "string").length, name).toBeGreaterThan(1);
  }
});

for (const [seed, holdMs] of [
  [1, 0],
  [2, 600_000],
  [3, 600_000],
] as const) {
  test(`random turns are answered and recorded like whole posts (seed ${seed}, held ${holdMs} ms)`, async () => {
    const d = draws(seed);
    const met = new Met();
    for (const form of Object.keys(FORMS)) met.note(form, false);
    for (const name of ["same", "patch", "whole", "refused", "forgotten"]) met.note(name, false);
    const clock = { ms: Date.parse("2026-11-21T07:00:00Z") };
    const now = () => epochMs(clock.ms);
    const ends: (() => Promise<void>)[] = [];
    const nodeStates = { maxBytes: 1e8, holdMs, atEnd: (work: () => Promise<void>) => void ends.push(work) };
    let ours = appOver({ now, nodeStates });
    const theirs = appOver({ now });
    const node = captured();
    let base: string | null = null;
    let isForgotten = false;
    const held = new Map<string, { readonly id: string; readonly body: Json }>();
    for (let turn = 0; turn < 50; turn++) {
      clock.ms += 10_000;
      fresh.clear();
      for (const pod of node.pods) known.add(pod.metadata.uid);
      const changes: Changes = { set: {}, merge: {} };
      if (base !== null) {
        for (let n = d.below(4); n > 0; n--) {
          const form = d.pick(Object.keys(FORMS));
          (FORMS[form] as (typeof FORMS)[string])(node, changes, d);
          met.note(form);
        }
        if ("pods" in changes.set) {
          delete changes.pods;
          changes.set["pods"] = copy(node.pods);
        }
        if (changes.pods?.order !== undefined) changes.pods.order = node.pods.map(uidOf);
        for (const part of Object.keys(changes.set)) delete changes.merge[part];
      }
      const asks = ASKS.filter(() => !d.chance(3));
      const decisions = asks.map((ask) => ({ ...ask, holds: held.get(JSON.stringify(ask))?.id ?? null }));
      if (d.chance(10)) {
        met.note("forgotten");
        isForgotten = true;
        // a restarted server knows only what the history contains
        for (const end of ends.splice(0)) await end();
        ours = appOver({ now, nodeStates, store: ours.store });
      }
      const request: Json = base === null ? { snapshot: node } : { base, changes };
      const taken = await post(ours, "/v1/nodes/n1/turns", { ...request, decisions });
      expect(taken.status, JSON.stringify(taken.body)).toBe(200);
      base = taken.body["snapshotId"] as string;
      for (const [i, ask] of asks.entries()) {
        const own = (taken.body["decisions"] as Answer[])[i] as Answer;
        const { kind, ...rest } = ask;
        const whole = await post(theirs, `/v1/decisions/${kind}`, { snapshot: node, ...rest });
        if (whole.status !== 200) {
          met.note("refused");
          const { code, detail } = whole.body;
          expect(own, `turn ${turn}`).toMatchObject({ kind, problem: { code, detail } });
          continue;
        }
        const key = JSON.stringify(ask);
        const patch = own["patch"] as JsonPatch | undefined;
        met.note(patch === undefined ? "whole" : patch.length === 0 ? "same" : "patch");
        const now = patch === undefined ? bodyOf(own) : patched(held.get(key)?.body, patch);
        const mine = patch === undefined ? now : (now as { value: unknown }).value;
        expect(mine, `turn ${turn}: ${key}`).toEqual(bodyOf(whole.body));
        const { patch: _, holds: __, ...head } = own;
        const { decision, reasons, needs, next, ...wholeHead } = whole.body;
        for (const name of BODY) delete (head as Json)[name];
        const apart: string[] = [];
        // the history contains neither what was left out of a snapshot, nor that this turn is repeated
        if (isForgotten) apart.push("leftOut", "decidedAt");
        for (const name of apart) for (const one of [head as Json, wholeHead]) delete one[name];
        expect(head, `turn ${turn}: ${key}`).toEqual(wholeHead);
        held.set(key, { id: own.id, body: bodyOf(whole.body) });
      }
    }
    expect(met.hardly(1)).toEqual([]);
    for (const end of ends) await end();
    const [own, whole] = await Promise.all([rowsOf(ours.store, "n1"), rowsOf(theirs.store, "n1")]);
    expect(own).toEqual(whole);
    expect(own.length).toBeGreaterThan(50);
  });
}

for (const seed of [6, 7])
  test(`random whole snapshots are answered and recorded the same if they are decided as turns (seed ${seed})`, async () => {
    const d = draws(seed);
    const met = new Met();
    for (const form of Object.keys(FORMS)) met.note(form, false);
    for (const name of ["in a turn", "by itself", "refused", "again"]) met.note(name, false);
    const clock = { ms: Date.parse("2026-11-21T07:00:00Z") };
    const now = () => epochMs(clock.ms);
    const nodeStates = { maxBytes: 1e8, holdMs: 600_000, atEnd: () => {} };
    const bodies = new PostedBodies();
    const postedBodies: PostedBodies = Object.assign(Object.create(bodies), {
      read: (body: Uint8Array, kind: Kind) => {
        const turn = bodies.read(body, kind);
        met.note(turn === null ? "by itself" : "in a turn");
        return turn;
      },
    });
    const ours = appOver({ now, nodeStates, postedBodies });
    const theirs = appOver({ now });
    const node = captured();
    for (let turn = 0; turn < 40; turn++) {
      clock.ms += 10_000;
      fresh.clear();
      for (let n = d.below(4); n > 0; n--) {
        const form = d.pick(Object.keys(FORMS));
        (FORMS[form] as (typeof FORMS)[string])(node, { set: {}, merge: {} }, d);
        met.note(form);
      }
      for (const { kind, ...rest } of ASKS.filter(() => !d.chance(2))) {
        const pods = d.chance(2) ? node.pods : { kind: "PodList", items: node.pods };
        const snapshot = { ...node, pods };
        const own = await post(ours, `/v1/decisions/${kind}`, { snapshot, ...rest });
        const whole = await post(theirs, `/v1/decisions/${kind}`, { snapshot, ...rest });
        const [ownBody, wholeBody] = [own, whole].map(({ body: { requestId: _, ...answer } }) => answer);
        expect([own.status, ownBody], `turn ${turn}: ${kind}`).toEqual([whole.status, wholeBody]);
        met.note("refused", whole.status !== 200);
        met.note("again", "again" in whole.body);
      }
    }
    expect(met.hardly(1)).toEqual([]);
    const [own, whole] = await Promise.all([rowsOf(ours.store, "n1"), rowsOf(theirs.store, "n1")]);
    expect(own).toEqual(whole);
    expect(own.length).toBeGreaterThan(50);
  });
