import { asc, eq, sql } from "drizzle-orm";
import { ok } from "../api/model/result.ts";
import { type Driver, once, type Statement } from "./driver.ts";
import { attempt } from "./failure.ts";
import { nodes } from "./schema.ts";
import type { SnapshotRow, Store } from "./store.ts";

/** A late or repeated snapshot of the same boot does not replace a newer one; across boots the clock of the store decides. */
const IS_NEWER = `excluded.last_snapshot_id IS NOT NULL AND excluded.last_seen_ms >= last_seen_ms
  AND (excluded.boot_id IS NOT boot_id OR last_sequence IS NULL OR excluded.last_sequence IS NULL OR excluded.last_sequence >= last_sequence)`;

const SEEN = `INSERT INTO nodes (name, first_seen_ms, last_seen_ms, boot_id, last_snapshot_id, last_sequence) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
  first_seen_ms = min(first_seen_ms, excluded.first_seen_ms),
  last_seen_ms = max(last_seen_ms, excluded.last_seen_ms),
  boot_id = CASE WHEN ${IS_NEWER} THEN excluded.boot_id ELSE boot_id END,
  last_snapshot_id = CASE WHEN ${IS_NEWER} THEN excluded.last_snapshot_id ELSE last_snapshot_id END,
  last_sequence = CASE WHEN ${IS_NEWER} THEN excluded.last_sequence ELSE last_sequence END`;

/** The node was heard of at `atMs`, with a snapshot or without one. */
export function nodeSeen(node: string, atMs: number, snapshot: SnapshotRow | undefined): Statement {
  const latest = snapshot === undefined ? [null, null, null] : [snapshot.bootId, snapshot.id, snapshot.sequence];
  return { sql: SEEN, params: [node, atMs, atMs, ...latest] };
}

export function nodesOf({ db }: Driver): Pick<Store, "listNodes" | "getNode"> {
  const byName = once(() =>
    db
      .select()
      .from(nodes)
      .where(eq(nodes.name, sql.placeholder("name")))
      .prepare(),
  );
  return {
    listNodes: () => attempt(async () => ok(await db.select().from(nodes).orderBy(asc(nodes.name)))),
    getNode: (name) => attempt(async () => ok((await byName().all({ name }))[0] ?? null)),
  };
}
