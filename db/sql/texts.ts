import { eq, sql } from "drizzle-orm";
import { Lru } from "../../api/base/cache.ts";
import { ok, type Result } from "../../api/base/result.ts";
import { byteLength, encodeBody, type Packing } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { BodyPiece, Ranges } from "../rows.ts";
import { type Driver, insertInto, prepared, type Statement } from "./driver.ts";
import { texts } from "./schema.ts";

/** A body taken apart: its own text, and the texts that it shares with other rows. */
export interface SplitBody {
  readonly rest: string;
  /** JSON of `[[place in the rest, id of the text], ...]`; for pieces also their range; null if nothing was cut out. */
  readonly parts: string | null;
  readonly ids: readonly string[];
  /** Bytes of the texts that were cut out, in UTF-8. */
  readonly bytes: number;
  /** Statements to run before the row's insert: they store the texts, or mark them as used. */
  readonly statements: readonly Statement[];
  /** Must be called after the commit. */
  readonly committed: () => void;
}

export interface Texts {
  /** `owner`: whose texts it probably repeats; `what` names the row in a failure. */
  cut(owner: string, what: string, body: Body, atMs: number): Promise<Result<SplitBody, StoreFailure>>;
  /** Returns the ids of removed texts, which are written again at their next use. */
  missing(ids: readonly string[]): Promise<readonly string[]>;
}

/** A body, and how to take it apart if its writer knows. */
interface Body {
  readonly body: string;
  readonly repeats?: Ranges;
  readonly pieces?: readonly BodyPiece[];
}

/** Shorter texts cost less in the row itself. */
const SHORTEST = 1024;
/** The maximum number of ranges cut out of one body; the rest stays in it. Pieces are not limited. */
const MAX_PARTS = 4;
/** The number of last texts in memory, which are recognised without hashing. */
const KNOWN = 256;
const LONGEST_KNOWN = 128 * 1024;
/** Texts of pieces that are known to be stored by their ids alone. */
const KNOWN_IDS = 32 * 1024;
/** INVARIANT: no row that refers to a text is younger than its `used_at_ms` by more than this. */
export const USE_MS = 30 * 60 * 1000;

const insert = insertInto(texts);
export const TOUCH = "UPDATE texts SET used_at_ms = ? WHERE id = ? AND used_at_ms < ?";

interface CachedText {
  readonly text: string;
  readonly id: string;
  readonly bytes: number;
  readonly usedAtMs: number;
}

/** Rows of one node repeat each other: their long texts are stored once, under the hash of their content. */
export function textsOf(driver: Driver): Texts {
  const { db, packing, digest } = driver;
  const known = new Lru<string, CachedText>(KNOWN);
  const lookup = prepared(driver, () =>
    db
      .select({ id: texts.id })
      .from(texts)
      .where(eq(texts.id, sql.placeholder("id"))),
  );
  const isStored = async (id: string): Promise<boolean> => (await lookup({ id })).length > 0;

  const remember = (slot: string, entry: CachedText): void => {
    if (entry.text.length <= LONGEST_KNOWN) known.set(slot, entry);
  };
  const place = async (
    slot: string,
    what: string,
    text: string,
    atMs: number,
  ): Promise<Result<CachedText & { readonly statement: Statement | null }, StoreFailure>> => {
    const last = known.get(slot);
    const same = last?.text === text ? last : undefined;
    if (same !== undefined && atMs - same.usedAtMs <= USE_MS) return ok({ ...same, statement: null });
    const id = same?.id ?? (await digest(text)).slice(0, 32);
    if (same !== undefined || (await isStored(id))) {
      const statement = { sql: TOUCH, params: [atMs, id, atMs] };
      return ok({ text, id, bytes: same?.bytes ?? byteLength(text), usedAtMs: atMs, statement });
    }
    const body = await encodeBody(what, text, packing);
    if (!body.ok) return body;
    const statement = insert({ id, usedAtMs: atMs, ...body.value });
    return ok({ text, id, bytes: body.value.bytes, usedAtMs: atMs, statement });
  };
  const ofPieces = pieceCutter(packing, isStored);
  return {
    cut: async (owner, what, { body, repeats: ranges = [], pieces }, atMs) => {
      if (pieces !== undefined) return ofPieces.cut(what, pieces, atMs);
      let rest = "";
      let from = 0;
      let bytes = 0;
      const parts: [number, string][] = [];
      const statements: Statement[] = [];
      const used: [string, CachedText][] = [];
      for (const [i, [start, end]] of ranges.entries()) {
        if (end - start < SHORTEST || parts.length === MAX_PARTS) continue;
        const text = body.slice(start, end);
        const placed = await place(`${owner} ${i}`, what, text, atMs);
        // a text that does not fit into a row stays in the body, which may be sliced
        if (!placed.ok && placed.error.code === "too_large") continue;
        if (!placed.ok) return placed;
        const { statement, ...entry } = placed.value;
        rest += body.slice(from, start);
        from = end;
        parts.push([rest.length, entry.id]);
        bytes += entry.bytes;
        if (statement !== null) statements.push(statement);
        used.push([`${owner} ${i}`, entry]);
      }
      return ok({
        rest: from === 0 ? body : rest + body.slice(from),
        parts: parts.length === 0 ? null : JSON.stringify(parts),
        ids: parts.map(([, id]) => id),
        bytes,
        statements,
        committed: () => {
          for (const [slot, entry] of used) remember(slot, entry);
        },
      });
    },
    missing: async (ids) => {
      const gone: string[] = [];
      for (const id of new Set(ids)) {
        if (await isStored(id)) continue;
        gone.push(id);
        known.deleteWhere((entry) => entry.id === id);
        ofPieces.forget(id);
      }
      return gone;
    },
  };
}

/** Splits bodies as their writers specify. */
function pieceCutter(packing: Packing, isStored: (id: string) => Promise<boolean>) {
  const usedAtMs = new Lru<string, number>(KNOWN_IDS);
  /** The statement that stores a text of pieces, or notes that it is in use. Null: neither is needed. */
  const use = async (
    what: string,
    piece: Exclude<BodyPiece, string>,
    atMs: number,
  ): Promise<Result<Statement | null, StoreFailure>> => {
    const last = usedAtMs.get(piece.id);
    if (last !== undefined && atMs - last <= USE_MS) return ok(null);
    const touch = { sql: TOUCH, params: [atMs, piece.id, atMs] };
    if (!("text" in piece) || (await isStored(piece.id))) return ok(touch);
    const body = await encodeBody(what, piece.text, packing);
    return body.ok ? ok(insert({ id: piece.id, usedAtMs: atMs, ...body.value })) : body;
  };
  const cut = async (
    what: string,
    pieces: readonly BodyPiece[],
    atMs: number,
  ): Promise<Result<SplitBody, StoreFailure>> => {
    let rest = "";
    let bytes = 0;
    const parts: [number, string, number, number][] = [];
    const used = new Map<string, Statement | null>();
    for (const piece of pieces) {
      if (typeof piece === "string") {
        rest += piece;
        continue;
      }
      const { id } = piece;
      const placed = used.has(id) ? ok(null) : await use(what, piece, atMs);
      // a text that does not fit into a row stays in the body, which may be sliced
      if (!placed.ok && placed.error.code === "too_large" && "text" in piece) {
        rest += piece.text;
        continue;
      }
      if (!placed.ok) return placed;
      if (!used.has(id)) used.set(id, placed.value);
      const [from, to] = "text" in piece ? [0, piece.text.length] : [piece.from, piece.to];
      parts.push([rest.length, id, from, to]);
      bytes += "text" in piece ? byteLength(piece.text) : piece.bytes;
    }
    return ok({
      rest,
      parts: parts.length === 0 ? null : JSON.stringify(parts),
      ids: [...used.keys()],
      bytes,
      statements: [...used.values()].filter((statement) => statement !== null),
      committed: () => {
        for (const [id, statement] of used) if (statement !== null) usedAtMs.set(id, atMs);
      },
    });
  };
  return { cut, forget: (id: string): void => usedAtMs.delete(id) };
}

/** The kind of row that owns slices: a trigger removes them with the row. */
type Owner = "decision" | "snapshot";
/** INVARIANT: texts with this prefix belong to that row alone; the ids of shared texts are hashes. */
const sliceId = (owner: Owner, id: string, of: SliceOf, n: number): string => `${owner}/${id}/${of}/${n}`;
/** Which text of the row a slice continues. */
export type SliceOf = "body" | "ask";
/** The text of a row that the text of this id continues; null: it is a shared one. */
export const sliceOf = (id: string): SliceOf | null =>
  id.includes("/") ? (id.split("/").at(-2) === "ask" ? "ask" : "body") : null;

/** The statements that store slices of a row's texts, and the row's `parts` with the slices after its shared texts. */
export function placeSlices(
  owner: Owner,
  id: string,
  parts: string | null,
  slices: Readonly<Partial<Record<SliceOf, readonly Uint8Array[]>>>,
  atMs: number,
): { readonly statements: readonly Statement[]; readonly parts: string | null } {
  const statements: Statement[] = [];
  const places: [number, string][] = [];
  for (const [of, own] of Object.entries(slices) as [SliceOf, readonly Uint8Array[]][])
    for (const [n, body] of own.entries()) {
      const slice = sliceId(owner, id, of, n);
      places.push([0, slice]);
      statements.push(insert({ id: slice, usedAtMs: atMs, bytes: body.byteLength, encoding: "gzip", body }));
    }
  if (places.length === 0) return { statements, parts };
  return {
    statements,
    parts: JSON.stringify([...(parts === null ? [] : (JSON.parse(parts) as unknown[])), ...places]),
  };
}

/** A condition for rows that refer to texts: all of them exist. Its parameter is `textIdsJson`. */
export const TEXTS_ARE_STORED =
  "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM texts WHERE texts.id = json_each.value))";
export const textIdsJson = (cuts: readonly Pick<SplitBody, "ids">[]): string =>
  JSON.stringify([...new Set(cuts.flatMap((cut) => cut.ids))]);
