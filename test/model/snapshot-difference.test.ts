import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { changesBetween, digestingDifference } from "../../api/model/snapshot-difference.ts";
import { CHANGED_BY_ENTRY, type ListChanges, type SnapshotChanges, snapshotChanges } from "../../api/model/turn.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { captured } from "../kit/real-node.ts";
import { type Draws, draws, Met, shuffled } from "../properties/draws.ts";

type Json = Readonly<Record<string, unknown>>;
const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** A direct implementation of RFC 7396. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === "object" && target !== null && !Array.isArray(target);
  const result = new Map(Object.entries(isObject ? target : {}));
  for (const [name, member] of Object.entries(patch)) {
    if (member === null) result.delete(name);
    else result.set(name, merged(result.get(name), member));
  }
  return Object.fromEntries(result);
}
const keyOf = (entry: Json): string => {
  const { uid, annotations } = (entry["metadata"] ?? {}) as { uid?: string; annotations?: Record<string, string> };
  return annotations?.["kubernetes.io/config.mirror"] ?? uid ?? String(entry["id"]);
};
function list(entries: readonly Json[], { upsert = [], remove = [], order }: ListChanges): readonly Json[] {
  const left = entries.filter((entry) => !remove.includes(keyOf(entry)));
  for (const entry of upsert as readonly Json[]) {
    const at = left.findIndex((one) => keyOf(one) === keyOf(entry));
    if (at < 0) left.push(entry);
    else left[at] = entry;
  }
  return order === undefined ? left : order.map((key) => left.find((entry) => keyOf(entry) === key) as Json);
}
/** Replaces a list by the changed one, in the list's posted form. */
function put(posted: unknown, member: string, changes: ListChanges): unknown {
  if (Array.isArray(posted)) return list(posted, changes);
  return { ...(posted as Json), [member]: list(((posted as Json)[member] ?? []) as Json[], changes) };
}
/** A snapshot after its changes. */
function applied(before: Json, { set = {}, merge = {}, pods, containers, images }: SnapshotChanges): Json {
  const parts: Record<string, unknown> = { ...before };
  for (const [part, value] of Object.entries(set)) {
    if (value === null) delete parts[part];
    else parts[part] = value;
  }
  for (const [part, patch] of Object.entries(merge)) parts[part] = merged(parts[part], patch);
  if (pods !== undefined) parts["pods"] = put(parts["pods"], "items", pods);
  for (const [name, changes] of Object.entries({ containers, images })) {
    const runtime = parts["runtime"] as Json;
    if (changes !== undefined) parts["runtime"] = { ...runtime, [name]: put(runtime[name], name, changes) };
  }
  return parts;
}

const drawnPod = (d: Draws, uid: string): Json =>
  pod(uid, {
    metadata: uid.endsWith("0") ? { uid: `m-${uid}`, annotations: { "kubernetes.io/config.mirror": uid } } : { uid },
    spec: { containers: [container("c", undefined, undefined, { image: `i${d.below(3)}` })] },
    status: { phase: d.pick(["Pending", "Running", null]) },
  });
const entry = (d: Draws, id: string): Json => ({ id, size: `${d.below(4)}` });
const stats = (d: Draws): Json => ({
  node: { memory: { usageBytes: d.below(9) }, fs: { capacityBytes: 4 }, ...(d.chance(4) && { cpu: { time: "t" } }) },
  pods: Array.from({ length: 5 }, (_, i) => ({ podRef: { uid: `u${i}` }, memory: { rssBytes: d.chance(9) ? 1 : 2 } })),
});
const node = (d: Draws): Json => ({
  metadata: {
    name: "n1",
    labels: { zone: d.pick(["a", "b"]), long: "x".repeat(200), ...(d.chance(3) && { gpu: "" }) },
  },
  status: {
    capacity: { cpu: `${d.below(2)}` },
    ...(d.chance(9) && { images: null }),
    ...(d.chance(3) && { a: [null] }),
  },
  ...(d.chance(20) && JSON.parse('{"__proto__": {"a": 1}}')),
});
const inForm = (d: Draws, member: string, entries: readonly Json[]): unknown =>
  d.chance(2) ? entries : { ...(member === "items" && { kind: "List" }), [member]: entries };
const keys = (d: Draws, of: string): string[] => Array.from({ length: d.below(9) }, (_, i) => `${of}${i}`);

const PARTS: readonly [string, (d: Draws) => unknown][] = [
  ["observedAt", (d) => `2026-01-0${1 + d.below(9)}T00:00:00Z`],
  ["node", node],
  ["stats", stats],
  ["machine", (d) => ({ cpus: [{ cpu: d.below(3) }], memoryBytes: 4 })],
  ["kubeletConfiguration", (d) => ({ maxPods: d.below(3), evictionHard: { "memory.available": "1Gi" } })],
  [
    "pods",
    (d) =>
      inForm(
        d,
        "items",
        keys(d, "u").map((uid) => drawnPod(d, uid)),
      ),
  ],
  [
    "runtime",
    (d) => ({
      images: inForm(
        d,
        "images",
        keys(d, "i").map((id) => entry(d, id)),
      ),
      ...(d.chance(2) && {
        containers: inForm(
          d,
          "containers",
          keys(d, "c").map((id) => entry(d, id)),
        ),
      }),
      imageFilesystems: { status: { imageFilesystems: [{ usedBytes: { value: `${d.below(9)}` } }] } },
    }),
  ],
];
const snapshotOf = (d: Draws): Json =>
  Object.fromEntries(PARTS.filter(() => !d.chance(6)).map(([name, make]) => [name, make(d)]));

function changedList(d: Draws, posted: unknown, member: string, fresh: (d: Draws, key: string) => Json): unknown {
  if (!Array.isArray(posted))
    return { ...(posted as Json), [member]: changedList(d, (posted as Json)[member], member, fresh) };
  const entries = (posted as readonly Json[]).flatMap((one) =>
    d.chance(7) ? [] : d.chance(5) ? [fresh(d, keyOf(one))] : [d.chance(3) ? copyOf(one) : one],
  );
  if (d.chance(3)) entries.splice(d.chance(2) ? entries.length : 0, 0, fresh(d, `new${d.below(99)}`));
  return d.chance(6) ? shuffled(entries, d) : entries;
}
/** The next snapshot of the same node. */
function next(d: Draws, before: Json): Json {
  const now: Record<string, unknown> = { ...before };
  for (const [name, make] of PARTS) {
    if (d.chance(12)) delete now[name];
    else if (d.chance(5) || !(name in now)) now[name] = make(d);
    else if (name === "pods" && d.chance(2)) now[name] = changedList(d, now[name], "items", drawnPod);
    else if (name === "runtime" && d.chance(2)) {
      const runtime = now[name] as Json;
      const lists = (["images", "containers"] as const).filter((of) => of in runtime && d.chance(2));
      const changed = lists.map((of) => [of, changedList(d, runtime[of], of, entry)] as const);
      now[name] = {
        ...runtime,
        ...Object.fromEntries(changed),
        ...(d.chance(2) && { sandboxImage: `p${d.below(3)}` }),
      };
    } else if (d.chance(3)) now[name] = copyOf(now[name]);
  }
  return now;
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 22);
const SEQUENCES = 800;

test("applying the changes between two snapshots gives the second one, with every form of change", () => {
  const met = new Met();
  const { digestsOf, changesSince } = digestingDifference(digest);
  for (const how of ["whole", "nothing", "set", "gone", "merge", "merge null", "runtime merged beside its lists"])
    met.note(how, false);
  for (const name of CHANGED_BY_ENTRY)
    for (const how of ["upsert", "remove", "order"]) met.note(`${name} ${how}`, false);
  for (let seed = 1; seed <= SEQUENCES; seed++) {
    const d = draws(seed);
    let before = snapshotOf(d);
    for (let step = 0; step < 5; step++) {
      const now = next(d, before);
      const texts = JSON.stringify([before, now]);
      const changes = changesBetween(before, now);
      const byDigest = changesSince(digestsOf(before) as NonNullable<ReturnType<typeof digestsOf>>, now);
      for (const [how, one] of [["values", changes] as const, ["digests", byDigest] as const]) {
        if (one === null) continue;
        const sent = snapshotChanges.parse(copyOf(one));
        expect(JSON.stringify(sorted(applied(before, sent))), `seed ${seed}, step ${step}, ${how}`).toBe(
          JSON.stringify(sorted(now)),
        );
      }
      expect(JSON.stringify([before, now])).toBe(texts);
      expect(byDigest?.merge).toBeUndefined();
      expect(changesBetween(copyOf(before), copyOf(now))).toEqual(changes);
      noteForms(met, changes);
      before = now;
    }
  }
  expect(met.hardly(30)).toEqual([]);
});
function noteForms(met: Met, changes: SnapshotChanges | null): void {
  met.note("whole", changes === null);
  if (changes === null) return;
  met.note("nothing", Object.keys(changes).length === 0);
  for (const value of Object.values(changes.set ?? {})) met.note(value === null ? "gone" : "set");
  for (const patch of Object.values(changes.merge ?? {})) {
    met.note("merge");
    met.note("merge null", JSON.stringify(patch).includes(":null"));
  }
  const { containers, images, merge = {} } = changes;
  met.note("runtime merged beside its lists", merge.runtime !== undefined && (containers ?? images) !== undefined);
  for (const name of CHANGED_BY_ENTRY) for (const how in changes[name]) met.note(`${name} ${how}`);
}
/** The value with each object's members sorted. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return new Map(entries).size === 0 ? {} : entries.map(([name, member]) => [name, sorted(member)]);
};

describe("the changes between two snapshots of a captured node", () => {
  const real = captured("snapshot.json") as Json & { pods: { items: Json[] } };
  const items: Json[] = real.pods.items ?? real.pods;
  const withPods = (pods: readonly unknown[]): Json => ({ ...real, pods });
  const before = withPods(items);

  test("are empty when nothing changed, though every object is a copy", () => {
    expect(changesBetween(before, copyOf(before))).toEqual({});
  });
  test("contain one changed pod alone", () => {
    const changed = { ...items[1], status: { phase: "Failed" } };
    const now = withPods(items.with(1, changed));
    expect(changesBetween(before, now)).toEqual({ pods: { upsert: [changed] } });
    expect(JSON.stringify(changesBetween(before, now)).length * 20).toBeLessThan(JSON.stringify(now).length);
  });
  test.each<readonly [string, readonly unknown[]]>([
    ["a pod without a uid", [...items, { metadata: { name: "a" } }]],
    ["a uid that is no text", [...items, { metadata: { name: "a", uid: 7 } }]],
    ["two pods with one uid", [...items, copyOf(items[0])]],
    ["a pod that is none", [...items, null]],
  ])("are null with %s, so that the snapshot is posted whole", (_, pods) => {
    expect(changesBetween(before, withPods(pods))).toBeNull();
    expect(changesBetween(withPods(pods), before)).toBeNull();
    expect(digestingDifference(digest).digestsOf(withPods(pods))).toBeNull();
  });
  test("are null when the pods come in another form of list", () => {
    const asList = { ...real, pods: { kind: "List", items } };
    expect(changesBetween(before, asList)).toBeNull();
    expect(changesBetween(asList, { ...real, pods: { kind: "List", metadata: { continue: "x" }, items } })).toBeNull();
    expect(changesBetween(asList, { ...real, pods: { kind: "List", items: [...items] } })).toEqual({});
  });
  test("are null when more than half of the snapshot is new", () => {
    const anew = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (_, member: unknown) => (typeof member === "string" ? `${member}x` : member)));
    expect(changesBetween(before, anew(before))).toBeNull();
    expect(changesBetween(before, null)).toBeNull();
  });
  test("set a part whole when a value became null, which a merge patch would remove", () => {
    const node = real["node"] as Json;
    const now = { ...real, node: { ...node, metadata: { ...(node["metadata"] as Json), labels: null } } };
    expect(changesBetween(real, now)).toEqual({ set: { node: now.node } });
    expect(changesBetween(now, real)?.merge).toEqual({
      node: { metadata: { labels: (node["metadata"] as Json)["labels"] } },
    });
  });
  test("leave out a field that snapshots do not have", () => {
    expect(changesBetween(before, { ...before, note: "n" })).toEqual({});
  });
});
