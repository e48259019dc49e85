import { expect, test } from "vitest";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { PostedBodies } from "../../api/server/posted-bodies.ts";
import { decodeShared } from "../../api/service/node-turn/shared-parts.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { draws, Met, shuffled } from "../properties/draws.ts";

type Json = Record<string, unknown>;
interface Posted extends Json {
  pods: (Json & { metadata: Json; status: Json })[];
}
const captured = (): Posted => {
  const { pods, ...rest } = structuredClone(realSnapshot()) as unknown as Json & { pods: { items: Posted["pods"] } };
  return { ...rest, pods: pods.items };
};
const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
function inputOf(bodies: PostedBodies, text: string): Snapshot | null {
  const turn = bodies.read(bytesOf(text), "cgroups");
  if (turn === null) return null;
  const { from } = turn.request;
  if (!("input" in from)) throw new Error("the turn has no decoded input");
  return from.input.snapshot;
}
/** Bodies that the captured node was posted to twice, and its text. */
function posted(): { readonly bodies: PostedBodies; readonly text: string; readonly last: Snapshot } {
  const bodies = new PostedBodies();
  const text = JSON.stringify({ snapshot: captured() });
  expect(inputOf(bodies, text)).toBeNull();
  const last = inputOf(bodies, text);
  if (last === null) throw new Error("the second body is not a turn");
  return { bodies, text, last };
}

test("a snapshot that is posted again is decoded like any other, and pods with the same text are the same objects", () => {
  const d = draws(11);
  const met = new Met();
  const { bodies, last } = posted();
  const node = captured();
  const change: Readonly<Record<string, () => void>> = {
    nothing: () => {},
    "a pod's status": () =>
      Object.assign(d.pick(node.pods).status, { startTime: `2026-11-21T06:24:${10 + d.below(50)}Z` }),
    "a pod's label with other characters": () =>
      Object.assign(d.pick(node.pods).metadata, { annotations: { text: `ü"}]{\\ ${d.below(100)}` } }),
    "a pod less": () => node.pods.length > 4 && node.pods.splice(d.below(node.pods.length), 1),
    "a pod more": () => {
      const pod = structuredClone(d.pick(node.pods));
      Object.assign(pod.metadata, { name: `new-${d.below(1e9)}`, uid: `u${d.below(1e9)}`, annotations: {} });
      pod.status = { phase: "Pending" };
      node.pods.splice(d.below(node.pods.length), 0, pod);
    },
    "another order": () => node.pods.splice(0, node.pods.length, ...shuffled(node.pods, d)),
    "a counter": () => Object.assign(node, { sequence: d.below(1e9) }),
  };
  let before: Snapshot = last;
  for (let i = 0; i < 80; i++) {
    const name = d.pick(Object.keys(change));
    change[name]?.();
    const pods = d.chance(2) ? node.pods : { kind: "PodList", items: node.pods };
    const indent = d.chance(8) ? 4 : 0;
    const text = JSON.stringify({ explain: "off", snapshot: { ...node, pods } }, null, indent);
    const decoded = decodeShared(JSON.parse(JSON.stringify(node)), "snapshot");
    const read = inputOf(bodies, text);
    expect(read, name).toEqual(decoded.ok ? decoded.value : null);
    if (read === null) continue;
    const known = new Set(before.pods);
    const same = read.pods?.filter((pod) => known.has(pod)).length ?? 0;
    met.note(`${name}, all pods known`, same === read.pods?.length);
    met.note(`${name}, some pods known`, same > 0 && same < (read.pods?.length ?? 0));
    before = read;
  }
  for (const name of ["nothing, all", "a counter, all", "a pod less, all", "a pod's status, some", "a pod more, some"])
    expect(met.counts[`${name} pods known`], name).toBeGreaterThan(2);
});

test("a changed pod is decoded, and all others are the objects of the body before", () => {
  const { bodies, text, last } = posted();
  const node = captured();
  Object.assign(node.pods[3]?.status ?? {}, { startTime: "2026-11-21T07:00:00Z" });
  for (const body of [JSON.stringify({ snapshot: node }), text]) {
    const read = inputOf(bodies, body);
    expect(read?.pods?.map((pod, i) => pod === last.pods?.[i])).toEqual(last.pods?.map((_, i) => i !== 3));
  }
});

const pod = (): string => JSON.stringify(captured().pods[2]);
for (const [name, altered] of [
  ["a number among the pods", (text: string) => text.replace('"pods":[', '"pods":[7,')],
  [
    "a number that is that of a pod",
    (text: string) => text.replace('"pods":[', '"pods":[0,').replace(JSON.stringify(captured().pods[0]), ""),
  ],
  ["a pod's text in the ask", (text: string) => text.replace("{", `{"ask":${pod()},`)],
  ["a pod's text in a string", (text: string) => text.replace("{", `{"ask":"${pod()}",`)],
  ["digits around a pod's text", (text: string) => text.replace(pod(), `1${pod()}`)],
  [
    "the pods twice",
    (text: string) => text.replace('"pods":[', '"pods":[],"pods":[').replace(/\}\]\}\}$/, '}],"pods":[]}}'),
  ],
  ["an end that is missing", (text: string) => text.slice(0, -1)],
  ["a pod twice", (text: string) => text.replace(pod(), `${pod()},${pod()}`)],
  ["bytes that are not UTF-8", (text: string) => text.replace('"n1"', '"n1\u{fffd}"')],
  ["a snapshot without a node", (text: string) => text.replace('"node":{', '"nod":{')],
] as const)
  test(`a body with ${name} is left to be decided by itself`, () => {
    const { bodies, text } = posted();
    const body = altered(text);
    expect(body).not.toBe(text);
    const bytes = bytesOf(body);
    const at = Buffer.from(bytes).indexOf("\u{fffd}");
    if (at >= 0) bytes[at] = 0xff;
    expect(bodies.read(bytes, "cgroups")).toBeNull();
    // the next body without a fault is read
    expect(bodies.read(bytesOf(text), "cgroups")).not.toBeNull();
  });

test("a body of which more than a mebibyte is new is decided in a thread", () => {
  const { bodies, text } = posted();
  const isNull = [900_000, 1_100_000].map((length) => {
    const body = text + " ".repeat(length);
    return bodies.read(bytesOf(body), "cgroups") === null;
  });
  expect(isNull).toEqual([false, true]);
});

test("small bodies, bodies without a node's name and other nodes' first bodies are decided by themselves", () => {
  const { bodies, text } = posted();
  expect(bodies.read(bytesOf(text.slice(0, 1000)), "cgroups")).toBeNull();
  expect(bodies.read(bytesOf(text.replaceAll('"nodeName"', '"nodename"')), "cgroups")).toBeNull();
  expect(bodies.read(bytesOf(text.replaceAll('"n1"', '"n2"')), "cgroups")).toBeNull();
  expect(bodies.read(bytesOf(text), "cgroups")?.node).toBe("n1");
});
