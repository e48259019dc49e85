import { eq, sql } from "drizzle-orm";
import { ok, type Result } from "../api/model/result.ts";
import { encodeBody } from "./body.ts";
import { type Driver, once, type Statement } from "./driver.ts";
import { attempt, type StoreFailure } from "./failure.ts";
import { nodeSeen } from "./nodes.ts";
import { grouped, joined, piecesReader, type SnapshotInPieces, textsIn } from "./parts.ts";
import { nodes, snapshots, texts } from "./schema.ts";
import type { SnapshotRow, Store } from "./store.ts";
import { type Cut, insertWithTexts, type Texts } from "./texts.ts";

const insert = insertWithTexts(snapshots);

/** A row's texts and the statement that stores it unless it is there, which come in this order. */
export interface Placed {
  readonly cut: Cut;
  readonly statement: Statement;
}

/** What stores a snapshot unless it is there. Costs a compression when what is new of the body is large. */
export async function placeSnapshot(
  row: SnapshotRow,
  { packing }: Driver,
  shared: Texts,
): Promise<Result<Placed, StoreFailure>> {
  const what = `snapshot \`${row.id}\``;
  const cut = await shared.cut(`snapshot of ${row.node}`, what, row.body, row.repeats, row.storedAtMs);
  if (!cut.ok) return cut;
  const { rest, parts, ids } = cut.value;
  const body = await encodeBody(what, rest, packing);
  if (!body.ok) return body;
  const bytes = body.value.bytes + cut.value.bytes;
  return ok({ cut: cut.value, statement: insert({ ...row, ...body.value, bytes, parts }, ids) });
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

type Joined = Parameters<typeof grouped<typeof snapshots.$inferSelect>>[0];

export function snapshotsOf(
  driver: Driver,
  shared: Texts,
): Pick<Store, "putSnapshot" | "getSnapshot" | "getSnapshotPieces" | "latestSnapshot"> {
  const { db, atomic, packing } = driver;
  const piecesOf = piecesReader(packing);
  const byId = once(() =>
    db
      .select({ row: snapshots, text: texts })
      .from(snapshots)
      .leftJoin(texts, textsIn(snapshots.parts))
      .where(eq(snapshots.id, sql.placeholder("id")))
      .prepare(),
  );
  const latest = once(() =>
    db
      .select({ row: snapshots, text: texts })
      .from(nodes)
      .innerJoin(snapshots, eq(snapshots.id, nodes.lastSnapshotId))
      .leftJoin(texts, textsIn(snapshots.parts))
      .where(eq(nodes.name, sql.placeholder("node")))
      .prepare(),
  );
  const put = async (row: SnapshotRow, isAgain: boolean): Promise<Result<{ fresh: boolean }, StoreFailure>> => {
    const placed = await placeSnapshot(row, driver, shared);
    if (!placed.ok) return placed;
    const { cut, statement } = placed.value;
    const outcomes = await atomic([...cut.statements, statement, nodeSeen(row.node, row.storedAtMs, row)]);
    const fresh = outcomes[cut.statements.length]?.changes === 1;
    if (!fresh && !isAgain && !(await shared.areStored(cut.ids))) return put(row, true);
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
    getSnapshot: (id) => attempt(async () => whole(await byId().all({ id }))),
    getSnapshotPieces: (id) => attempt(async () => pieces(await byId().all({ id }))),
    latestSnapshot: (node) => attempt(async () => whole(await latest().all({ node }))),
  };
}
