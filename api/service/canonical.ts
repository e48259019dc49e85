import { ALWAYS_NEW } from "../decide/input.ts";
import { perObject } from "../model/cache.ts";
import { type Fields, isObject } from "../model/own.ts";
import type { Snapshot } from "../model/snapshot.ts";

export type Sha256 = (text: string) => string | Promise<string>;

/** A snapshot without a node is of this one. */
export const NO_NODE = "unknown";

export const idOf = async (sha256: Sha256, text: string): Promise<string> => (await sha256(text)).slice(0, 32);

/** The stored form of a snapshot, and the ranges of it that the node's next snapshots are likely to repeat. */
export interface Canonical {
  readonly text: string;
  readonly repeats: readonly (readonly [from: number, to: number])[];
}

const NEW: ReadonlySet<string> = new Set(ALWAYS_NEW);

/** As `JSON.stringify(snapshot)` writes it. */
export function canonical(snapshot: Snapshot): Canonical {
  const repeats: [number, number][] = [];
  let text = "{";
  let isOpen = false;
  for (const [name, part] of Object.entries(snapshot)) {
    const value = textOf(part);
    if (value === undefined) continue;
    const isNew = NEW.has(name);
    const from = text.length;
    text += `${from === 1 ? "" : ","}${JSON.stringify(name)}:${value}`;
    const last = repeats.at(-1);
    if (isOpen && !isNew && last !== undefined) last[1] = text.length;
    else if (!isNew) repeats.push([from, text.length]);
    isOpen = !isNew;
  }
  return { text: `${text}}`, repeats };
}

const textOf = (part: unknown): string | undefined => (isObject(part) ? objectText(part) : listOrScalar(part));
/** Parts are the same objects in a node's next snapshot, and so are most entries of a part that is another. */
const objectText = perObject((part: Fields): string => {
  const members = Object.entries(part).flatMap(([name, member]) => {
    const value = listOrScalar(member);
    return value === undefined ? [] : `${JSON.stringify(name)}:${value}`;
  });
  return `{${members.join(",")}}`;
});
const listOrScalar = (value: unknown): string | undefined =>
  Array.isArray(value) && isObject(value[0]) ? `[${value.map(entryText).join(",")}]` : JSON.stringify(value);
const entryText = perObject((entry: object): string => JSON.stringify(entry));
