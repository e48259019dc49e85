import { ok, type Result } from "../../api/base/result.ts";
import { decodeBody, type Packing, type StoredBody } from "../body.ts";
import { corruptRow, type StoreFailure } from "../failure.ts";
import type { Pieces, SharedText } from "../rows.ts";
import type { texts } from "./schema.ts";
import { type SliceOf, sliceOf } from "./texts.ts";

type Text = typeof texts.$inferSelect;
interface BodyWithParts extends StoredBody {
  readonly parts: string | null;
}

export const DAMAGED = "the places of its texts are damaged; restore the database from a backup";
/** The place of a shared text; with a range, of a part of the text. */
type TextPart = readonly [at: number, id: string] | readonly [at: number, id: string, from: number, to: number];
/** Parses the places of texts. Null: invalid. */
export function placesIn(parts: string | null): readonly TextPart[] | null {
  try {
    const places = JSON.parse(parts ?? "[]") as unknown;
    const isPlace = (one: unknown): boolean =>
      Array.isArray(one) &&
      Number.isInteger(one[0]) &&
      typeof one[1] === "string" &&
      (one.length === 2 || (Number.isInteger(one[2]) && Number.isInteger(one[3])));
    return Array.isArray(places) && places.every(isPlace) ? (places as TextPart[]) : null;
  } catch {
    return null;
  }
}

/** The joined rows of a query, one entry per base row, in order. */
export function grouped<J extends { readonly row: { readonly seq: number }; readonly text: Text | null }>(
  joined: readonly J[],
): readonly (J & { readonly texts: readonly Text[] })[] {
  const rows = new Map<number, J & { texts: Text[] }>();
  for (const one of joined) {
    const entry = rows.get(one.row.seq) ?? { ...one, texts: [] };
    rows.set(one.row.seq, entry);
    if (one.text !== null) entry.texts.push(one.text);
  }
  return [...rows.values()];
}

/** A row's own text with its separately stored slices. `corrupt`: one is missing, or the places are damaged. */
export function withSlices<B extends StoredBody>(
  what: string,
  stored: B,
  parts: string | null,
  shared: readonly Text[],
  of: SliceOf,
): Result<B, StoreFailure> {
  if (parts === null || typeof stored.body === "string" || !parts.includes("/")) return ok(stored);
  const places = placesIn(parts);
  if (places === null) return corruptRow(`${what}: ${DAMAGED}`);
  const slices: Uint8Array[] = [stored.body];
  for (const [, id] of places) {
    if (sliceOf(id) !== of) continue;
    const body = shared.find((one) => one.id === id)?.body;
    if (!(body instanceof Uint8Array)) return missing(what, id);
    slices.push(body);
  }
  return ok(slices.length === 1 ? stored : { ...stored, body: concat(slices) });
}

export const missing = (what: string, id: string): Result<never, StoreFailure> =>
  corruptRow(`${what}: its text \`${id}\` is missing; restore the database from a backup`);

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

/** The number of characters of unpacked texts in the cache. */
const KEPT_LENGTH = 2 * 1024 * 1024;

/** Takes bodies apart into pieces. `what` names the row in the failure. */
type PiecesReader = (
  what: string,
  row: BodyWithParts,
  shared: readonly Text[],
) => Promise<Result<Pieces, StoreFailure>>;

/** Reads bodies one after the other. The last texts stay unpacked in a cache: a text never changes, and rows that share it come together. */
export function piecesReader(packing: Packing): PiecesReader {
  const known = new Map<string, string>();
  let length = 0;
  const read = async (what: string, text: Text): Promise<Result<string, StoreFailure>> => {
    const found = known.get(text.id);
    if (found !== undefined) return ok(found);
    const decoded = await decodeBody(what, text, packing);
    if (!decoded.ok || known.has(text.id)) return decoded;
    known.set(text.id, decoded.value);
    length += decoded.value.length;
    for (const [id, oldest] of known) {
      if (length <= KEPT_LENGTH) break;
      known.delete(id);
      length -= oldest.length;
    }
    return decoded;
  };
  return async (what, row, shared) => {
    const places = placesIn(row.parts);
    if (places === null) return corruptRow(`${what}: ${DAMAGED}`);
    const whole = withSlices(what, row, row.parts, shared, "body");
    if (!whole.ok) return whole;
    const rest = await decodeBody(what, whole.value, packing);
    if (!rest.ok) return rest;
    const found: SharedText[] = [];
    const byId = new Map(shared.map((text) => [text.id, text]));
    for (const [at, id, from, to] of places) {
      if (sliceOf(id) !== null) continue;
      const text = byId.get(id);
      if (text === undefined) return missing(what, id);
      if (from === undefined || to === undefined) found.push({ at, id, read: () => read(what, text) });
      else {
        const range = async (): Promise<Result<string, StoreFailure>> => {
          const whole = await read(what, text);
          if (!whole.ok) return whole;
          return to <= whole.value.length ? ok(whole.value.slice(from, to)) : corruptRow(`${what}: ${DAMAGED}`);
        };
        found.push({ at, id: `${id}:${from}-${to}`, isRange: true, read: range });
      }
    }
    return ok({ rest: rest.value, shared: found });
  };
}

/** The inverse of `cut`: the body with its texts put back. `what` names the row in the failure. */
type BodyReader = (what: string, row: BodyWithParts, shared: readonly Text[]) => Promise<Result<string, StoreFailure>>;

export function bodyReader(packing: Packing): BodyReader {
  const piecesOf = piecesReader(packing);
  return async (what, row, shared) => {
    const pieces = await piecesOf(what, row, shared);
    return pieces.ok ? joined(pieces.value) : pieces;
  };
}

/** Joins the pieces into the body. */
export async function joined({ rest, shared }: Pieces): Promise<Result<string, StoreFailure>> {
  let body = "";
  let from = 0;
  for (const { at, read } of shared) {
    const text = await read();
    if (!text.ok) return text;
    body += rest.slice(from, at) + text.value;
    from = at;
  }
  return ok(body + rest.slice(from));
}
