import { createApp } from "../../api/app.ts";
import type { Kind } from "../../api/model/decision.ts";
import { epochMs } from "../../api/model/units.ts";
import { plainMetrics } from "../../api/observe/plain-metrics.ts";
import { nodeAssets, nodeBodies } from "../../api/server/assets.ts";
import { sha256 } from "../../api/server/digest.ts";
import { evaluator } from "../../api/service/evaluate.ts";
import { once } from "../../db/sql/driver.ts";
import type { Store } from "../../db/store.ts";
import { pod } from "../kit/pods.ts";
import { captured, realSnapshot } from "../kit/real-node.ts";

const START = Date.parse("2026-11-01T00:00:00Z");
const STEP_MS = 10_000;
/** The kinds decided on each snapshot, as a node's daemon does. */
const EACH_TURN: readonly Kind[] = ["cgroups", "allocatable", "eviction"];
/** In addition, one of these kinds is decided in each turn, in rotation. */
const IN_TURN: readonly Kind[] = [
  "admission",
  "image-gc",
  "topology",
  "container-gc",
  "cpus",
  "probes",
  "memory",
  "probe-guard",
  "devices",
  "preemption",
  "resize",
];
export const KINDS_A_TURN = EACH_TURN.length + 1;
/** The pods of a node change after this many turns. */
const STEADY_TURNS = 10;
const AT_A_TIME = 32;
const GPU = "example.com/gpu";

/**
 * The captured node with its runtime and some devices, as text. `NODE` stands for its name and `MINE` for the start of
 * its pods' uids. Pods that a resource manager's state file lists under a checksum keep their uids.
 */
const template = once(() => {
  const { assignments, ...rest } = realSnapshot();
  const { allocated_pods_state: _, ...files } = assignments as Readonly<Record<string, string>>;
  const runtime = {
    images: captured("images.json"),
    containers: captured("containers.json"),
    sandboxes: captured("sandboxes.json"),
    imageFilesystems: captured("imagefs.json"),
  };
  const devices = Array.from({ length: 8 }, (_, i) => ({ resource: GPU, id: `gpu-${i}`, numaNodes: [0] }));
  let text = JSON.stringify({ ...rest, runtime, devices, assignments: files });
  for (const { metadata } of captured("pods.json").items) {
    const { uid } = metadata;
    const isOwn = !Object.values(files).some((file) => file.includes(uid));
    if (isOwn) text = text.replaceAll(uid, `MINE${uid.slice(4)}`);
  }
  return text.replaceAll(`"${captured("node.json").metadata.name}"`, '"NODE"');
});

/** Node `n`, `turn` steps after the start: new stats in each turn, and a changed limit now and then. */
function textAt(turn: number, n: number): string {
  const atMs = START + turn * STEP_MS;
  const limit = `${512 + (Math.floor((turn + n) / STEADY_TURNS) % 8)}Mi`;
  const changed = template()
    .replace(/("limits":\{(?:"cpu":"[^"]*",)?"memory":)"[^"]*"/, `$1"${limit}"`)
    .replace(/"availableBytes":(\d+)/, (_, bytes: string) => `"availableBytes":${Number(bytes) - turn * 4096}`)
    .replace(/"timestamp":"\d+"/, `"timestamp":"${atMs}000000"`)
    .replaceAll('"NODE"', `"bench-${n}"`)
    .replaceAll("MINE", n.toString(16).padStart(4, "0"));
  return `{"observedAt":"${new Date(atMs).toISOString()}","sequence":${turn},${changed.slice(1)}`;
}

const resources = { requests: { cpu: "10m", memory: "16Mi" } };
const askingPod = (turn: number, more: object) =>
  pod(`asks-${turn}`, { metadata: { namespace: "bench" }, spec: { containers: [{ name: "c", resources, ...more }] } });
const failedOf = (n: number) => ({ containerId: `c-${n}`, container: `bench/pod-${n}/c`, group: `g-${n}` });

/** The question of a kind in this turn. */
function askOf(kind: Kind, turn: number): object | undefined {
  if (kind === "probe-guard") {
    const guard = { windowSeconds: 60, least: { groups: 3 }, holdSeconds: 300 };
    return { guard, groups: 11, failed: Array.from({ length: turn % 5 }, (_, n) => failedOf(n)) };
  }
  if (kind === "probes") {
    const livenessProbe = { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 5 };
    return { pod: askingPod(turn, { livenessProbe }), outcomes: `ok,ok,fail*${1 + (turn % 4)},ok`, seconds: 60 };
  }
  if (kind === "devices") return { pod: askingPod(turn, { resources: { limits: { [GPU]: "2" } } }) };
  if (kind === "resize") return { pod: "default/burst-nolim", to: { cpu: `${30 + 10 * (turn % 5)}m` } };
  return kind.endsWith("-gc") || EACH_TURN.includes(kind) ? undefined : { pod: askingPod(turn, {}) };
}

/**
 * Fills a history by posting `turns` turns of each of `nodes` nodes, with four decisions per turn. Returns the number
 * of recorded decisions.
 */
export async function postHistory(store: Store, nodes: number, turns: number): Promise<number> {
  let now = START;
  const silent = { info() {}, warn() {}, error() {} };
  const app = createApp({
    store,
    now: () => epochMs(now),
    log: silent,
    metrics: plainMetrics(),
    bodies: nodeBodies,
    evaluate: evaluator(sha256),
    sha256,
    auth: { required: false, hosts: null },
    limits: { bodyBytes: 8 * 1024 * 1024, concurrency: 1024 },
    recordDecisions: true,
    assets: nodeAssets(),
  });
  const post = async (kind: Kind, snapshot: string, turn: number): Promise<void> => {
    const ask = askOf(kind, turn);
    const body = `{"snapshot":${snapshot}${ask === undefined ? "" : `,"ask":${JSON.stringify(ask)}`}}`;
    const headers = { "content-type": "application/json" };
    const response = await app.fetch(
      new Request(`http://bench/v1/decisions/${kind}`, { method: "POST", headers, body }),
    );
    if (response.status !== 200) throw new Error(`${kind}: ${await response.text()}`);
    await response.body?.cancel();
  };
  const turnOf = async (turn: number, n: number): Promise<void> => {
    const snapshot = textAt(turn, n);
    for (const kind of EACH_TURN) await post(kind, snapshot, turn);
    await post(IN_TURN[(turn + n) % IN_TURN.length] as Kind, snapshot, turn);
  };
  for (let turn = 0; turn < turns; turn++) {
    now = START + turn * STEP_MS;
    for (let from = 0; from < nodes; from += AT_A_TIME) {
      const some = Array.from({ length: Math.min(AT_A_TIME, nodes - from) }, (_, i) => turnOf(turn, from + i));
      await Promise.all(some);
    }
  }
  return nodes * turns * KINDS_A_TURN;
}
