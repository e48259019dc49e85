import type { NodeRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { nearNames } from "../base/near-name.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { idsOf, NO_NODE } from "../service/canonical.ts";
import { evaluateSnapshot } from "../service/evaluate.ts";
import { historyProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { snapshotRow } from "../service/recording.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { requireNode } from "./auth/authorize.ts";
import { readJsonBody } from "./body.ts";
import { spliced } from "./decide.ts";
import { type Exchange, json, jsonText, param, queryOf, snapshotSeen } from "./route.ts";

/** The node that the path names, when the caller may see it. */
export const findNode = (exchange: Exchange): Promise<Result<NodeRow, Problem>> =>
  nodeNamed(exchange, param(exchange, "node"));

/** The node of this name, when the caller may see it. */
export async function nodeNamed(exchange: Exchange, name: string): Promise<Result<NodeRow, Problem>> {
  const allowed = requireNode(exchange.caller, name);
  if (!allowed.ok) return allowed;
  const found = await exchange.deps.store.getNode(name);
  if (!found.ok) return historyProblem(found.error);
  return found.value === null ? unknownNode(exchange, name) : ok(found.value);
}

/** The problem of an unknown node, with similar names that the caller may see. */
export async function unknownNode({ deps, caller }: Exchange, name: string): Promise<Result<never, Problem>> {
  const near = caller.node === null ? await nearNodes(deps.store, name) : [];
  const meant = near.length === 0 ? "" : `; there ${near.length === 1 ? "is" : "are"} ${near.join(", ")}`;
  return problem("unknown_node", `there is no node \`${name.slice(0, 253)}\`${meant}`, { near });
}

/** The number of names before and after an unknown name among which similar ones are searched, since a fleet may be large. */
const BESIDE = 250;

/** Similar node names; none if the history cannot be read. */
export async function nearNodes(store: Pick<Store, "listNodes">, name: string): Promise<readonly string[]> {
  const [before, after] = await Promise.all([
    store.listNodes({ before: name, limit: BESIDE }),
    store.listNodes({ after: name, limit: BESIDE }),
  ]);
  const rows = [...(before.ok ? before.value : []), ...(after.ok ? after.value : [])];
  return nearNames(
    name,
    rows.map((row) => row.name),
  );
}

/** PUT /v1/nodes/{node}/snapshot */
export async function putSnapshot(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, caller, signal } = exchange;
  const node = param(exchange, "node");
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const allowed = requireNode(caller, node);
  if (!allowed.ok) return allowed;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const ids = deps.ids ?? idsOf(deps.sha256);
  const decoded = await (deps.offThread?.snapshot(bytes.value, signal) ?? evaluateSnapshot(bytes.value, ids));
  if (!decoded.ok) return decoded;
  const snapshot = decoded.value;
  if (snapshot.node !== node) {
    const found = snapshot.node === NO_NODE ? "found none" : `found \`${snapshot.node.slice(0, 253)}\``;
    return invalid(
      "node.metadata.name",
      `must be \`${node.slice(0, 253)}\` as in the path, ${found}; post the NodeSnapshot itself`,
    );
  }
  const stored = await deps.store.putSnapshot(snapshotRow(snapshot, deps.now()));
  if (!stored.ok) {
    deps.metrics.historyFailed(stored.error.code);
    return historyProblem(stored.error);
  }
  if (stored.value.fresh) deps.metrics.recorded("snapshots", 1);
  return json({ id: snapshot.id, node, fresh: stored.value.fresh }, stored.value.fresh ? 201 : 200);
}

/** POST /v1/nodes/{node}/deletion: records that the cluster deleted the node, until it is heard of again. */
export async function postDeletion(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const node = param(exchange, "node");
  const allowed = requireNode(exchange.caller, node);
  if (!allowed.ok) return allowed;
  const { store, now, metrics, turns } = exchange.deps;
  // the node's next turn would be written, and the node would exist again
  await turns?.forget(node);
  const deletedMs = now();
  const marked = await store.nodeDeleted(node, deletedMs);
  if (!marked.ok) {
    metrics.historyFailed(marked.error.code);
    return historyProblem(marked.error);
  }
  return marked.value.known ? json({ node, deletedAt: rfc3339(deletedMs) }) : unknownNode(exchange, node);
}

/** GET /v1/snapshots/{id} */
export async function getSnapshot(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const id = param(exchange, "id");
  const found = await snapshotSeen(exchange, id);
  if (!found.ok) return found;
  const { node, bootId, sequence, observedAtMs, storedAtMs, body } = found.value;
  const observedAt = observedAtMs === null ? null : rfc3339(observedAtMs);
  const head = JSON.stringify({ id, node, bootId, sequence, observedAt, storedAt: rfc3339(storedAtMs) });
  return jsonText(spliced(head, `{"snapshot":${body}}`));
}
