import { gzipSync, zstdCompressSync } from "node:zlib";
import { SNAPSHOT } from "../../api/documents/kind-examples.ts";
import { LINT, REPLAY, REPLAY_HISTORY, results, UPGRADE, WHY } from "../../api/http/openapi/operation.ts";
import { KINDS, type Kind } from "../../api/model/decision.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { changed, drawn, type Path, places } from "../properties/changes.ts";
import { type Draws, draws } from "../properties/draws.ts";

/** One request as it is sent. */
export interface FuzzRequest {
  readonly method: string;
  /** The path and the query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
}
/** Ids and names in the history with which every run begins. */
export interface Known {
  readonly decisions: readonly string[];
  readonly snapshots: readonly string[];
  readonly nodes: readonly string[];
}

const POD = {
  metadata: { name: "asks", namespace: "default", uid: "u-asks" },
  spec: {
    containers: [
      {
        name: "c",
        resources: { limits: { cpu: "1", memory: "64Mi" } },
        readinessProbe: { httpGet: { path: "/", port: 80 }, periodSeconds: 2 },
      },
    ],
  },
};
const ASKS: { readonly [K in Kind]?: object } = {
  cpus: { pod: POD },
  memory: { pod: POD },
  topology: { pod: POD },
  devices: { pod: POD },
  admission: { pod: POD },
  preemption: { pod: POD },
  probes: { pod: POD, outcomes: [] },
  "image-gc": { operation: "delete-unused" },
  "container-gc": { operation: "garbage-collect" },
};
/** The body of a decision request that is answered, except for `probe-guard`, which is refused without an ask. */
export const decisionOf = (kind: Kind, snapshot: unknown = realSnapshot()) => ({
  snapshot,
  ask: ASKS[kind] ?? null,
  explain: "reasons",
});

interface Base {
  readonly method: "GET" | "POST" | "PUT";
  readonly path: string;
  readonly body?: unknown;
  readonly type?: "json" | "ndjson" | "form";
  readonly query?: Readonly<Record<string, string>>;
}
const RANGE = { since: "2026-01-01T00:00:00Z", until: "2027-01-01T00:00:00Z", limit: "5" };

/**
 * The first part of a turn: the whole snapshot, or the changes since one of the node's snapshots, which may be
 * another's.
 */
const turnFrom = (d: Draws, snapshot: unknown, base: string): object =>
  d.chance(3)
    ? { snapshot }
    : {
        base,
        changes: {
          set: { observedAt: "2026-02-01T00:00:00Z", machine: null },
          merge: { kubeletConfiguration: { maxPods: 5 }, node: { metadata: { labels: { a: "b" } } } },
          pods: { upsert: [POD], remove: [SNAPSHOT.pods[0].metadata.uid], order: ["u-asks"] },
        },
      };

/** A valid request for a random route. */
function base(d: Draws, { decisions, snapshots, nodes }: Known): Base {
  const [decision, snapshotId, node] = [d.pick(decisions), d.pick(snapshots), d.pick(nodes)];
  const kind = d.pick(KINDS);
  const snapshot = d.chance(3) ? realSnapshot() : SNAPSHOT;
  const request = d.chance(5) ? { ...decisionOf(kind), snapshot: undefined, snapshotId } : decisionOf(kind, snapshot);
  const asked = { kind, ask: ASKS[kind] ?? null, explain: "off", holds: d.chance(2) ? decision : null };
  const form = (fields: object) => ({ method: "POST", type: "form", body: fields }) as const;
  const get = (path: string, query: Base["query"] = {}): Base => ({ method: "GET", path, query });
  const reads = [
    get(`/v1/decisions/${decision}`),
    get("/v1/nodes"),
    get(`/v1/nodes/${node}`),
    get(`/v1/nodes/${node}/decisions`, { ...RANGE, kind, verdict: "decided", pod: "default/web" }),
    get(`/v1/nodes/${node}/removals`, { ...RANGE, kind: "image-gc", q: "a" }),
    get(`/v1/nodes/${node}/removals/summary`, { since: RANGE.since }),
    get(`/v1/nodes/${node}/pods/default/web/why`),
    get(`/v1/snapshots/${snapshotId}`),
    get(d.pick(["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/assets/style.css"])),
    get("/", { q: "n", sort: "name", order: "asc" }),
    get(`/decisions/${decision}`),
    get(`/nodes/${node}`, d.chance(2) ? {} : { list: "cgroups" }),
    get(`/nodes/${node}/decisions`, { kind }),
    get("/what-if", { node, change: "maxPods: 5" }),
    get("/replay", { decision }),
    get("/lint", { node }),
    get("/upgrade", { node, to: "1.37" }),
    get("/live", { node }),
  ];
  const writes: readonly Base[] = [
    {
      method: "POST",
      path: "/v1/batch",
      type: "ndjson",
      body: [
        { kind, ...request },
        { kind: d.pick(KINDS), snapshot: SNAPSHOT },
      ],
    },
    { method: "POST", path: "/v1/results", body: results(decision) },
    { method: "POST", path: `/v1/decisions/${decision}/replay`, body: REPLAY },
    { method: "POST", path: "/v1/replay", body: { ...REPLAY_HISTORY, node, kind, limit: 5 } },
    { method: "POST", path: "/v1/lint", body: { ...LINT, snapshot, kubeletArgs: ["--max-pods", "5", "-v=2", "--x"] } },
    {
      method: "POST",
      path: "/v1/upgrade",
      body: { ...UPGRADE, snapshot, kubeletArgs: ["--v"], since: RANGE.since, limit: 5 },
    },
    {
      method: "POST",
      path: "/v1/why",
      body: d.chance(2) ? WHY : { pod: "web", documents: [snapshot, ...WHY.documents] },
    },
    { method: "PUT", path: `/v1/nodes/n1/snapshot`, body: snapshot },
    { method: "POST", path: `/v1/nodes/n1/turns`, body: { ...turnFrom(d, snapshot, snapshotId), decisions: [asked] } },
    { ...form({ node, change: "maxPods: 5", args: "kubelet --max-pods=5 $A" }), path: "/lint" },
    { ...form({ node, to: "1.36", from: "1.37", change: "maxPods: 5" }), path: "/upgrade" },
    { ...form({ node, change: '{"maxPods":5}', as: "patch" }), path: "/what-if" },
    { ...form({ node, change: "maxPods: 5", since: "1h" }), path: "/replay" },
  ];
  if (d.chance(3)) return d.pick(reads);
  return d.chance(2) ? d.pick(writes) : { method: "POST", path: `/v1/decisions/${kind}`, body: request };
}

const TYPES = { json: "application/json", ndjson: "application/x-ndjson", form: "application/x-www-form-urlencoded" };
const ODD_HEADERS: readonly (readonly [string, string])[] = [
  ["content-type", "text/plain"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "multipart/form-data; boundary=x"],
  ["content-type", "multipart/form-data"],
  ["content-encoding", "gzip"],
  ["content-encoding", "zstd"],
  ["content-encoding", "gzip, gzip"],
  ["content-encoding", "br"],
  ["idempotency-key", "k"],
  ["idempotency-key", "x".repeat(300)],
  ["if-none-match", "*"],
  ["if-none-match", 'W/"a", "b'],
  ["accept", "text/html"],
  ["accept", "text/event-stream;q=0"],
  ["accept-encoding", "gzip;q=0, *;q=0"],
  ["authorization", "Bearer nw_x"],
  ["authorization", "Basic %%%"],
  ["x-request-id", "a b"],
  ["x-forwarded-host", "evil.example"],
  ["origin", "null"],
  ["sec-fetch-site", "cross-site"],
  ["range", "bytes=0-1"],
  ["expect", "tea"],
  ["cookie", "a=b"],
  ["x-long", "y".repeat(20_000)],
];
const ODD_TEXTS = [
  "",
  "%00",
  "%ff",
  "..%2f..",
  "a/b",
  "%2e%2e",
  "constructor",
  "__proto__",
  "x".repeat(3000),
  "🦆",
  "-1",
  "1e9",
  "null",
];

/** A value with changes in up to three places. */
function mutated(value: unknown, d: Draws): unknown {
  let changing = value;
  for (let n = d.below(4); n > 0; n--) {
    const all = places(changing);
    if (all.length === 0) return drawn(d);
    const place = d.pick(all);
    const path: Path = d.chance(4) ? place.slice(0, 1 + d.below(4)) : place;
    const other = d.chance(4) ? at(changing, d.pick(all)) : drawn(d);
    changing = changed(changing, path, other);
  }
  return changing;
}
const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key as string], value);

/** Bytes with a part removed, changed, or repeated. */
function spoilt(bytes: Uint8Array, d: Draws): Uint8Array {
  const where = d.below(bytes.length + 1);
  if (d.chance(3)) return bytes.slice(0, where);
  const copy = new Uint8Array(bytes);
  if (d.chance(2))
    return Buffer.concat([copy.slice(0, where), copy.slice(d.below(where + 1), where), copy.slice(where)]);
  for (let n = 1 + d.below(3); n > 0; n--) copy[d.below(copy.length)] = d.below(256);
  return copy;
}

function bytesOf(body: unknown, type: keyof typeof TYPES, d: Draws): Uint8Array {
  if (type === "ndjson")
    return Buffer.from((body as unknown[]).map((line) => JSON.stringify(mutated(line, d))).join("\n"));
  const value = mutated(body, d);
  if (type === "json") return Buffer.from(JSON.stringify(value) ?? "");
  const fields = new URLSearchParams();
  for (const [name, text] of Object.entries((value ?? {}) as object))
    fields.append(name, typeof text === "string" ? text : (JSON.stringify(text) ?? ""));
  return Buffer.from(fields.toString());
}

/** Request `n` of a seed, which is the same at every call and in every run. */
export function requestOf(seed: number, n: number, known: Known): FuzzRequest {
  const d = draws(Math.imul(seed, 0x9e3779b1) + Math.imul(n, 0x85ebca6b));
  const { method, path, body, type = "json", query } = base(d, known);
  const segments = path.split("/");
  if (d.chance(12)) segments[1 + d.below(segments.length - 1)] = d.pick(ODD_TEXTS);
  const asked = Object.entries(query ?? {}).filter(() => !d.chance(3));
  const pairs = asked.map(([name, value]) => `${name}=${d.chance(4) ? d.pick(ODD_TEXTS) : encodeURIComponent(value)}`);
  if (d.chance(25)) pairs.push(d.pick(["", "a", "kind=x&kind=y", "=", "%zz=1"]));
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": TYPES[type] };
  let bytes = body === undefined ? null : bytesOf(body, type, d);
  if (bytes !== null && d.chance(6)) bytes = spoilt(bytes, d);
  if (bytes !== null && d.chance(8)) {
    const isGzip = d.chance(2);
    headers["content-encoding"] = isGzip ? "gzip" : "zstd";
    bytes = isGzip ? gzipSync(bytes) : zstdCompressSync(bytes);
    if (d.chance(2)) bytes = spoilt(bytes, d);
  }
  if (d.chance(6)) {
    const [name, value] = d.pick(ODD_HEADERS);
    headers[name] = value;
  }
  const target = `${encodeURI(segments.join("/")).replaceAll("%25", "%")}${pairs.length === 0 ? "" : `?${pairs.join("&").replaceAll("🦆", "%F0%9F%A6%86")}`}`;
  return {
    method: d.chance(25) ? d.pick(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"]) : method,
    target,
    headers,
    body: bytes,
  };
}
