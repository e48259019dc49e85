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
  { text, repeats, segments }: Segmented,
  sha256: Sha256,
): Promise<{ readonly pieces: readonly BodyPiece[]; readonly keyframe: Keyframe }> {
  const places = new WeakMap<object, TextRange>();
  const pieces: BodyPiece[] = [];
  let end = 0;
  for (const [from, to] of repeats) {
    if (to - from < SHORTEST) continue;
    const own = text.slice(from, to);
    const id = await idOf(sha256, own);
    pieces.push(text.slice(end, from), { id, text: own });
    end = to;
    let at = 0;
    for (const segment of segments) {
      if (segment.of !== null && at >= from && at + segment.text.length <= to)
        places.set(segment.of, { id, from: at - from, to: at - from + segment.text.length });
      at += segment.text.length;
    }
  }
  return { pieces: [...pieces, text.slice(end)], keyframe: { places } };
}

/** The text as ranges of an earlier snapshot's texts. Null if less than half is unchanged. */
export function piecesOf({ text, segments }: Segmented, { places }: Keyframe): readonly BodyPiece[] | null {
  const pieces: BodyPiece[] = [];
  let own = "";
  let known = 0;
  for (const { text: part, of } of segments) {
    const place = of === null || part.length < SHORTEST / 8 ? undefined : places.get(of);
    if (place === undefined) {
      own += part;
      continue;
    }
    known += part.length;
    const last = pieces.at(-1);
    // two list entries with the comma between them that are adjacent in the earlier text too
    const isNext = typeof last === "object" && "from" in last && last.id === place.id && last.to + 1 === place.from;
    if (isNext && own === ",")
      pieces[pieces.length - 1] = { ...last, to: place.to, bytes: last.bytes + 1 + byteLength(part) };
    else pieces.push(own, { ...place, bytes: byteLength(part) });
    own = "";
  }
  return known * 2 < text.length ? null : [...pieces, own];
}
