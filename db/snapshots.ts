import { eq, sql } from "drizzle-orm";
import { ok, type Result } from "../api/model/result.ts";
import { decodeBody, encodeBody, type Packing } from "./body.ts";
import { type Driver, insertInto, once, type Statement } from "./driver.ts";
import { attempt, type StoreFailure } from "./failure.ts";
import { nodeSeen } from "./nodes.ts";
import { nodes, snapshots } from "./schema.ts";
import type { SnapshotRow, Store } from "./store.ts";

const insert = insertInto(snapshots);

/** The statement that stores a snapshot unless it is there. Costs a compression when the body is large. */
export async function snapshotStatement(row: SnapshotRow, packing: Packing): Promise<Result<Statement, StoreFailure>> {
  const body = await encodeBody(`snapshot \`${row.id}\``, row.body, packing);
  return body.ok ? ok(insert({ ...row, ...body.value })) : body;
}

/** Whether a snapshot is stored: cheaper than compressing it again. */
export function snapshotLookup({ db }: Driver): (id: string) => Promise<boolean> {
  const byId = once(() =>
    db
      .select({ seq: snapshots.seq })
      .from(snapshots)
      .where(eq(snapshots.id, sql.placeholder("id")))
      .prepare(),
  );
  return async (id) => (await byId().all({ id })).length > 0;
}

async function decode(
  row: typeof snapshots.$inferSelect | undefined,
): Promise<Result<SnapshotRow | null, StoreFailure>> {
  if (row === undefined) return ok(null);
  const { seq: _, bytes, encoding, body, ...rest } = row;
  const text = await decodeBody(`snapshot \`${row.id}\``, { bytes, encoding, body });
  return text.ok ? ok({ ...rest, body: text.value }) : text;
}

export function snapshotsOf(driver: Driver): Pick<Store, "putSnapshot" | "getSnapshot" | "latestSnapshot"> {
  const { db, atomic } = driver;
  const byId = once(() =>
    db
      .select()
      .from(snapshots)
      .where(eq(snapshots.id, sql.placeholder("id")))
      .prepare(),
  );
  const latest = once(() =>
    db
      .select({ snapshot: snapshots })
      .from(nodes)
      .innerJoin(snapshots, eq(snapshots.id, nodes.lastSnapshotId))
      .where(eq(nodes.name, sql.placeholder("node")))
      .prepare(),
  );
  return {
    putSnapshot: (row) =>
      attempt(async () => {
        const statement = await snapshotStatement(row, driver.packing);
        if (!statement.ok) return statement;
        const [stored] = await atomic([statement.value, nodeSeen(row.node, row.storedAtMs, row)]);
        return ok({ fresh: stored?.changes === 1 });
      }),
    getSnapshot: (id) => attempt(async () => decode((await byId().all({ id }))[0])),
    latestSnapshot: (node) => attempt(async () => decode((await latest().all({ node }))[0]?.snapshot)),
  };
}
