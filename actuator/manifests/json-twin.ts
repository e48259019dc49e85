import type { Place } from "./problem.ts";

export interface JsonTwin {
  readonly key: string;
  /** Of the second one. */
  readonly place: Place;
}

/** The first key that stands twice in one object of a text that is JSON, of which `JSON.parse` takes the last; null: none does. */
export function jsonTwinOf(text: string): JsonTwin | null {
  /** The keys of each open object; null for a list. */
  const open: (Set<string> | null)[] = [];
  let keys: Set<string> | null = null;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "{") open.push(new Set());
    else if (character === "[") open.push(null);
    else if (character === "}" || character === "]") open.pop();
    // behind these a key comes, if anything
    if (character === "{" || character === ",") keys = open.at(-1) ?? null;
    if (character !== '"') continue;
    const end = endOfText(text, at);
    if (keys !== null) {
      const key = JSON.parse(text.slice(at, end)) as string;
      if (keys.has(key)) return { key, place: placeAt(text, at) };
      keys.add(key);
      keys = null;
    }
    at = end - 1;
  }
  return null;
}

function endOfText(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function placeAt(text: string, at: number): Place {
  const lines = text.slice(0, at).split("\n");
  return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}
