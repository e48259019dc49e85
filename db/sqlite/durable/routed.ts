import type { D1Database } from "@cloudflare/workers-types";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { ExportRow } from "../../../api/model/export-row.ts";
import { placeIn, placeOf } from "../../../api/service/canonical.ts";
import { decodeBody, WEB_PACKING, webDigest } from "../../body.ts";
import { attempting, failure, type StoreFailure } from "../../failure.ts";
import type { Cursor, SnapshotRow, StreamedDecision, StreamFailure } from "../../rows.ts";
import { texts } from "../../sql/schema.ts";
import type { DecisionFilter, ExportedRows, ExportFilter, ImportedRows, ResultRow, Store } from "../../store.ts";
import { openD1 } from "../d1/open.ts";
import { failureOf } from "../dialect.ts";

/** The methods of a store that are called from without its object. */
export type ObjectMethod = Exclude<
  keyof Store,
  "streamDecisions" | "streamLog" | "exportRows" | "getSnapshotPieces" | "prune" | "ready" | "close"
>;

/** An object as its callers see it. Rows and failures are plain data, so they pass as they are. */
export interface HistoryObject {
  /** Calls a method of the object's store. Undefined: nothing is stored there, and it is not one that would begin to. */
  call(method: ObjectMethod, args: readonly unknown[]): Promise<unknown>;
  /** The next decisions of a stream, as many as fit into one message. */
  stream(filter: DecisionFilter, after: Cursor | undefined): Promise<Streamed<Result<StreamedDecision, StreamFailure>>>;
  /** The next rows of an export, as many as fit into one message. */
  exported(filter: ExportFilter, after: string | undefined): Promise<Streamed<Result<ExportedRows, StoreFailure>>>;
}
export interface Streamed<T> {
  readonly steps: readonly T[];
  readonly isLast: boolean;
}

type StoreResult<T> = Promise<Result<T, StoreFailure>>;
type Stream = AsyncGenerator<Result<StreamedDecision, StreamFailure>>;
/** Calls to the objects of nodes and of ids. `none`: the answer of an object that stores nothing. */
interface Objects {
  ofNode<T>(node: string, method: ObjectMethod, args: readonly unknown[], none: T): StoreResult<T>;
  /** Calls the object of an id. `isThere`: whether an answer is a hit. Default: it is not null. */
  ofId<T>(
    id: string,
    method: ObjectMethod,
    args: readonly unknown[],
    none: T,
    isThere?: (answer: T) => boolean,
  ): StoreResult<T>;
  stream(filter: DecisionFilter & { readonly node: string }, after: Cursor | undefined): Stream;
  exported(
    filter: ExportFilter & { readonly node: string },
    after: string | undefined,
  ): ReturnType<Store["exportRows"]>;
}

const attempt = attempting(failureOf);
const NODE_OF = `SELECT node FROM decisions WHERE id = ?1 UNION ALL SELECT node FROM decisions WHERE snapshot_id = ?1
  UNION ALL SELECT node FROM series WHERE last_snapshot_id = ?1 LIMIT 1`;

function objectsOf(at: (place: string) => HistoryObject, d1: D1Database): Objects {
  const place = (node: string) => placeOf(webDigest, node);
  const call = async <T>(where: string, method: ObjectMethod, args: readonly unknown[], none: T) =>
    ((await at(where).call(method, args)) ?? ok(none)) as Result<T, StoreFailure>;
  return {
    ofNode: (node, method, args, none) => attempt(async () => call(await place(node), method, args, none)),
    ofId: (id, method, args, none, isThere = (answer) => answer !== null) =>
      attempt(async () => {
        const found = await call(placeIn(id), method, args, none);
        if (!found.ok || isThere(found.value)) return found;
        const node = await d1.prepare(NODE_OF).bind(id).first<string>("node");
        const other = node === null ? placeIn(id) : await place(node);
        return other === placeIn(id) ? found : call(other, method, args, none);
      }),
    async *stream(filter, after) {
      for (let from = after; ; ) {
        const read = await attempt(async () => ok(await at(await place(filter.node)).stream(filter, from)));
        if (!read.ok) return yield read;
        const { steps, isLast } = read.value;
        yield* steps;
        const last = steps.at(-1);
        const row = last?.ok === true ? last.value : last?.error.row;
        if (isLast || row === undefined) return;
        from = { atMs: row.decidedAtMs, seq: row.seq };
      }
    },
    async *exported(filter, after) {
      for (let from = after; ; ) {
        const read = await attempt(async () => ok(await at(await place(filter.node)).exported(filter, from)));
        if (!read.ok) return yield read;
        const { steps, isLast } = read.value;
        yield* steps;
        const last = steps.at(-1);
        if (isLast || last === undefined || !last.ok) return;
        from = last.value.place;
      }
    },
  };
}

/** Decisions of all nodes that are read at a time, each from its object. */
const AT_A_TIME = 16;

/** The fleet's database has the order of all, the objects have the rest. */
async function* streamOfAll(
  fleet: Store,
  { ofNode }: Objects,
  filter: DecisionFilter,
  after: Cursor | undefined,
): Stream {
  const whole = async (head: Result<StreamedDecision, StreamFailure>) => {
    if (!head.ok) return head;
    const { id, node, seq } = head.value;
    const found: Awaited<ReturnType<Store["getDecision"]>> = await ofNode(node, "getDecision", [id], null);
    if (!found.ok) return err({ ...found.error, row: head.value });
    return found.value === null ? null : ok({ ...found.value, seq });
  };
  const some: Result<StreamedDecision, StreamFailure>[] = [];
  const readSome = async () => (await Promise.all(some.splice(0).map(whole))).filter((one) => one !== null);
  for await (const head of fleet.streamDecisions(filter, after)) {
    some.push(head);
    if (some.length === AT_A_TIME) yield* await readSome();
  }
  yield* await readSome();
}

const NO_PAGE = { items: [], nextPageToken: null };
const UNKNOWN = { known: false, added: 0 };
/** The answer of an object that was never written to. */
const NOWHERE = null as never;

/** The shared texts that rows need, of those that an import has put into the fleet's database. */
async function neededTexts(d1: D1Database, rows: readonly ExportRow[]): Promise<Result<ExportRow[], StoreFailure>> {
  const ids = new Set(rows.flatMap((row) => ("parts" in row ? (row.parts ?? []).map(([, id]) => id) : [])));
  if (ids.size === 0) return ok([]);
  const stored = await drizzle(d1)
    .select()
    .from(texts)
    .where(sql`${texts.id} IN (SELECT value FROM json_each(${JSON.stringify([...ids])}))`);
  const found: ExportRow[] = [];
  for (const row of stored) {
    const text = await decodeBody(`text \`${row.id}\``, row, WEB_PACKING);
    if (!text.ok) return text;
    found.push({ type: "text", id: row.id, text: text.value });
  }
  return ok(found);
}

/**
 * Texts, tokens and outcomes go into the fleet's database: rows of any node, and later calls, may need a text. All
 * other rows are one write to their node's object.
 */
async function importInto(
  fleet: Store,
  d1: D1Database,
  { ofNode }: Objects,
  rows: readonly ExportRow[],
  nowMs: number,
): Promise<Result<ImportedRows, StoreFailure>> {
  const shared = rows.filter(({ type }) => type === "text" || type === "token" || type === "outcome");
  const ofShared = await fleet.importRows(shared, nowMs);
  if (!ofShared.ok) return ofShared;
  const counts = { added: { ...ofShared.value.added }, known: { ...ofShared.value.known } };
  const owned = rows.filter((row) => row.type !== "text" && row.type !== "token");
  for (const [node, own] of Map.groupBy(owned, (row) => (row.type === "node" ? row.name : row.node))) {
    const needed = await attempt(() => neededTexts(d1, own));
    if (!needed.ok) return needed;
    const imported = await ofNode<ImportedRows>(node, "importRows", [[...needed.value, ...own], nowMs], NOWHERE);
    if (!imported.ok) return imported;
    for (const [to, from] of [
      [counts.added, imported.value.added],
      [counts.known, imported.value.known],
    ] as const)
      for (const type of OWNED) if (from[type] !== undefined) to[type] = (to[type] ?? 0) + from[type];
  }
  return ok(counts);
}
const OWNED = ["snapshot", "decision", "removal", "node", "hour"] as const;

/** The nodes by name, after `first` or from the beginning. */
async function* nodesBehind(fleet: Store, first: string | undefined): AsyncGenerator<Result<string, StoreFailure>> {
  for (let after = first; ; ) {
    const page = await fleet.listNodes({ limit: NAMES, ...(after === undefined ? {} : { after }) });
    if (!page.ok) return yield page;
    for (const { name } of page.value) yield ok(name);
    after = page.value.at(-1)?.name;
    if (after === undefined) return;
  }
}
const NAMES = 250;

/** The place of an export of all: how long the node's name is, the name, and the place in its object. */
const placeOfAll = (node: string, at: string): string => `node/${node.length}/${node}${at}`;
function readPlaceOfAll(place: string | undefined): readonly [node?: string, at?: string] | null {
  if (place === undefined) return [];
  const [, length, rest = ""] = /^node\/(\d{1,3})\/(.+)$/s.exec(place) ?? [];
  return length === undefined ? null : [rest.slice(0, Number(length)), rest.slice(Number(length))];
}
/** The progress: the number of nodes before a name, and of all nodes. */
const COUNT_NODES = "SELECT count(CASE WHEN name < ? THEN 1 END) AS done, count(*) AS total FROM nodes";

/** Exports one object after the other, then the tokens: the fleet's database has only the heads of decisions. */
async function* exportOfAll(
  fleet: Store,
  d1: D1Database,
  { exported }: Objects,
  filter: ExportFilter,
  after: string | undefined,
): AsyncGenerator<Result<ExportedRows, StoreFailure>> {
  if (after?.startsWith("tokens/")) return yield* fleet.exportRows(filter, after);
  const place = readPlaceOfAll(after);
  if (place === null) return yield failure("bad_page_token", "the place is not one of an export of all nodes");
  const [first, at] = place;
  const counted = await attempt(async () =>
    ok(
      await d1
        .prepare(COUNT_NODES)
        .bind(first ?? "")
        .first<{ done: number; total: number }>(),
    ),
  );
  if (!counted.ok) return yield counted;
  let { done, total } = counted.value ?? { done: 0, total: 0 };
  /** Exports a node; returns whether the export continues after it. */
  const ofNode = async function* (
    node: string,
    from?: string,
  ): AsyncGenerator<Result<ExportedRows, StoreFailure>, boolean> {
    for await (const step of exported({ ...filter, node }, from)) {
      yield step.ok ? ok({ ...step.value, place: placeOfAll(node, step.value.place), progress: done / total }) : step;
      if (!step.ok && step.error.isRow !== true) return false;
    }
    done += 1;
    return true;
  };
  if (first !== undefined && !(yield* ofNode(first, at))) return;
  for await (const node of nodesBehind(fleet, first)) {
    if (!node.ok) return yield node;
    if (!(yield* ofNode(node.value))) return;
  }
  if (filter.tokens === true) yield* fleet.exportRows(filter, "tokens/");
}

/** The calls that go to one node's object, or to an id's. */
function ofObjects(fleet: Store, d1: D1Database, objects: Objects) {
  const { ofNode, ofId } = objects;
  return {
    record: (recording) => ofNode(recording.decision.node, "record", [recording], NOWHERE),
    recordTurn: (turn) => ofNode(turn.node, "recordTurn", [turn], NOWHERE),
    putSnapshot: (snapshot) => ofNode(snapshot.node, "putSnapshot", [snapshot], NOWHERE),
    importRows: (rows, nowMs) => importInto(fleet, d1, objects, rows, nowMs),
    writeFacts: (node, facts, nowMs) => ofNode(node, "writeFacts", [node, facts, nowMs], NOWHERE),
    readFacts: (node, ...keys) => ofNode(node, "readFacts", [node, ...keys], {}),
    getSnapshot: (id) => ofId(id, "getSnapshot", [id], null),
    snapshotBytes: (id) => ofId(id, "snapshotBytes", [id], null),
    // a message contains the whole snapshot at once
    getSnapshotPieces: async (id) => {
      const found = await ofId<SnapshotRow | null>(id, "getSnapshot", [id], null);
      if (!found.ok) return found;
      if (found.value === null) return ok(null);
      const { body, repeats: _, pieces: __, ...row } = found.value;
      return ok({ ...row, pieces: { rest: body, shared: [] } });
    },
    latestSnapshot: (node) => ofNode(node, "latestSnapshot", [node], null),
    snapshotBefore: (node, ...when) => ofNode(node, "snapshotBefore", [node, ...when], null),
    getDecision: (id) => ofId(id, "getDecision", [id], null),
    addResults: (id, rows) => ofId(id, "addResults", [id, rows], UNKNOWN, ({ known }) => known),
    listResults: (id) => ofId<readonly ResultRow[]>(id, "listResults", [id], [], ({ length }) => length > 0),
    putOutcomes: async (rows) => {
      for (const [node, own] of Map.groupBy(rows, (row) => row.node)) {
        const put = await ofNode<null>(node, "putOutcomes", [own], null);
        if (!put.ok) return put;
      }
      return fleet.putOutcomes(rows);
    },
    listRemovals: (query) => ofNode(query.node, "listRemovals", [query], NO_PAGE),
    getNode: (name) => ofNode(name, "getNode", [name], null),
    nodeDeleted: async (name, atMs) => {
      const deleted = await ofNode(name, "nodeDeleted", [name, atMs], { known: false });
      if (!deleted.ok || !deleted.value.known) return deleted;
      const recorded = await fleet.nodeDeleted(name, atMs);
      return recorded.ok ? deleted : recorded;
    },
  } satisfies Partial<Store>;
}

/**
 * The history of a fleet with one object per node. Queries about a node go to its object, and queries with an id to
 * the object whose place begins the id; queries about all nodes go to a database that the objects update. Tokens and outcomes
 * exist only there. An id without a place, from an imported history, is looked up there.
 */
export function openRouted(at: (place: string) => HistoryObject, d1: D1Database): Store {
  const fleet = openD1(d1);
  const objects = objectsOf(at, d1);
  const { ofNode } = objects;
  const ofAll = <T>(method: ObjectMethod, args: readonly unknown[]): StoreResult<T> =>
    (fleet[method] as (...args: readonly unknown[]) => StoreResult<T>)(...args);
  const either = <T>(
    node: string | undefined,
    method: ObjectMethod,
    args: readonly unknown[],
    none: T,
  ): StoreResult<T> => (node === undefined ? ofAll(method, args) : ofNode(node, method, args, none));
  /**
   * Asks a node's object; if it stores nothing, the fleet's database answers, which has nothing either, in the right
   * form.
   */
  const orNothing = async <T>(node: string, method: ObjectMethod, args: readonly unknown[]): StoreResult<T> => {
    const found = await ofNode<T | null>(node, method, args, null);
    return found.ok && found.value === null ? ofAll(method, args) : (found as Result<T, StoreFailure>);
  };
  return {
    ...fleet,
    ...ofObjects(fleet, d1, objects),
    listDecisions: (query) => either(query.node, "listDecisions", [query], NO_PAGE),
    newestDecision: (node) =>
      node === undefined ? fleet.newestDecision() : ofNode(node, "newestDecision", [node], null),
    streamDecisions: (filter, after) =>
      filter.node === undefined
        ? streamOfAll(fleet, objects, filter, after)
        : objects.stream({ ...filter, node: filter.node }, after),
    exportRows: (filter, after) =>
      filter.node === undefined
        ? exportOfAll(fleet, d1, objects, filter, after)
        : objects.exported({ ...filter, node: filter.node }, after),
    listOutcomes: (query) => either(query.node, "listOutcomes", [query], NO_PAGE),
    tallyOutcomes: (filter, bucketMs) => either(filter.node, "tallyOutcomes", [filter, bucketMs], []),
    summarizeRemovals: (node, range) => orNothing(node, "summarizeRemovals", [node, range]),
    listFleet: (sinceMs, node) => either(node, "listFleet", [sinceMs, node], []),
    listHours: (sinceMs, node) => either(node, "listHours", [sinceMs, node], []),
    tallyOf: (node, sinceMs) => orNothing(node, "tallyOf", [node, sinceMs]),
  };
}
