import { byteLength } from "../../../db/body.ts";
import type { BodyPiece } from "../../../db/rows.ts";
import { idOf, type Segmented, type Sha256, textsOf } from "../canonical.ts";

/** Texts of an earlier snapshot of a node in the history, with the position of each object's text. */
export interface Keyframe {
  readonly places: WeakMap<object, TextRange>;
  /** The characters of objects that changed since, summed over all snapshots that were stored with them. */
  readonly changed: number;
}
interface TextRange {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  /** The length of the text in UTF-8. */
  readonly bytes: number;
}

/** The shortest text that rows share; a shorter one costs less in its row. */
export const SHORTEST_TEXT = 1024;
/** The shortest range of such a text. */
const SHORTEST_RANGE = 128;

/** A snapshot as the history stores it, with its stable parts as separate texts, and those texts. */
export async function asKeyframe(
  { repeats, segments, parts }: Segmented,
  sha256: Sha256,
): Promise<{ readonly pieces: readonly BodyPiece[]; readonly keyframe: Keyframe }> {
  const places = new WeakMap<object, TextRange>();
  const pieces: BodyPiece[] = [];
  const text = textsOf(segments).join("");
  const starts = startsOf(segments);
  const objects = [...segments.map(({ of }, i) => ({ of, from: i, to: i + 1 })), ...parts];
  let end = 0;
  for (const [from, to] of repeats) {
    if (to - from < SHORTEST_TEXT) continue;
    const own = text.slice(from, to);
    const id = await idOf(sha256, own);
    pieces.push(text.slice(end, from), { id, text: own });
    end = to;
    for (const object of objects) {
      const [begin, after] = [starts[object.from] as number, starts[object.to] as number];
      if (object.of !== null && begin >= from && after <= to)
        places.set(object.of, {
          id,
          from: begin - from,
          to: after - from,
          bytes: byteLength(text.slice(begin, after)),
        });
    }
  }
  return { pieces: [...pieces, text.slice(end)], keyframe: { places, changed: 0 } };
}

/** Where each segment begins in the text, and where the last one ends. */
function startsOf(segments: Segmented["segments"]): readonly number[] {
  let at = 0;
  return [0, ...segments.map(({ text }) => (at += text.length))];
}

/**
 * The text as ranges of an earlier snapshot's texts. Null if a new keyframe is cheaper: if less than half is unchanged, or if what changed
 * was stored so often that it adds up to a whole snapshot.
 */
export function piecesOf(
  { length: whole, segments, parts }: Segmented,
  { places, changed: before }: Keyframe,
): { readonly pieces: readonly BodyPiece[]; readonly keyframe: Keyframe } | null {
  const written = new RangedText(before);
  const partAt = new Map(parts.map((part) => [part.from, part]));
  const isInPart = (i: number): boolean => parts.some(({ from, to }) => i >= from && i < to);
  for (let i = 0; i < segments.length; ) {
    const { text, of } = segments[i] as Segmented["segments"][number];
    const part = partAt.get(i);
    const ofPart = part && places.get(part.of);
    const place = ofPart ?? (of === null ? undefined : places.get(of));
    // between two entries of a list, or two parts, there is one text: if it is as long as in the earlier text, it is the same
    const between = part === undefined ? "," : segments[i - 1]?.text;
    const isRange = place !== undefined && written.addRange(place, between);
    if (!isRange) written.addText(text, place === undefined && of !== null && isInPart(i));
    i = isRange && ofPart !== undefined ? (part?.to ?? i + 1) : i + 1;
  }
  return written.isShorter(whole) ? { pieces: written.pieces, keyframe: { places, changed: written.changed } } : null;
}

/** A text as ranges of an earlier one, and texts of its own between them. */
export class RangedText {
  readonly #pieces: BodyPiece[] = [];
  #own = "";
  #known = 0;
  /** The characters that changed, added to those of earlier texts. */
  changed: number;

  constructor(changed: number) {
    this.changed = changed;
  }
  get pieces(): readonly BodyPiece[] {
    return [...this.#pieces, this.#own];
  }

  addText(text: string, isChanged = false): void {
    this.#own += text;
    if (isChanged) this.changed += text.length;
  }

  /** `between`: the text between this range and the one before in the earlier text. False: it costs less to add the text. */
  addRange({ id, from, to, bytes }: TextRange, between: string | undefined): boolean {
    const own = this.#own;
    const last = this.#pieces.at(-1);
    const range = typeof last === "object" && "from" in last && last.id === id && own === between ? last : undefined;
    const isNext = range !== undefined && range.to + own.length === from;
    if (!isNext && to - from < SHORTEST_RANGE) return false;
    if (isNext) this.#pieces[this.#pieces.length - 1] = { ...range, to, bytes: range.bytes + own.length + bytes };
    else this.#pieces.push(own, { id, from, to, bytes });
    this.#own = "";
    this.#known += to - from;
    return true;
  }

  /** Whether the pieces cost less than a new whole text of this length: see `piecesOf`. */
  isShorter(length: number): boolean {
    return this.#known * 2 >= length && this.changed <= length;
  }
}
