import { asc, desc, eq, gt, lt, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { encodeSliced } from "../body.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { SnapshotInPieces, SnapshotRow } from "../rows.ts";
import type { Store } from "../store.ts";
import { type Driver, insertInto, prepared, type Statement, type Value } from "./driver.ts";
import { grouped, joined, piecesReader } from "./parts.ts";
import { nodes, snapshots, texts } from "./schema.ts";
import { placeSlices, type SplitBody, TEXTS_ARE_STORED, type Texts, textIdsJson } from "./texts.ts";

/** A late or repeated snapshot of the same boot does not replace a newer one; across boots the clock of the store decides. */
const IS_NEWER = `excluded.last_snapshot_id IS NOT NULL AND excluded.last_seen_ms >= nodes.last_seen_ms
  AND (excluded.boot_id IS DISTINCT FROM nodes.boot_id OR nodes.last_sequence IS NULL OR excluded.last_sequence IS NULL
    OR excluded.last_sequence >= nodes.last_sequence)`;
const newer = (column: string, value = `excluded.${column}`): string =>
  `${column} = CASE WHEN ${IS_NEWER} THEN ${value} ELSE nodes.${column} END`;
/** The smaller (or the larger) of the stored and the new value. */
export const either = (column: string, sign: "<" | ">", table = "nodes"): string =>
  `${column} = CASE WHEN excluded.${column} ${sign} ${table}.${column} THEN excluded.${column} ELSE ${table}.${column} END`;

const SEEN = `INSERT INTO nodes (name, first_seen_ms, last_seen_ms, boot_id, last_snapshot_id, last_sequence, labels, kubelet_version, conditions)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${TEXTS_ARE_STORED}
ON CONFLICT (name) DO UPDATE SET ${[
  either("first_seen_ms", "<"),
  either("last_seen_ms", ">"),
  ...["boot_id", "last_snapshot_id", "last_sequence", "conditions"].map((column) => newer(column)),
  ...["labels", "kubelet_version"].map((column) => newer(column, `coalesce(excluded.${column}, nodes.${column})`)),
].join(", ")}`;

/** Records that the node was heard of at `atMs`, with or without a snapshot. `texts`: see `textIdsJson`. */
export function nodeSeen(
  node: string,
  atMs: number,
  snapshot: SnapshotRow | undefined,
  texts: Value = "[]",
): Statement {
  const { bootId = null, id = null, sequence = null, labels = null, kubeletVersion = null } = snapshot ?? {};
  const conditions = snapshot?.conditions ?? null;
  return { sql: SEEN, params: [node, atMs, atMs, bootId, id, sequence, labels, kubeletVersion, conditions, texts] };
}

export function nodesOf(driver: Driver): Pick<Store, "listNodes" | "getNode" | "nodeDeleted"> {
  const { db, attempt } = driver;
  const byName = prepared(driver, () =>
    db
      .select()
      .from(nodes)
      .where(eq(nodes.name, sql.placeholder("name"))),
  );
  return {
    listNodes: (range) =>
      attempt(async () => {
        const all = db.select().from(nodes).$dynamic();
        if (range === undefined) return ok(await all.orderBy(asc(nodes.name)));
        if ("before" in range) all.where(lt(nodes.name, range.before)).orderBy(desc(nodes.name));
        else all.where(range.after === undefined ? undefined : gt(nodes.name, range.after)).orderBy(asc(nodes.name));
        return ok(await all.limit(range.limit));
      }),
    getNode: (name) => attempt(async () => ok((await byName({ name }))[0] ?? null)),
    nodeDeleted: (name, deletedMs) =>
      attempt(async () => {
        const changed = await db
          .update(nodes)
          .set({ deletedMs })
          .where(eq(nodes.name, name))
          .returning({ name: nodes.name });
        return ok({ known: changed.length > 0 });
      }),
  };
}

/** Unless it is there. Parameters of the guard: its id, and `textIdsJson`. */
export const insertSnapshot = insertInto(
  snapshots,
  `NOT EXISTS (SELECT 1 FROM snapshots WHERE id = ?) AND ${TEXTS_ARE_STORED}`,
);

/** A row's texts, and the statement that stores the row unless it exists, in this order. */
interface PlacedRow {
  readonly cut: SplitBody;
  /** `texts`: see `textIdsJson`. */
  readonly insert: (texts: Value) => Statement;
}

/** Makes what stores a snapshot unless it is there. Costs a compression when the new part of the body is large. */
export async function placeSnapshot(
  row: SnapshotRow,
  { packing }: Driver,
  shared: Texts,
): Promise<Result<PlacedRow, StoreFailure>> {
  const what = `snapshot \`${row.id}\``;
  const cut = await shared.cut(`snapshot of ${row.node}`, what, row, row.storedAtMs);
  if (!cut.ok) return cut;
  const { rest, parts } = cut.value;
  const body = await encodeSliced(what, rest, packing);
  if (!body.ok) return body;
  const bytes = body.value.bytes + cut.value.bytes;
  const placed = placeSlices("snapshot", row.id, parts, { body: body.value.slices }, row.storedAtMs);
  const values = { ...row, ...body.value, bytes, parts: placed.parts };
  return ok({
    cut: { ...cut.value, statements: [...cut.value.statements, ...placed.statements] },
    insert: (guard) => insertSnapshot(values, [row.id, guard]),
  });
}

/** The failure for a row that was not written, since its pieces refer to removed texts. */
export const removedRanges = (id: string): Result<never, StoreFailure> =>
  failure("unavailable", `the history has no more what row \`${id}\` is a change of; send the whole`);

/** Checks that a snapshot is stored: cheaper than compressing it again. */
export function snapshotLookup(driver: Driver): (id: string) => Promise<boolean> {
  const { db } = driver;
  const byId = prepared(driver, () =>
    db
      .select({ seq: snapshots.seq })
      .from(snapshots)
      .where(eq(snapshots.id, sql.placeholder("id"))),
  );
  return async (id) => (await byId({ id })).length > 0;
}

type Joined = readonly {
  readonly row: typeof snapshots.$inferSelect;
  readonly text: typeof texts.$inferSelect | null;
}[];

export function snapshotsOf(
  driver: Driver,
  shared: Texts,
): Pick<Store, "putSnapshot" | "getSnapshot" | "snapshotBytes" | "getSnapshotPieces" | "latestSnapshot"> {
  const { db, atomic, packing, attempt } = driver;
  const piecesOf = piecesReader(packing);
  const byId = prepared(driver, () =>
    db
      .select({ row: snapshots, text: texts })
      .from(snapshots)
      .leftJoin(texts, driver.textsIn(texts.id, snapshots.parts))
      .where(eq(snapshots.id, sql.placeholder("id"))),
  );
  const bytesOf = prepared(driver, () =>
    db
      .select({ bytes: snapshots.bytes })
      .from(snapshots)
      .where(eq(snapshots.id, sql.placeholder("id"))),
  );
  const latest = prepared(driver, () =>
    db
      .select({ row: snapshots, text: texts })
      .from(nodes)
      .innerJoin(snapshots, eq(snapshots.id, nodes.lastSnapshotId))
      .leftJoin(texts, driver.textsIn(texts.id, snapshots.parts))
      .where(eq(nodes.name, sql.placeholder("node"))),
  );
  const put = async (row: SnapshotRow, isRetry: boolean): Promise<Result<{ fresh: boolean }, StoreFailure>> => {
    const placed = await placeSnapshot(row, driver, shared);
    if (!placed.ok) return placed;
    const { cut, insert } = placed.value;
    const guard = textIdsJson([cut]);
    const seen = nodeSeen(row.node, row.storedAtMs, row, guard);
    const outcomes = await atomic([...cut.statements, insert(guard), seen], [row.node]);
    const fresh = outcomes[cut.statements.length]?.changes !== 0;
    if (!fresh && (await shared.missing(cut.ids)).length > 0) return isRetry ? removedRanges(row.id) : put(row, true);
    cut.committed();
    return ok({ fresh });
  };
  const pieces = async (rows: Joined): Promise<Result<SnapshotInPieces | null, StoreFailure>> => {
    const [found] = grouped(rows);
    if (found === undefined) return ok(null);
    const { seq: _, bytes, encoding, body, parts, ...rest } = found.row;
    const read = await piecesOf(`snapshot \`${rest.id}\``, { bytes, encoding, body, parts }, found.texts);
    return read.ok ? ok({ ...rest, pieces: read.value }) : read;
  };
  const whole = async (rows: Joined): Promise<Result<SnapshotRow | null, StoreFailure>> => {
    const found = await pieces(rows);
    if (!found.ok) return found;
    if (found.value === null) return ok(null);
    const { pieces: parts, ...row } = found.value;
    const body = await joined(parts);
    return body.ok ? ok({ ...row, body: body.value }) : body;
  };
  return {
    putSnapshot: (row) => attempt(() => put(row, false)),
    getSnapshot: (id) => attempt(async () => whole(await byId({ id }))),
    snapshotBytes: (id) => attempt(async () => ok((await bytesOf({ id }))[0]?.bytes ?? null)),
    getSnapshotPieces: (id) => attempt(async () => pieces(await byId({ id }))),
    latestSnapshot: (node) => attempt(async () => whole(await latest({ node }))),
  };
}
