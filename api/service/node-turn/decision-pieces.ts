import { byteLength } from "../../../db/body.ts";
import type { BodyPiece } from "../../../db/rows.ts";
import { isObject } from "../../base/own.ts";
import { idOf, type Sha256 } from "../canonical.ts";
import { withVersion } from "../evaluate.ts";
import type { Decision } from "../evaluation.ts";
import { RangedText, SHORTEST_TEXT } from "./keyframe.ts";

/**
 * The text of a decision in the history, of which the node's next decisions of its kind repeat all but a few entries of lists. It has
 * only the positions: the texts of all entries would be a fifth of a node's state.
 */
export interface DecisionKeyframe {
  readonly id: string;
  /** The entries of the decision's lists. */
  readonly entries: readonly object[];
  /** Where each entry begins and ends in the text, two numbers per entry. */
  readonly positions: Uint32Array;
  /** The characters of entries that changed since, summed over all decisions that were stored with it. */
  readonly changed: number;
}
/** A decision as the history stores it. */
export interface DecisionPieces {
  readonly pieces: readonly BodyPiece[];
  readonly keyframe: DecisionKeyframe;
  /** The length of the whole text. */
  readonly length: number;
}
/** What the text of a decision consists of. */
type Answer = Pick<Decision, "parts" | "kubeletVersion">;

/** Null if later decisions gain nothing from it: if it is short, or has characters that take more than one byte. */
export async function decisionKeyframe(answer: Answer, sha256: Sha256): Promise<DecisionKeyframe | null> {
  const entries: object[] = [];
  const positions: number[] = [];
  let text = "";
  for (const token of tokensOf(answer)) {
    const from = text.length;
    text += textOf(token);
    if (typeof token === "string") continue;
    entries.push(token);
    positions.push(from, text.length);
  }
  if (text.length < SHORTEST_TEXT || byteLength(text) !== text.length) return null;
  return { id: await idOf(sha256, text), entries, positions: Uint32Array.from(positions), changed: 0 };
}

/** The decision's text as ranges of the keyframe's. Null if a whole text is cheaper, as for snapshots. */
export function decisionPieces(answer: Answer, keyframe: DecisionKeyframe): DecisionPieces | null {
  const { id, entries, positions } = keyframe;
  const places = new Map(entries.map((entry, i) => [entry, i]));
  const written = new RangedText(keyframe.changed);
  let length = 0;
  for (const token of tokensOf(answer)) {
    const i = typeof token === "object" ? places.get(token) : undefined;
    const [from = 0, to = 0] = i === undefined ? [] : positions.subarray(2 * i, 2 * i + 2);
    if (i !== undefined && written.addRange({ id, from, to, bytes: to - from }, ",")) {
      length += to - from;
      continue;
    }
    const text = textOf(token);
    written.addText(text, typeof token === "object");
    length += text.length;
  }
  if (!written.isShorter(length)) return null;
  return { pieces: written.pieces, keyframe: { ...keyframe, changed: written.changed }, length };
}

/** At most so many characters are encoded at a time: longer texts would be among V8's old objects. */
const CHUNK = 16 * 1024;
const encoder = new TextEncoder();

/** `head`, the text of a JSON object, with the members of the answer, in UTF-8. */
export function encodedAnswer(head: string, answer: Answer): Uint8Array<ArrayBuffer> {
  let bytes = new Uint8Array(4 * CHUNK);
  let end = 0;
  let chunk = `${head.slice(0, -1)},`;
  const write = (): void => {
    if (bytes.length - end < 3 * chunk.length) {
      const grown = new Uint8Array(2 * bytes.length + 3 * chunk.length);
      grown.set(bytes.subarray(0, end));
      bytes = grown;
    }
    end += encoder.encodeInto(chunk, bytes.subarray(end)).written;
    chunk = "";
  };
  const [first, ...rest] = tokensOf(answer);
  chunk += String(first).slice(1);
  for (const token of rest) {
    chunk += textOf(token);
    if (chunk.length > CHUNK) write();
  }
  write();
  return bytes.slice(0, end);
}

const textOf = (token: string | object): string => (typeof token === "string" ? token : JSON.stringify(token));

/** The text of the answer: what is between the entries of its lists, and the entries. */
function tokensOf({ parts, kubeletVersion }: Answer): readonly (string | object)[] {
  const tokens = [...tokensIn(parts)];
  tokens.push(withVersion(String(tokens.pop()), kubeletVersion));
  return tokens;
}
function* tokensIn(value: object): Generator<string | object> {
  let before = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const head = `${before}${JSON.stringify(name)}:`;
    before = ",";
    if (isList(member)) {
      yield `${head}[`;
      for (const [i, entry] of member.entries()) {
        if (i > 0) yield ",";
        yield entry;
      }
      yield "]";
    } else if (isObject(member) && Object.values(member).some(isList)) {
      yield head;
      yield* tokensIn(member);
    } else yield head + JSON.stringify(member);
  }
  yield before === "{" ? "{}" : "}";
}
const isList = (value: unknown): value is readonly object[] =>
  Array.isArray(value) && value.length > 0 && value.every(isObject);
