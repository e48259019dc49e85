import { decodeSnapshot } from "../../model/decode.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import { nodeNamed } from "../../routes/nodes.ts";
import type { Problem } from "../../routes/problem.ts";
import type { Exchange } from "../../routes/route.ts";

/** What the history knows of a node that its configuration is held against. */
export interface AboutNode {
  /** Without its configuration; undefined: there is none that can be read. */
  readonly snapshot: Snapshot | undefined;
  /** As it was recorded; null: the snapshot holds none. */
  readonly configuration: unknown;
  /** What is not known, in words; null: nothing is lacking. */
  readonly lacks: string | null;
}

/** The node's newest snapshot. Errors: there is no such node, not the caller's, the history's. */
export async function aboutNode(exchange: Exchange, name: string): Promise<Result<AboutNode, Problem>> {
  const found = await nodeNamed(exchange, name);
  if (!found.ok) return found;
  const latest = await exchange.ports.store.latestSnapshot(name);
  const nothing = { snapshot: undefined, configuration: null };
  if (!latest.ok && latest.error.isRow === true)
    return ok({ ...nothing, lacks: `the newest snapshot of node \`${name}\` is damaged` });
  if (!latest.ok) return historyProblem(latest.error);
  if (latest.value === null) {
    const { lastSnapshotId } = found.value;
    const why = lastSnapshotId === null ? "no snapshot was posted yet" : "the newest snapshot is no longer stored";
    return ok({ ...nothing, lacks: `of node \`${name}\` ${why}` });
  }
  const { kubeletConfiguration = null, ...rest } = bodyOf(latest.value.body);
  const decoded = decodeSnapshot(rest);
  if (!decoded.ok)
    return ok({ ...nothing, lacks: `the newest snapshot of node \`${name}\` cannot be read by this version` });
  return ok({ snapshot: decoded.value, configuration: kubeletConfiguration, lacks: null });
}

function bodyOf(text: string): { readonly kubeletConfiguration?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as { readonly kubeletConfiguration?: unknown };
  } catch {
    return {};
  }
}
