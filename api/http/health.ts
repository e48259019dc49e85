import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { NEWEST, PROFILES } from "../profiles/index.ts";
import { fleetOf } from "../service/fleet.ts";
import { DEFAULT_METRICS_NODES, fleetMetrics } from "../service/fleet-metrics.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { type Exchange, JSON_TYPE } from "./route.ts";

/** That of decisions about nodes that tell no version, and all that there are. */
const POLICY = {
  policyVersion: NEWEST.policyVersion,
  policyVersions: PROFILES.map(({ policyVersion }) => policyVersion),
};

const fresh = (value: unknown): Result<Reply, never> =>
  ok({ status: 200, type: JSON_TYPE, body: JSON.stringify(value), untagged: true });

/** GET /healthz: the process answers. */
export const getHealth = (): Result<Reply, never> => fresh({ status: "ok", ...POLICY });

/** GET /readyz: the history takes writes, and its migrations are applied. */
export async function getReady({ ports }: Exchange): Promise<Result<Reply, Problem>> {
  const ready = await ports.store.ready(ports.now());
  if (!ready.ok) return historyProblem(ready.error);
  return fresh({ status: "ready", migration: ready.value.migration, ...POLICY });
}

const HOUR_MS = 3_600_000;

/** GET /metrics: of the process, and of the nodes that the caller may see. The history's own failures are told in any case. */
export async function getMetrics({ ports, caller }: Exchange): Promise<Result<Reply, never>> {
  const now = ports.now();
  const nodes = await fleetOf(ports.store, now, now - HOUR_MS, caller.node ?? undefined);
  if (!nodes.ok) ports.metrics.historyFailed(nodes.error.code);
  const { type, text } = await ports.metrics.render();
  const { metricsNodes = DEFAULT_METRICS_NODES } = ports.limits;
  const body = nodes.ok ? `${text}${fleetMetrics(nodes.value, now, metricsNodes)}` : text;
  return ok({ status: 200, type, body, untagged: true });
}
