import type { Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { NO_NODE } from "../service/canonical.ts";
import { evaluateSnapshot } from "../service/evaluate.ts";
import { historyProblem, invalid, type Problem } from "../service/problem.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { requireNode } from "./auth/authorize.ts";
import { readJsonBody } from "./body.ts";
import { snapshotRow, spliced } from "./decide.ts";
import { snapshotSeen } from "./found.ts";
import { type Exchange, json, jsonText, param, queryOf } from "./route.ts";

/** PUT /v1/nodes/{node}/snapshot */
export async function putSnapshot(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller, signal } = exchange;
  const node = param(exchange, "node");
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const allowed = requireNode(caller, node);
  if (!allowed.ok) return allowed;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const decoded = await (ports.apart?.snapshot(bytes.value, signal) ?? evaluateSnapshot(bytes.value, ports.sha256));
  if (!decoded.ok) return decoded;
  const snapshot = decoded.value;
  if (snapshot.node !== node) {
    const found = snapshot.node === NO_NODE ? "found none" : `found \`${snapshot.node.slice(0, 253)}\``;
    return invalid(
      "node.metadata.name",
      `must be \`${node.slice(0, 253)}\` as in the path, ${found}; post the NodeSnapshot itself`,
    );
  }
  const stored = await ports.store.putSnapshot(snapshotRow(snapshot, ports.now()));
  if (!stored.ok) {
    ports.metrics.historyFailed(stored.error.code);
    return historyProblem(stored.error);
  }
  if (stored.value.fresh) ports.metrics.recorded("snapshots", 1);
  return json({ id: snapshot.id, node, fresh: stored.value.fresh }, stored.value.fresh ? 201 : 200);
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
