import { type AnyColumn, and, asc, eq, gt, gte, lt, type SQL, sql } from "drizzle-orm";
import { Lru } from "../../api/base/cache.ts";
import { HOUR_MS } from "../../api/base/duration.ts";
import { ok, type Result } from "../../api/base/result.ts";
import type { ExportRow, ExportRowOf } from "../../api/model/export-row.ts";
import { decodeBody } from "../body.ts";
import { corruptRow, failure, type StoreFailure } from "../failure.ts";
import type { Cursor } from "../rows.ts";
import type { ExportFilter, Store } from "../store.ts";
import { headOf, ofDecision, readAsk } from "./decisions.ts";
import { type Driver, prepared } from "./driver.ts";
import { hourOf } from "./fleet.ts";
import { decodeOutcome } from "./outcomes.ts";
import { DAMAGED, missing, placesIn, withSlices } from "./parts.ts";
import { decodeRemoval } from "./removals.ts";
import { decodeResult } from "./results.ts";
import {
  decisions,
  factParts,
  facts,
  hours,
  latest,
  nodes,
  outcomeHours,
  outcomes,
  refusals,
  removals,
  results,
  series,
  snapshots,
  texts,
  tokens,
} from "./schema.ts";
import { chunks, decisionPages } from "./stream.ts";
import { sliceOf } from "./texts.ts";

const PAGE_ROWS = 256;
/** The number of texts and snapshots that are remembered as exported. A forgotten one is exported again. */
const SENT = 128 * 1024;

/** Rows that belong together, and the place after which the export continues. */
interface Step {
  readonly rows: readonly ExportRow[];
  readonly at: string;
  readonly atMs: number | null;
}
type Steps = AsyncGenerator<Result<Step, StoreFailure>>;
/** `from`: the place of the last step that is not repeated. */
type Part = (filter: ExportFilter, from: string | undefined) => Steps;
type Read<T> = Promise<Result<T, StoreFailure>>;

const placeOf = ({ atMs, seq }: Cursor): string => `${atMs}/${seq}`;
/** The part that an export has reached, and the place in it. */
const PLACE = /^(?:(?:decisions|outcomes|removals)\/-?\d{1,15}\/\d{1,15}|hours\/-?\d{1,15}\/.*|nodes\/.*|tokens\/.*)$/s;
function readCursor(at: string | undefined): Cursor | undefined {
  if (at === undefined) return undefined;
  const [atMs = 0, seq = 0] = at.split("/").map(Number);
  return { atMs, seq };
}

/**
 * Reads pages until one is empty; each row is a step. An unreadable row is a failure of its own, any other failure
 * ends it.
 */
async function* paged<Row>(
  { attempt }: Driver,
  first: string | undefined,
  read: (from: string | undefined) => Promise<readonly Row[]>,
  step: (row: Row) => Read<Step>,
  placed: (row: Row) => string,
): Steps {
  let from = first;
  while (true) {
    const page = await attempt(async () => ok(await read(from)));
    if (!page.ok) return yield page;
    if (page.value.length === 0) return;
    for (const row of page.value) yield await attempt(() => step(row));
    from = placed(page.value.at(-1) as Row);
  }
}

/** Shared texts and snapshots, each exported once, before the row that needs it. */
class ExportDependencies {
  readonly #driver: Driver;
  readonly #sent = new Lru<string, true>(SENT);
  readonly #snapshot: (values: { id: string }) => Promise<readonly (typeof snapshots.$inferSelect)[]>;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#snapshot = prepared(driver, () =>
      driver.db
        .select()
        .from(snapshots)
        .where(eq(snapshots.id, sql.placeholder("id"))),
    );
  }

  /** A row's complete own texts, its shared ones as stored, and the texts that are not in the export yet. */
  async taken(what: string, row: { readonly parts: string | null }) {
    const { db, packing } = this.#driver;
    const places = placesIn(row.parts);
    if (places === null) return corruptRow(`${what}: ${DAMAGED}`);
    const ids = new Set(places.map(([, id]) => id).filter((id) => sliceOf(id) !== null || !this.#sent.get(id)));
    const found =
      ids.size === 0
        ? []
        : await db
            .select()
            .from(texts)
            .where(sql`${texts.id} IN (SELECT value FROM json_each(${JSON.stringify([...ids])}))`);
    const textRows: ExportRowOf<"text">[] = [];
    for (const one of found) {
      if (sliceOf(one.id) !== null) continue;
      const text = await decodeBody(what, one, packing);
      if (!text.ok) return text;
      textRows.push({ type: "text", id: one.id, text: text.value });
    }
    const lacking = [...ids].find((id) => !found.some((one) => one.id === id));
    if (lacking !== undefined) return missing(what, lacking);
    for (const { id } of textRows) this.#sent.set(id, true);
    const shared = places.filter(([, id]) => sliceOf(id) === null).map((place) => [...place]);
    const parts = (shared.length === 0 ? null : shared) as ExportRowOf<"snapshot">["parts"];
    return ok({ textRows, found, parts });
  }

  /** The snapshots of these ids that are not exported yet, each after its texts. Missing ones are left out. */
  async snapshots(ids: readonly (string | null | undefined)[]): Read<readonly ExportRow[]> {
    const rows: ExportRow[] = [];
    for (const id of ids) {
      if (id === null || id === undefined || this.#sent.get(`s/${id}`)) continue;
      const [row] = await this.#snapshot({ id });
      if (row === undefined) continue;
      const what = `snapshot \`${id}\``;
      const taken = await this.taken(what, row);
      if (!taken.ok) return taken;
      const { textRows, found, parts } = taken.value;
      const whole = withSlices(what, row, row.parts, found, "body");
      if (!whole.ok) return whole;
      const body = await decodeBody(what, whole.value, this.#driver.packing);
      if (!body.ok) return body;
      const { node, observedAtMs, sequence, bootId, storedAtMs, bytes } = row;
      const own = { id, node, observedAtMs, sequence, bootId, storedAtMs, bytes, body: body.value, parts };
      rows.push(...textRows, { type: "snapshot", ...own });
      this.#sent.set(`s/${id}`, true);
    }
    return ok(rows);
  }
}

/** Decisions, oldest first, each with the snapshots of its first and last time and its results. */
function decisionsPart(driver: Driver, dependencies: ExportDependencies): Part {
  const { db, attempt, packing } = driver;
  const page = decisionPages(driver);
  const read = (seqs: readonly number[]) =>
    attempt(async () => {
      const rows = await db
        .select({ row: decisions, series })
        .from(decisions)
        .leftJoin(series, ofDecision)
        .where(sql`${decisions.seq} IN (SELECT CAST(value AS bigint) FROM json_each(${JSON.stringify(seqs)}))`);
      const ids = JSON.stringify(rows.map(({ row }) => row.id));
      const reports = await db
        .select()
        .from(results)
        .where(sql`${results.decisionId} IN (SELECT value FROM json_each(${ids}))`)
        .orderBy(asc(results.decisionId), asc(results.seq), asc(results.id));
      const byDecision = Map.groupBy(reports, ({ decisionId }) => decisionId);
      return ok({ rows: new Map(rows.map((one) => [one.row.seq, one])), reports: byDecision });
    });
  type DecisionWithSeries = {
    readonly row: typeof decisions.$inferSelect;
    readonly series: typeof series.$inferSelect | null;
  };
  const step = (
    { row, series: repeated }: DecisionWithSeries,
    reports: readonly (typeof results.$inferSelect)[],
    at: string,
  ): Read<Step> =>
    attempt(async () => {
      const what = `decision \`${row.id}\``;
      const snapshots = await dependencies.snapshots([row.snapshotId, repeated?.lastSnapshotId]);
      if (!snapshots.ok) return snapshots;
      const taken = await dependencies.taken(what, row);
      if (!taken.ok) return taken;
      const { textRows, found, parts } = taken.value;
      const whole = withSlices(what, row, row.parts, found, "body");
      if (!whole.ok) return whole;
      const body = await decodeBody(what, whole.value, packing);
      if (!body.ok) return body;
      const ask = await readAsk(`ask of ${what}`, row, found, packing);
      if (!ask.ok) return ask;
      const results = [];
      for (const report of reports) {
        const one = await decodeResult(report, packing);
        if (!one.ok) return one;
        results.push(one.value);
      }
      const { series: times, ...head } = headOf(row, repeated);
      const again = times === undefined ? {} : { series: { ...times, lastId: repeated?.lastId ?? null } };
      const texts = { bytes: row.bytes, ask: ask.value, body: body.value, parts };
      const decision = { type: "decision", ...head, ...texts, ...again, results } as const;
      return ok({ rows: [...snapshots.value, ...textRows, decision], at, atMs: row.decidedAtMs });
    });
  return async function* ({ tokens: _, ...filter }, first) {
    let from = readCursor(first);
    while (true) {
      const entries = await page(filter, from);
      if (!entries.ok) return yield entries;
      from = entries.value.at(-1);
      if (from === undefined) return;
      for (const chunk of chunks(entries.value)) {
        const found = await read(chunk.map(({ seq }) => seq));
        if (!found.ok) return yield found;
        for (const entry of chunk) {
          const one = found.value.rows.get(entry.seq);
          if (one === undefined) continue;
          yield await step(one, found.value.reports.get(one.row.id) ?? [], placeOf(entry));
        }
      }
    }
  };
}

/** The conditions for a filter's rows after a place, in a table ordered by time. */
function rowsAfter(
  table: { readonly node: AnyColumn; readonly atMs: AnyColumn; readonly seq: AnyColumn },
  { node, sinceMs, untilMs }: ExportFilter,
  from: Cursor | undefined,
): SQL | undefined {
  return and(
    node === undefined ? undefined : eq(table.node, node),
    sinceMs === undefined ? undefined : gte(table.atMs, sinceMs),
    untilMs === undefined ? undefined : lt(table.atMs, untilMs),
    from === undefined ? undefined : sql`(${table.atMs}, ${table.seq}) > (${from.atMs}, ${from.seq})`,
  );
}

function outcomesPart(driver: Driver, dependencies: ExportDependencies): Part {
  const read = (filter: ExportFilter) => (from: string | undefined) =>
    driver.db
      .select()
      .from(outcomes)
      .where(rowsAfter(outcomes, filter, readCursor(from)))
      .orderBy(asc(outcomes.atMs), asc(outcomes.seq))
      .limit(PAGE_ROWS);
  const step = async (row: typeof outcomes.$inferSelect): Read<Step> => {
    const before = await dependencies.snapshots([row.snapshotId]);
    if (!before.ok) return before;
    const outcome = await decodeOutcome(row, driver.packing);
    if (!outcome.ok) return outcome;
    return ok({ rows: [...before.value, { type: "outcome", ...outcome.value }], at: placeOf(row), atMs: null });
  };
  return (filter, first) => paged(driver, first, read(filter), step, placeOf);
}

function removalsPart(driver: Driver): Part {
  const read = (filter: ExportFilter) => (from: string | undefined) =>
    driver.db
      .select()
      .from(removals)
      .where(rowsAfter(removals, filter, readCursor(from)))
      .orderBy(asc(removals.atMs), asc(removals.seq))
      .limit(PAGE_ROWS);
  const step = async (row: typeof removals.$inferSelect): Read<Step> => {
    const removal = decodeRemoval(row);
    if (!removal.ok) return removal;
    const names = [...removal.value.names];
    const exported: ExportRowOf<"removal"> = { type: "removal", node: row.node, ...removal.value, names };
    return ok({ rows: [exported], at: placeOf(row), atMs: null });
  };
  return (filter, first) => paged(driver, first, read(filter), step, placeOf);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Nodes with their facts, newest decisions and newest snapshot, as they are now, whatever the requested time. */
function nodesPart(driver: Driver, dependencies: ExportDependencies): Part {
  const { db } = driver;
  const factsOf = async (node: string) => {
    const found = await db.select().from(facts).where(eq(facts.node, node)).orderBy(asc(facts.key));
    const more = await db.select().from(factParts).where(eq(factParts.node, node)).orderBy(asc(factParts.part));
    return found.flatMap(({ key, value: first, updatedAtMs }) => {
      const value = first + more.flatMap((one) => (one.key === key ? one.value : [])).join("");
      // damaged facts are skipped
      return isJson(value) ? { key, value, updatedAtMs } : [];
    });
  };
  const read = (node: string | undefined) => (from: string | undefined) => {
    const own = node === undefined ? undefined : eq(nodes.name, node);
    const after = from === undefined ? undefined : gt(nodes.name, from);
    return db.select().from(nodes).where(and(own, after)).orderBy(asc(nodes.name)).limit(PAGE_ROWS);
  };
  const step = async (row: typeof nodes.$inferSelect): Read<Step> => {
    const newest = await dependencies.snapshots([row.lastSnapshotId]);
    if (!newest.ok) return newest;
    const own = await db.select().from(latest).where(eq(latest.node, row.name)).orderBy(asc(latest.kind));
    const exported = {
      type: "node",
      ...row,
      latest: own.map(({ node: _, ...one }) => one),
      facts: await factsOf(row.name),
    } as const;
    return ok({ rows: [...newest.value, exported], at: row.name, atMs: null });
  };
  return ({ node }, first) => paged(driver, first, read(node), step, ({ name }) => name);
}

/** Counts of whole hours within the requested time; for partial hours the decisions themselves are exported. */
function hoursPart(driver: Driver): Part {
  const { db } = driver;
  type Hour = typeof hours.$inferSelect;
  const after = (from: string | undefined): SQL | undefined => {
    if (from === undefined) return undefined;
    const at = from.indexOf("/");
    return sql`(${hours.hourMs}, ${hours.node}) > (${Number(from.slice(0, at))}, ${from.slice(at + 1)})`;
  };
  const placed = (row: Hour): string => `${row.hourMs}/${row.node}`;
  const read =
    ({ node, sinceMs, untilMs }: ExportFilter) =>
    (from: string | undefined) => {
      const within = and(
        node === undefined ? undefined : eq(hours.node, node),
        sinceMs === undefined ? undefined : gte(hours.hourMs, hourOf(sinceMs + HOUR_MS - 1)),
        untilMs === undefined ? undefined : lt(hours.hourMs, hourOf(untilMs)),
        after(from),
      );
      return db.select().from(hours).where(within).orderBy(asc(hours.hourMs), asc(hours.node)).limit(PAGE_ROWS);
    };
  const step = async (row: Hour): Read<Step> => {
    const within = (table: typeof refusals | typeof outcomeHours) =>
      and(eq(table.hourMs, row.hourMs), eq(table.node, row.node));
    const refused = await db.select().from(refusals).where(within(refusals)).orderBy(asc(refusals.reason));
    const done = await db.select().from(outcomeHours).where(within(outcomeHours));
    const exported = {
      type: "hour",
      ...row,
      refusals: refused.map(({ reason, count }) => ({ reason, count })),
      outcomes: done.map(({ kind, reason, count }) => ({ kind, reason, count })),
    } as const;
    return ok({ rows: [exported], at: placed(row), atMs: null });
  };
  return (filter, first) => paged(driver, first, read(filter), step, placed);
}

function tokensPart(driver: Driver): Part {
  const read = (from: string | undefined) => {
    const after = from === undefined ? undefined : gt(tokens.id, from);
    return driver.db.select().from(tokens).where(after).orderBy(asc(tokens.id)).limit(PAGE_ROWS);
  };
  const step = async (row: typeof tokens.$inferSelect): Read<Step> =>
    ok({ rows: [{ type: "token", ...row, scopes: [...row.scopes] }], at: row.id, atMs: null });
  return async function* ({ tokens: isWanted }, first) {
    if (isWanted === true) yield* paged(driver, first, read, step, ({ id }) => id);
  };
}

/** A history as rows that move. Bounded in memory, whatever its size; no statement stays open between two rows. */
export function exportOf(driver: Driver): Pick<Store, "exportRows"> {
  return {
    exportRows: async function* (filter, after) {
      const dependencies = new ExportDependencies(driver);
      const parts: readonly (readonly [string, Part])[] = [
        ["decisions", decisionsPart(driver, dependencies)],
        ["outcomes", outcomesPart(driver, dependencies)],
        ["removals", removalsPart(driver)],
        ["nodes", nodesPart(driver, dependencies)],
        ["hours", hoursPart(driver)],
        ["tokens", tokensPart(driver)],
      ];
      if (after !== undefined && !PLACE.test(after))
        return yield failure("bad_page_token", `\`${after.slice(0, 64)}\` is no place of an export`);
      const [begun, from] = after === undefined ? [] : after.split(/\/(.*)/s);
      const first = begun === undefined ? 0 : parts.findIndex(([name]) => name === begun);
      for (const [i, [name, steps]] of parts.slice(first).entries())
        for await (const step of steps(filter, i === 0 ? from : undefined)) {
          if (!step.ok) {
            yield step;
            if (step.error.isRow !== true) return;
          } else {
            const { rows, at, atMs } = step.value;
            // a text is complete by itself; everything else of one step can be imported together
            const isText = (row: ExportRow): boolean => row.type === "text";
            const ordered = [...rows.filter(isText), ...rows.filter((row) => !isText(row))];
            yield ok({ rows: ordered, atMs, place: `${name}/${at}` });
          }
        }
    },
  };
}
