import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { NEWEST, PROFILES } from "../profiles/index.ts";
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

/** GET /metrics */
export async function getMetrics({ ports }: Exchange): Promise<Result<Reply, Problem>> {
  const { type, text } = await ports.metrics.render();
  return ok({ status: 200, type, body: text, untagged: true });
}
