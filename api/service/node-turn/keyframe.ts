import { byteLength } from "../../../db/body.ts";
import type { BodyPiece } from "../../../db/rows.ts";
import { idOf, type Segmented, type Sha256 } from "../canonical.ts";

/** Texts of an earlier snapshot of a node in the history, with the position of each object's text. */
export interface Keyframe {
  readonly places: WeakMap<object, TextRange>;
}
interface TextRange {
  readonly id: string;
  readonly from: number;
  readonly to: number;
}

/** The shortest text that is stored as a range; a shorter one costs less in place. */
const SHORTEST = 1024;

/** A snapshot as the history stores it, with its stable parts as separate texts, and those texts. */
export async function asKeyframe(
  { text, repeats, segments, parts }: Segmented,
  sha256: Sha256,
): Promise<{ readonly pieces: readonly BodyPiece[]; readonly keyframe: Keyframe }> {
  const places = new WeakMap<object, TextRange>();
  const pieces: BodyPiece[] = [];
  const starts = startsOf(segments);
  const objects = [...segments.map(({ of }, i) => ({ of, from: i, to: i + 1 })), ...parts];
  let end = 0;
  for (const [from, to] of repeats) {
    if (to - from < SHORTEST) continue;
    const own = text.slice(from, to);
    const id = await idOf(sha256, own);
    pieces.push(text.slice(end, from), { id, text: own });
    end = to;
    for (const object of objects) {
      const [begin, after] = [starts[object.from] as number, starts[object.to] as number];
      if (object.of !== null && begin >= from && after <= to)
        places.set(object.of, { id, from: begin - from, to: after - from });
    }
  }
  return { pieces: [...pieces, text.slice(end)], keyframe: { places } };
}

/** Where each segment begins in the text, and where the last one ends. */
function startsOf(segments: Segmented["segments"]): readonly number[] {
  let at = 0;
  return [0, ...segments.map(({ text }) => (at += text.length))];
}

/** The text as ranges of an earlier snapshot's texts. Null if less than half is unchanged. */
export function piecesOf({ text, segments, parts }: Segmented, { places }: Keyframe): readonly BodyPiece[] | null {
  const pieces: BodyPiece[] = [];
  const partAt = new Map(parts.map((part) => [part.from, part]));
  let own = "";
  let known = 0;
  for (let i = 0; i < segments.length; ) {
    const part = partAt.get(i);
    const ofPart = part && places.get(part.of);
    const same = segments.slice(i, ofPart === undefined ? i + 1 : part?.to);
    const length = sum(same, (one) => one.length);
    const of = segments[i]?.of ?? null;
    const place = length < SHORTEST / 8 ? undefined : (ofPart ?? (of === null ? undefined : places.get(of)));
    if (place === undefined) {
      own += segments[i++]?.text;
      continue;
    }
    known += length;
    const bytes = sum(same, byteLength);
    const last = pieces.at(-1);
    // between two entries of a list, or two parts, there is one text: if it is as long as in the earlier text, it is the same
    const isBetween = own === "," || (part !== undefined && own === segments[i - 1]?.text);
    const isNext = typeof last === "object" && "from" in last && last.id === place.id;
    if (isNext && isBetween && last.to + own.length === place.from)
      pieces[pieces.length - 1] = { ...last, to: place.to, bytes: last.bytes + own.length + bytes };
    else pieces.push(own, { ...place, bytes });
    own = "";
    i += same.length;
  }
  return known * 2 < text.length ? null : [...pieces, own];
}
const sum = (segments: Segmented["segments"], of: (text: string) => number): number =>
  segments.reduce((total, { text }) => total + of(text), 0);
