import { eq, sql } from "drizzle-orm";
import { Lru } from "../../api/model/cache.ts";
import { ok, type Result } from "../../api/model/result.ts";
import { byteLength, encodeBody } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { Ranges } from "../rows.ts";
import { type Driver, insertInto, once, type Statement } from "./driver.ts";
import { texts } from "./schema.ts";

/** A body taken apart: what is its own, and the texts that it shares with other rows. */
export interface Cut {
  readonly rest: string;
  /** JSON of `[[place in the rest, id of the text], ...]`; null when nothing was cut out. */
  readonly parts: string | null;
  readonly ids: readonly string[];
  /** Bytes of the texts that were cut out, in UTF-8. */
  readonly bytes: number;
  /** To run before the row is inserted: they store the texts, or note that they are in use. */
  readonly statements: readonly Statement[];
  /** To call once they are committed. */
  readonly committed: () => void;
}

export interface Texts {
  /** `owner` names whose text it is likely to be again; `what` names the row in a failure. */
  cut(
    owner: string,
    what: string,
    body: string,
    ranges: Ranges | undefined,
    atMs: number,
  ): Promise<Result<Cut, StoreFailure>>;
  /** False when one of them is gone, which is then written again at its next use. */
  areStored(ids: readonly string[]): Promise<boolean>;
}

/** Shorter ones cost less where they are. */
const SHORTEST = 1024;
/** Texts cut out of one body; what is beyond stays in it. */
const MAX_PARTS = 4;
/** This many texts, the last ones, are kept in memory, to be recognized without a hash. */
const KNOWN = 256;
const LONGEST_KNOWN = 128 * 1024;
/** INVARIANT: no row that refers to a text is younger than its `used_at_ms` by more than this. */
export const USE_MS = 30 * 60 * 1000;

const insert = insertInto(texts);
const TOUCH = "UPDATE texts SET used_at_ms = ? WHERE id = ? AND used_at_ms < ?";

interface Known {
  readonly text: string;
  readonly id: string;
  readonly bytes: number;
  readonly usedAtMs: number;
}

/** Rows of one node repeat each other: their long texts are stored once, under the hash of their content. */
export function textsOf({ db, packing, digest }: Pick<Driver, "db" | "packing" | "digest">): Texts {
  const known = new Lru<string, Known>(KNOWN);
  const lookup = once(() =>
    db
      .select({ id: texts.id })
      .from(texts)
      .where(eq(texts.id, sql.placeholder("id")))
      .prepare(),
  );
  const isStored = async (id: string): Promise<boolean> => (await lookup().all({ id })).length > 0;

  const remember = (slot: string, entry: Known): void => {
    if (entry.text.length <= LONGEST_KNOWN) known.set(slot, entry);
  };
  const place = async (
    slot: string,
    what: string,
    text: string,
    atMs: number,
  ): Promise<Result<Known & { readonly statement: Statement | null }, StoreFailure>> => {
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
  return {
    cut: async (owner, what, body, ranges = [], atMs) => {
      let rest = "";
      let from = 0;
      let bytes = 0;
      const parts: [number, string][] = [];
      const statements: Statement[] = [];
      const used: [string, Known][] = [];
      for (const [i, [start, end]] of ranges.entries()) {
        if (end - start < SHORTEST || parts.length === MAX_PARTS) continue;
        const text = body.slice(start, end);
        const placed = await place(`${owner} ${i}`, what, text, atMs);
        // one that no row can hold stays in the body, which may be sliced
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
    areStored: async (ids) => {
      let all = true;
      for (const id of ids) {
        if (await isStored(id)) continue;
        all = false;
        known.deleteWhere((entry) => entry.id === id);
      }
      return all;
    },
  };
}

/** The kind of row that owns slices: a trigger removes them with the row. */
type Owner = "decision" | "snapshot";
/** INVARIANT: what begins with this belongs to that row alone; the ids of shared texts are hashes. */
const sliceId = (owner: Owner, id: string, of: SliceOf, n: number): string => `${owner}/${id}/${of}/${n}`;
/** Which of a row's own texts a slice continues. */
export type SliceOf = "body" | "ask";
/** The text of a row that the text of this id continues; null: it is a shared one. */
export const sliceOf = (id: string): SliceOf | null =>
  id.includes("/") ? (id.split("/").at(-2) === "ask" ? "ask" : "body") : null;

/** The statements that store slices of a row's texts, and the row's `parts` with the slices behind its shared texts. */
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

/** A condition for writing rows that refer to texts: none of them is gone. Its parameter is `textsGuard`. */
export const TEXTS_ARE_STORED =
  "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM texts WHERE texts.id = json_each.value))";
export const textsGuard = (cuts: readonly Pick<Cut, "ids">[]): string =>
  JSON.stringify([...new Set(cuts.flatMap((cut) => cut.ids))]);
