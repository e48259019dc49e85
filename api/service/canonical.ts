import { perObject } from "../base/cache.ts";
import { type Fields, isObject } from "../base/own.ts";
import { isVolatilePart } from "../decide/input.ts";
import type { Snapshot } from "../model/snapshot.ts";

/** sha256 of the UTF-8 of a text, lower case hex. */
export type Sha256 = (text: string) => string | Promise<string>;
/** A text, or its pieces in order. */
type Text = string | readonly string[];
/** `Sha256` that also takes a text in pieces. */
export type Sha256OfPieces = (text: Text) => string | Promise<string>;

/** The name used for a snapshot without a node. */
export const NO_NODE = "unknown";

export const idOf = async (sha256: Sha256, text: string): Promise<string> => (await sha256(text)).slice(0, 32);

/** Makes the id (32 hex digits) of a node's snapshot or decision from its text. */
export type Ids = (text: Text, node: string) => Promise<string>;
export const idsOf =
  (sha256: Sha256OfPieces): Ids =>
  async (text) =>
    (await sha256(text)).slice(0, 32);

/** The digits of a node's hash that name the place of its history, if each node has its own place. */
export const placeOf = async (sha256: Sha256, node: string): Promise<string> => (await sha256(node)).slice(0, 8);
/** The place in an id made by `idsWithPlace`. */
export const placeIn = (id: string): string => id.slice(0, 8);
/** Makes ids that begin with their node's place, so that an id is enough to find its row. */
export const idsWithPlace =
  (sha256: Sha256OfPieces): Ids =>
  async (text, node) =>
    (await placeOf(sha256, node)) + (await sha256(text)).slice(0, 24);

/** A piece of a snapshot's text. */
interface Segment {
  readonly text: string;
  /** The object that the text is of; null for separators. */
  readonly of: object | null;
}

/** The stored form of a snapshot, and the ranges of it that the node's next snapshots are likely to repeat. */
export interface Canonical {
  readonly text: string;
  readonly repeats: readonly (readonly [from: number, to: number])[];
}
/** The stored form with its text in pieces: most of them are those of the snapshot before, and only few snapshots need the whole text. */
export interface Segmented extends Pick<Canonical, "repeats"> {
  /** The length of the text. */
  readonly length: number;
  readonly segments: readonly Segment[];
  /** The parts that the node's next snapshots are likely to repeat, with the numbers of their segments, from and to (exclusive), in order. */
  readonly parts: readonly { readonly of: object; readonly from: number; readonly to: number }[];
}

/** The canonical text, equal to `JSON.stringify(snapshot)`. */
export function canonical(snapshot: Snapshot): Canonical {
  const { repeats, segments } = written(snapshot, inOne);
  return { text: textsOf(segments).join(""), repeats };
}

export const textsOf = (segments: Segmented["segments"]): readonly string[] => segments.map(({ text }) => text);

/** The canonical text for a node that is posted repeatedly: unchanged objects are not serialised again. */
export const canonicalInSegments = (snapshot: Snapshot): Segmented =>
  written(snapshot, (part, isVolatile) => (isVolatile ? inOne(part) : segmentsOf(part)));

/** `of`: the pieces of a part; null if it has no text. `isVolatile`: the part differs in every snapshot. */
function written(snapshot: Snapshot, of: (part: unknown, isVolatile: boolean) => readonly Segment[] | null): Segmented {
  const repeats: [number, number][] = [];
  const segments: Segment[] = [];
  const parts: Segmented["parts"][number][] = [];
  let length = 0;
  const add = (segment: Segment): void => {
    segments.push(segment);
    length += segment.text.length;
  };
  add(between("{"));
  let isOpen = false;
  for (const [name, part] of Object.entries(snapshot)) {
    const isVolatile = isVolatilePart(name);
    const own = of(part, isVolatile);
    if (own === null) continue;
    const from = length;
    add(between(`${from === 1 ? "" : ","}${JSON.stringify(name)}:`));
    const first = segments.length;
    own.forEach(add);
    if (!isVolatile && typeof part === "object" && part !== null)
      parts.push({ of: part, from: first, to: segments.length });
    const last = repeats.at(-1);
    if (isOpen && !isVolatile && last !== undefined) last[1] = length;
    else if (!isVolatile) repeats.push([from, length]);
    isOpen = !isVolatile;
  }
  add(between("}"));
  return { length, repeats, segments, parts };
}

const between = (text: string): Segment => ({ text, of: null });

/** The JSON text of a part, in the part's place. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** The value as one piece; null if JSON cannot represent it. */
function inOne(value: unknown): readonly Segment[] | null {
  if (value instanceof JsonText) return [between(value.text)];
  const text = JSON.stringify(value);
  return text === undefined ? null : [{ text, of: isObject(value) ? value : null }];
}

/** The text of a part of a snapshot; of one that had a text before, it is not made again. */
export const textOfPart = (part: unknown): string => textsOf(segmentsOf(part) ?? []).join("");

/** Null if JSON cannot represent the value. */
function segmentsOf(value: unknown): readonly Segment[] | null {
  if (Array.isArray(value) && isObject(value[0])) return listed(value);
  return isObject(value) ? ofObject(value) : inOne(value);
}
/** Caches texts by object: in a node's next snapshot most parts, and most entries of changed lists, are the same objects. */
const ofObject = perObject((part: Fields): readonly Segment[] => {
  const lists = Object.values(part).some((member) => Array.isArray(member) && isObject(member[0]));
  if (!lists) return [{ text: JSON.stringify(part), of: part }];
  const segments: Segment[] = [between("{")];
  for (const [name, member] of Object.entries(part)) {
    const own = isObject(member) ? [between(JSON.stringify(member))] : segmentsOf(member);
    if (own !== null) segments.push(between(`${segments.length === 1 ? "" : ","}${JSON.stringify(name)}:`), ...own);
  }
  return [...segments, between("}")];
});
const listed = (list: readonly object[]): readonly Segment[] => [
  between("["),
  ...list.flatMap((entry, i) => (i === 0 ? [entrySegment(entry)] : [COMMA, entrySegment(entry)])),
  between("]"),
];
const COMMA = between(",");
const entrySegment = perObject((entry: object): Segment => ({ text: JSON.stringify(entry), of: entry }));
