import { createApp } from "../../api/app.ts";
import type { Kind } from "../../api/model/decision.ts";
import { epochMs } from "../../api/model/units.ts";
import { plainMetrics } from "../../api/observe/plain-metrics.ts";
import { evaluator } from "../../api/routes/evaluate.ts";
import { nodeAssets } from "../../api/server/assets.ts";
import { nodeBodies } from "../../api/server/bodies.ts";
import { sha256 } from "../../api/server/digest.ts";
import { once } from "../../db/driver.ts";
import type { Store } from "../../db/store.ts";
import { realSnapshot } from "../decide/real-node.ts";

const START = Date.parse("2026-11-01T00:00:00Z");
const STEP_MS = 10_000;
/** Decided on each snapshot, as a node's daemon does. */
const KINDS: readonly Kind[] = ["cgroups", "allocatable", "eviction", "admission"];
/** Every so many turns a node is not as it was. */
const STEADY_TURNS = 10;
const AT_A_TIME = 32;

/** The captured node, as text. */
const captured = once(() => {
  const snapshot = realSnapshot();
  const { name } = (snapshot["node"] as { metadata: { name: string } }).metadata;
  return { text: JSON.stringify(snapshot), name };
});

/** It `turn` steps after the start: new stats each time, another limit now and then. `NODE` stands for its name. */
function textAt(turn: number): string {
  const { text, name } = captured();
  const observedAt = new Date(START + turn * STEP_MS).toISOString();
  const limit = `${512 + (Math.floor(turn / STEADY_TURNS) % 8)}Mi`;
  const changed = text
    .replace(/("limits":\{(?:"cpu":"[^"]*",)?"memory":)"[^"]*"/, `$1"${limit}"`)
    .replace(/"availableBytes":(\d+)/, (_, bytes: string) => `"availableBytes":${Number(bytes) - turn * 4096}`)
    .replaceAll(`"${name}"`, '"NODE"');
  return `{"observedAt":"${observedAt}","sequence":${turn},${changed.slice(1)}`;
}

const ASK = JSON.stringify({
  pod: {
    metadata: { name: "asks", namespace: "bench", uid: "u-asks" },
    spec: { containers: [{ name: "c", resources: { requests: { cpu: "10m", memory: "16Mi" } } }] },
  },
});

/** Fills a history by posting: `turns` of each of `nodes` nodes, four decisions a turn. Answers how many were recorded. */
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
  const post = async (kind: Kind, snapshot: string): Promise<void> => {
    const body = `{"snapshot":${snapshot}${kind === "admission" ? `,"ask":${ASK}` : ""}}`;
    const headers = { "content-type": "application/json" };
    const response = await app.fetch(
      new Request(`http://bench/v1/decisions/${kind}`, { method: "POST", headers, body }),
    );
    if (response.status !== 200) throw new Error(`${kind}: ${await response.text()}`);
    await response.body?.cancel();
  };
  for (let turn = 0; turn < turns; turn++) {
    now = START + turn * STEP_MS;
    const text = textAt(turn);
    for (let from = 0; from < nodes; from += AT_A_TIME) {
      const some = Array.from({ length: Math.min(AT_A_TIME, nodes - from) }, (_, i) => `bench-${from + i}`);
      await Promise.all(
        some.map(async (node) => {
          const snapshot = text.replaceAll('"NODE"', `"${node}"`);
          for (const kind of KINDS) await post(kind, snapshot);
        }),
      );
    }
  }
  return nodes * turns * KINDS.length;
}
