import { type AnyColumn, and, asc, desc, eq, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { decodeBody, encodeBody, type Packing } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { OutcomeFilter, OutcomeRow } from "../rows.ts";
import type { Store } from "../store.ts";
import type { Driver, Statement } from "./driver.ts";
import { newestFirst, ofPod, pageOf } from "./page.ts";
import { outcomes, snapshots } from "./schema.ts";
import { nodeSeen } from "./snapshots.ts";

/** Inserts or updates an outcome; the time of its first record stays. An unchanged one writes nothing. */
const UPSERT = `INSERT INTO outcomes (id, node, kind, verdict, at_ms, recorded_at_ms, snapshot_id, pod_namespace, pod_name, pod_uid, reason, bytes, encoding, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET verdict = excluded.verdict, at_ms = excluded.at_ms, reason = excluded.reason,
  snapshot_id = excluded.snapshot_id, bytes = excluded.bytes, encoding = excluded.encoding, body = excluded.body
WHERE (outcomes.verdict, outcomes.at_ms, outcomes.snapshot_id, outcomes.body)
  IS DISTINCT FROM (excluded.verdict, excluded.at_ms, excluded.snapshot_id, excluded.body)`;

/** The statement that stores an outcome, or changes it. */
export async function upsertOutcome(row: OutcomeRow, packing: Packing): Promise<Result<Statement, StoreFailure>> {
  const { id, node, kind, verdict, atMs, recordedAtMs, snapshotId, pod, reason } = row;
  const encoded = await encodeBody(`outcome \`${id}\``, row.body, packing);
  if (!encoded.ok) return encoded;
  const { bytes, encoding, body } = encoded.value;
  const named = [pod?.namespace ?? null, pod?.name ?? null, pod?.uid ?? null];
  const params = [id, node, kind, verdict, atMs, recordedAtMs, snapshotId, ...named, reason, bytes, encoding, body];
  return ok({ sql: UPSERT, params });
}

export async function decodeOutcome(
  { seq: _, podNamespace, podName, podUid, bytes, encoding, body, ...row }: typeof outcomes.$inferSelect,
  packing: Packing,
): Promise<Result<OutcomeRow, StoreFailure>> {
  const text = await decodeBody(`outcome \`${row.id}\``, { bytes, encoding, body }, packing);
  if (!text.ok) return text;
  const pod = podName === null ? null : { namespace: podNamespace ?? "", name: podName, uid: podUid ?? "" };
  return ok({ ...row, pod, body: text.value });
}

/** The condition that matches the fewest outcomes uses its index: `+` prevents SQLite from using the others'. */
function conditionOf({
  node,
  kind,
  verdict,
  reason,
  pod,
  namespace,
  sinceMs,
  untilMs,
}: OutcomeFilter): SQL | undefined {
  const isNarrow = [node, reason, pod].some((one) => one !== undefined);
  const equal = (column: AnyColumn, value: string | undefined, has = true): SQL | undefined =>
    value === undefined ? undefined : has ? eq(column, value) : sql`+${column} = ${value}`;
  return and(
    equal(outcomes.node, node, pod === undefined && reason === undefined),
    equal(outcomes.reason, reason, pod === undefined),
    equal(outcomes.podNamespace, namespace, !isNarrow),
    equal(outcomes.kind, kind),
    equal(outcomes.verdict, verdict),
    sinceMs === undefined ? undefined : gte(outcomes.atMs, sinceMs),
    untilMs === undefined ? undefined : lt(outcomes.atMs, untilMs),
    pod === undefined ? undefined : ofPod(outcomes, pod),
  );
}

/** `getSnapshot`: of the same store. */
export function outcomesOf(
  { db, atomic, packing, attempt }: Driver,
  { getSnapshot }: Pick<Store, "getSnapshot">,
): Pick<Store, "putOutcomes" | "listOutcomes" | "tallyOutcomes" | "snapshotBefore"> {
  return {
    putOutcomes: (rows) =>
      attempt(async () => {
        const heard = new Map<string, number>();
        for (const { node, recordedAtMs } of rows) heard.set(node, Math.max(heard.get(node) ?? 0, recordedAtMs));
        const statements = [...heard].map(([node, atMs]) => nodeSeen(node, atMs, undefined));
        for (const row of rows) {
          const statement = await upsertOutcome(row, packing);
          if (!statement.ok) return statement;
          statements.push(statement.value);
        }
        if (statements.length > 0) await atomic(statements, [...heard.keys()]);
        return ok(null);
      }),
    listOutcomes: ({ limit, pageToken, ...filter }) =>
      attempt(() =>
        pageOf({ limit, pageToken }, outcomes, {
          read: (before, most) =>
            db
              .select()
              .from(outcomes)
              .where(and(conditionOf(filter), before))
              .orderBy(...newestFirst(outcomes))
              .limit(most),
          placeOf: (row) => row,
          itemOf: (row) => decodeOutcome(row, packing),
        }),
      ),
    tallyOutcomes: (filter, bucketMs) =>
      attempt(async () => {
        // a number that is bound is a float to SQLite, and another parameter each time to Postgres
        const bucket = sql<number>`${outcomes.atMs} - ${outcomes.atMs} % ${sql.raw(String(Math.trunc(bucketMs)))}`;
        const { kind, verdict } = outcomes;
        const rows = await db
          .select({ fromMs: bucket, kind, verdict, count: sql<number>`count(*)` })
          .from(outcomes)
          .where(conditionOf(filter))
          .groupBy(bucket, kind, verdict)
          .orderBy(asc(bucket), asc(kind), asc(verdict));
        return ok(rows);
      }),
    snapshotBefore: async (node, atMs, storedByMs) => {
      const found = await attempt(async () =>
        ok(
          await db
            .select({ id: snapshots.id })
            .from(snapshots)
            .where(
              and(eq(snapshots.node, node), lte(snapshots.observedAtMs, atMs), lte(snapshots.storedAtMs, storedByMs)),
            )
            .orderBy(desc(snapshots.observedAtMs), desc(snapshots.seq))
            .limit(1),
        ),
      );
      if (!found.ok) return found;
      const [row] = found.value;
      return row === undefined ? ok(null) : getSnapshot(row.id);
    },
  };
}
