import { HOUR_MS } from "../base/duration.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { NEWEST, PROFILES } from "../profiles/index.ts";
import { fleetOf } from "../service/fleet.ts";
import { DEFAULT_METRICS_NODES, fleetMetrics } from "../service/fleet-metrics.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { WHOLE_MS } from "./agreement.ts";
import { answerOffThread } from "./off-thread.ts";
import { type Exchange, JSON_TYPE, type Route } from "./route.ts";

/** The policy for nodes that report no version, and all policies. */
const POLICY = {
  policyVersion: NEWEST.policyVersion,
  policyVersions: PROFILES.map(({ policyVersion }) => policyVersion),
};

const fresh = (value: unknown): Result<Reply, never> =>
  ok({ status: 200, type: JSON_TYPE, body: JSON.stringify(value), untagged: true });

/** GET /healthz: the process answers. */
export const getHealth = (): Result<Reply, never> => fresh({ status: "ok", ...POLICY });

/** GET /readyz: the history takes writes, and its migrations are applied. */
export async function getReady({ deps }: Exchange): Promise<Result<Reply, Problem>> {
  const ready = await deps.store.ready(deps.now());
  if (!ready.ok) return historyProblem(ready.error);
  return fresh({ status: "ready", migration: ready.value.migration, ...POLICY });
}

/** GET /metrics/nodes: gauges of the nodes that the caller may see. */
const NODE_METRICS: Route = {
  method: "GET",
  path: "/metrics/nodes",
  scope: "read",
  offThread: true,
  handle: async ({ deps, caller }) => {
    const now = deps.now();
    const sinceMs = (Math.floor(now / HOUR_MS) - 1) * HOUR_MS;
    const nodes = await fleetOf(deps.store, now, sinceMs, caller.node ?? undefined);
    if (!nodes.ok) return historyProblem(nodes.error);
    const filter = { sinceMs, ...(caller.node === null ? {} : { node: caller.node }) };
    const outcomes = await deps.store.tallyOutcomes(filter, WHOLE_MS);
    if (!outcomes.ok) return historyProblem(outcomes.error);
    const limit = deps.limits.metricsNodes ?? DEFAULT_METRICS_NODES;
    const body = fleetMetrics(nodes.value, outcomes.value, now, limit);
    return ok({ status: 200, type: METRICS_TYPE, body, untagged: true });
  },
};
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** GET /metrics: metrics of the process and of the nodes; if the history cannot be read, of the process alone. */
async function getMetrics(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { metrics } = exchange.deps;
  const nodes = await answerOffThread(NODE_METRICS, exchange, new URL(NODE_METRICS.path, exchange.c.req.raw.url).href);
  if (!nodes.ok) metrics.historyFailed(nodes.error.code);
  const { type, text } = await metrics.render();
  // from a thread it comes in bytes
  const ofNodes = nodes.ok ? await new Response(nodes.value.body).text() : "";
  return ok({ status: 200, type, body: text + ofNodes, untagged: true });
}

export const METRICS_ROUTES: readonly Route[] = [
  { method: "GET", path: "/metrics", scope: "read", handle: getMetrics },
  NODE_METRICS,
];
