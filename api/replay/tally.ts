import type { DecisionHead } from "../../db/store.ts";
import type { Compared } from "./replay-one.ts";

/** What became of a decision; `unreadable`: it, or what it was decided on, is damaged. */
export type Fate = Compared["state"] | "unreadable";
/** How many decisions were made again, and what became of all. `replayed` is `same`, `differs` and `refused` together. */
export type Counts = { readonly replayed: number } & { readonly [State in Fate]: number };

/** Those of which nothing can be said. */
export const lostOf = ({ gone, unreadable }: Counts): number => gone + unreadable;
/** All that were looked at. */
export const passedOf = (counts: Counts): number => counts.replayed + lostOf(counts);

/** Decisions that are others now: of which kind, and from which verdict to which. */
export interface VerdictChange {
  readonly kind: string;
  readonly recorded: string;
  /** The same as `recorded`: the decision differs below it. Null: it is refused now. */
  readonly replayed: string | null;
  readonly count: number;
}

/** Everything that was counted. Grows with the nodes and kinds of a history, not with its decisions. */
export interface Tally {
  readonly counts: Counts;
  readonly byKind: Readonly<Record<string, Counts>>;
  readonly byNode: Readonly<Record<string, Counts>>;
  /** The most frequent first. */
  readonly verdicts: readonly VerdictChange[];
}

type Counting = { -readonly [Name in keyof Counts]: number };
const nothing = (): Counting => ({ replayed: 0, same: 0, differs: 0, refused: 0, gone: 0, unreadable: 0 });
const NAMES = Object.keys(nothing()) as readonly (keyof Counts)[];

function add(to: Counting, more: Counts): void {
  for (const name of NAMES) to[name] += more[name];
}
function addAt(map: Map<string, Counting>, key: string, more: Counts): void {
  const known = map.get(key) ?? nothing();
  map.set(key, known);
  add(known, more);
}

export class Counter {
  readonly #counts = nothing();
  readonly #byKind = new Map<string, Counting>();
  readonly #byNode = new Map<string, Counting>();
  readonly #verdicts = new Map<string, VerdictChange>();

  get counts(): Counts {
    return this.#counts;
  }

  /** One decision. */
  count(
    { kind, node, verdict }: Pick<DecisionHead, "kind" | "node" | "verdict">,
    again: { readonly state: Fate; readonly verdict: string | null },
  ): void {
    const isLost = again.state === "gone" || again.state === "unreadable";
    const one = { ...nothing(), replayed: isLost ? 0 : 1, [again.state]: 1 };
    add(this.#counts, one);
    addAt(this.#byKind, kind, one);
    addAt(this.#byNode, node, one);
    if (again.state === "differs" || again.state === "refused") {
      this.#change({ kind, recorded: verdict, replayed: again.verdict, count: 1 });
    }
  }

  /** What was counted elsewhere. */
  add({ counts, byKind, byNode, verdicts }: Tally): void {
    add(this.#counts, counts);
    for (const [kind, more] of Object.entries(byKind)) addAt(this.#byKind, kind, more);
    for (const [node, more] of Object.entries(byNode)) addAt(this.#byNode, node, more);
    for (const change of verdicts) this.#change(change);
  }

  #change(change: VerdictChange): void {
    const key = JSON.stringify([change.kind, change.recorded, change.replayed]);
    const count = (this.#verdicts.get(key)?.count ?? 0) + change.count;
    this.#verdicts.set(key, { ...change, count });
  }

  tally(): Tally {
    return {
      counts: { ...this.#counts },
      byKind: fromEntries(this.#byKind),
      byNode: fromEntries(this.#byNode),
      verdicts: [...this.#verdicts.values()].sort((a, b) => b.count - a.count || (nameOf(a) < nameOf(b) ? -1 : 1)),
    };
  }
}

const nameOf = ({ kind, recorded, replayed }: VerdictChange): string => `${kind} ${recorded} ${replayed ?? ""}`;
const fromEntries = (map: ReadonlyMap<string, Counting>): Record<string, Counts> =>
  Object.fromEntries([...map].map(([key, counts]) => [key, { ...counts }]));
