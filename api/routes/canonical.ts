import { ALWAYS_NEW } from "../decide/input.ts";
import type { Snapshot } from "../model/snapshot.ts";

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
    const value: string | undefined = JSON.stringify(part);
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
