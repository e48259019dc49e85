import type { SnapshotRow } from "../../../db/rows.ts";
import { snapshotSeen } from "../../http/found.ts";
import { nodeNamed } from "../../http/nodes.ts";
import type { Exchange } from "../../http/route.ts";
import type { Kind } from "../../model/decision.ts";
import { REMEMBERING } from "../../model/kinds.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { isId, readAsk } from "../../service/decision-request.ts";
import { historyProblem, type Problem, problem } from "../../service/problem.ts";
import { passOf, recollect, recollected } from "../../service/remembered.ts";
import { postedSnapshot } from "../../service/replay/parsed.ts";
import type { Fields } from "./assemble.ts";
import type { Remembered } from "./plans.ts";

/** A snapshot of the history. */
export interface StoredBase {
  readonly id: string;
  readonly node: string;
  readonly input: Fields;
}

/** The snapshot of this id, or the newest of the node, if it is of another; null: neither is asked for. Errors: there is none, not the caller's, the history's. */
export async function storedBase(
  exchange: Exchange,
  { snapshot: id, node }: { readonly snapshot: string; readonly node: string },
): Promise<Result<StoredBase | null, Problem>> {
  const { ports } = exchange;
  if (id !== "") {
    if (!isId(id)) return problem("unknown_snapshot", `\`${id.slice(0, 64)}\` is no snapshot's id: 32 hex digits`);
    const stored = await snapshotSeen(exchange, id);
    if (!stored.ok) return stored;
    if (node === "" || node === stored.value.node) return baseOf(stored.value);
  }
  if (node === "") return ok(null);
  const known = await nodeNamed(exchange, node);
  if (!known.ok) return known;
  const latest = await ports.store.latestSnapshot(node);
  if (!latest.ok) return historyProblem(latest.error);
  if (latest.value === null)
    return problem("unknown_snapshot", `of node \`${node.slice(0, 253)}\` no snapshot is stored any more`);
  return baseOf(latest.value);
}

function baseOf(row: SnapshotRow): Result<StoredBase, Problem> {
  const posted = postedSnapshot(row);
  return posted.ok ? ok({ id: row.id, node: row.node, input: posted.value }) : historyProblem(posted.error);
}

/** Reads what the history remembers of the node of a stored snapshot, for the kinds whose answers go on from it. */
export async function rememberedOf(
  { ports }: Exchange,
  node: string,
  snapshot: Snapshot,
): Promise<Result<ReadonlyMap<Kind, Remembered>, Problem>> {
  const known = new Map<Kind, Remembered>();
  for (const kind of REMEMBERING) {
    const recollection = await recollect(ports.store, passOf(kind, node, snapshot));
    if (!recollection.ok) return recollection;
    const asked = readAsk(kind, null);
    if (!asked.ok) continue;
    const request = { kind, snapshot: null, snapshotId: null, explain: "off" as const, ...asked.value };
    const full = recollected(request, { recollection: recollection.value });
    if (full !== null) known.set(kind, { ask: full.ask, facts: full.facts ?? {} });
  }
  return ok(known);
}
