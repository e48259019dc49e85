import type { StoreBindings } from "../../db/open/worker.ts";
import { DAY_MS } from "../base/duration.ts";
import { DEFAULT_RETENTION, type Retention } from "../retention.ts";

/** The bindings of wrangler.toml, its variables and its secrets. */
export interface WorkerEnv extends StoreBindings {
  /** sha256 (hex) of an administrator's token, set with `wrangler secret put`: for access before the history has a token. */
  readonly NODEWISE_TOKEN_SHA256?: string;
  /** Days after which history is removed, and decisions kept per node. Defaults: 30 and 10000. */
  readonly NODEWISE_KEEP_DAYS?: string | number;
  readonly NODEWISE_KEEP_DECISIONS?: string | number;
  /** The most statements of one sweep: an invocation may run 1,000, on the free plan 50. Default: 900. */
  readonly NODEWISE_SWEEP_STATEMENTS?: string | number;
  /** Seconds that repeated decisions may wait in the node's object before they are counted. Default: 0. */
  readonly NODEWISE_HOLD_SECONDS?: string | number;
}

/** A variable of wrangler.toml. Throws if it is no number, so that nothing is removed by a guess. */
export function numberIn(
  env: WorkerEnv,
  name: Exclude<keyof WorkerEnv, keyof StoreBindings>,
  least: number,
  fallback: number,
): number {
  const value = env[name] === undefined ? fallback : Number(env[name]);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`${name}: \`${env[name]}\` is not a whole number from ${least} on; correct it in wrangler.toml`);
}

/** How long history is kept. Throws like `numberIn`. */
export const retentionIn = (env: WorkerEnv): Retention => ({
  ...DEFAULT_RETENTION,
  maxAgeMs: numberIn(env, "NODEWISE_KEEP_DAYS", 1, DEFAULT_RETENTION.maxAgeMs / DAY_MS) * DAY_MS,
  maxRowsPerNode: numberIn(env, "NODEWISE_KEEP_DECISIONS", 1, DEFAULT_RETENTION.maxRowsPerNode),
});
