import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { DecisionAnswer, Problem } from "../../actuator/core/interfaces.ts";
import type { Kind } from "../../api/model/decision.ts";
import { ended, printed, start } from "../cli/run.ts";
import { container } from "../kit/containers.ts";
import { podManifest } from "../kit/manifests.ts";
import { captured } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { freePort } from "./pods/port.ts";

/** Decisions of a node that runs pods. The API is another process, which is stopped and started again. */
let dir: string;
let api: ReturnType<typeof start> | undefined;
let url: string;
const startApi = async (port: string): Promise<void> => {
  api = start(["api", "--port", port], { env: { NODEWISE_DATA_DIR: join(dir, "history") } });
  url = (await printed(api, /\n/)).trim();
};
const stopApi = async (signal: NodeJS.Signals): Promise<void> => {
  if (api === undefined) return;
  const end = ended(api);
  api.kill(signal);
  await end;
  api = undefined;
};
beforeEach(() => {
  dir = scratchFolder();
});
afterEach(() => stopApi("SIGKILL"));

const recorded = captured("snapshot.json");
const START = Date.parse(recorded.observedAt);
/**
 * The node some seconds later. The decision of every pass differs, because the history only counts an unchanged
 * decision.
 */
const after = (seconds: number) => ({
  ...recorded,
  kubeletConfiguration: { ...recorded.kubeletConfiguration, podPidsLimit: 1000 + seconds },
  observedAt: new Date(START + seconds * 1000).toISOString(),
  stats: { ...recorded.stats, node: { ...recorded.stats?.node } },
});
const pod = (name: string) =>
  podManifest(name, {
    metadata: { namespace: "shop", uid: `u-${name}` },
    spec: { containers: [container("c", { cpu: "10m" }, undefined, { image: "i" })] },
  });
const report = (seconds: number, name: string) => ({
  at: new Date(START + seconds * 1000).toISOString(),
  dryRun: false,
  complete: true,
  results: [{ status: "applied", op: "admit", pod: name }],
});

/** Opens the client of one daemon run; opening a new client on the same directory is a restart of the daemon. */
function openClient() {
  const problems: Problem[] = [];
  const state = join(dir, "state");
  const outbox = Outbox.open(join(state, "outbox.jsonl"));
  const memory = new FactsStore(state, (message) => problems.push({ from: "memory", message }));
  const access = { url, token: undefined, timeoutMs: 60_000, fetch };
  const client = new ApiClient(access, outbox, memory, (problem) => problems.push(problem));
  const decide = async (kind: Kind, snapshot: unknown, ask?: object): Promise<DecisionAnswer> => {
    const answer = await client.decide(kind, snapshot, ask);
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value;
  };
  /** A turn: a pass over the cgroups, the admission of a pod, and an eviction check. */
  const turn = async (seconds: number, name: string): Promise<readonly (readonly [Kind, string])[]> => {
    const snapshot = after(seconds);
    const cgroups = await decide("cgroups", snapshot);
    await client.report(report(seconds, ""), cgroups);
    const admission = await decide("admission", snapshot, { pod: pod(name) });
    await client.report(report(seconds, name), admission);
    const eviction = await decide("eviction", snapshot);
    await client.commit(eviction);
    return [
      ["cgroups", cgroups.decidedBy],
      ["admission", admission.decidedBy],
      ["eviction", eviction.decidedBy],
    ];
  };
  return { outbox, problems, turn };
}
const bothWays = (by: string) => [
  ["cgroups", by],
  ["admission", by],
  ["eviction", by],
];

interface Row {
  readonly id: string;
  readonly kind: Kind;
  readonly at: string;
}
/** How often the history has each decision and each report. */
async function history() {
  const { node } = recorded;
  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${url}${path}`)).json()) as T;
  const { decisions } = await get<{ decisions: readonly Row[] }>(`/v1/nodes/${node.metadata.name}/decisions?limit=200`);
  const results = await Promise.all(
    decisions.map(async ({ id, kind }) => {
      const { results } = await get<{ results: readonly object[] }>(`/v1/decisions/${id}`);
      return [kind, results.length] as const;
    }),
  );
  const count = (kind: Kind): number => decisions.filter((one) => one.kind === kind).length;
  return {
    counts: { cgroups: count("cgroups"), admission: count("admission"), eviction: count("eviction") },
    ids: new Set(decisions.map(({ id }) => id)).size,
    reports: results.filter(([kind]) => kind !== "eviction").map(([, reports]) => reports),
  };
}

test("the node decides while the API is unreachable, and the API later knows every decision once", async () => {
  // a port that no other program gets while the API is away
  const port = String(await freePort());
  await startApi(port);
  const first = openClient();
  expect(await first.turn(0, "a")).toEqual(bothWays("api"));
  await stopApi("SIGKILL");
  expect(await first.turn(10, "b")).toEqual(bothWays("here"));
  expect(first.outbox.size).toBe(3);
  // the daemon dies too, and starts again before the API
  const second = openClient();
  expect(await second.turn(20, "c")).toEqual(bothWays("here"));
  expect(second.outbox.size).toBe(6);
  await startApi(port);
  expect(await second.turn(30, "d")).toEqual(bothWays("api"));
  expect(second.outbox.size).toBe(0);
  const known = await history();
  expect(known.counts).toEqual({ cgroups: 4, admission: 4, eviction: 4 });
  expect(known.ids).toBe(12);
  expect(known.reports).toEqual(Array(8).fill(1));
  expect(second.problems.filter(({ message }) => !/deciding here$/.test(message))).toEqual([]);
});
