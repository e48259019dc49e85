import { readFileSync } from "node:fs";
import { createApp } from "../../api/app.ts";
import { epochMs } from "../../api/model/units.ts";
import { plainMetrics } from "../../api/observe/plain-metrics.ts";
import { nodeAssets, nodeBodies } from "../../api/server/assets.ts";
import { sha256 } from "../../api/server/digest.ts";
import { evaluator } from "../../api/service/evaluate.ts";
import { openNode } from "../../db/sqlite/node/open.ts";

const s = openNode({ file: ":memory:" });
if (!s.ok) throw s.error;
const app = createApp({
  store: s.value,
  now: () => epochMs(Date.now()),
  log: { info() {}, warn() {}, error() {} },
  metrics: plainMetrics(),
  bodies: nodeBodies,
  evaluate: evaluator(sha256),
  sha256,
  auth: { required: false, hosts: null },
  limits: { bodyBytes: 8 << 20, concurrency: 64 },
  recordDecisions: true,
  assets: nodeAssets(),
  nodeStates: { maxBytes: 1e9, holdMs: 600000, atEnd() {} },
});
const { snapshot } = JSON.parse(readFileSync("/tmp/t23/110.json", "utf8"));
const mode = process.argv[2];
let base: string | undefined,
  holds: string | undefined,
  k = 0;
const post = async (path: string, body: unknown) => {
  const r = await app.fetch(
    new Request("http://localhost" + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
  const t = await r.text();
  if (r.status !== 200) throw new Error(t);
  return JSON.parse(t);
};
async function turn(i: number) {
  const decisions = [{ kind: "cgroups", explain: "off", ...(holds ? { holds } : {}) }];
  let body: any = { snapshot, decisions };
  if (base) {
    const changes: any = {};
    const p = snapshot.pods[i % 110];
    if (mode === "status") {
      p.status.containerStatuses[0].restartCount = k++;
      changes.pods = { upsert: [p] };
    }
    if (mode === "resources") {
      p.spec.containers[0].resources = {
        requests: { cpu: "10m", memory: "64Mi" },
        limits: { memory: String(1e8 + k++) },
      };
      changes.pods = { upsert: [p] };
    }
    if (mode === "stats") {
      snapshot.stats.node.memory.workingSetBytes = 1e8 + k++;
      changes.set = { stats: snapshot.stats };
    }
    body = { base, changes, decisions };
  }
  const a = await post(`/v1/nodes/${snapshot.node.metadata.name}/turns`, body);
  base = a.snapshotId;
  holds = a.decisions[0].id;
}
for (let i = 0; i < 200; i++) await turn(i);
const t = process.cpuUsage();
const n = 2000;
for (let i = 0; i < n; i++) await turn(i);
const c = process.cpuUsage(t);
console.log(mode, (c.user + c.system) / n, "us");
