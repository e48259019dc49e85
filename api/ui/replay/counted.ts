import * as z from "zod";
import { PROBLEMS } from "../../http/problem.ts";
import type { ProblemCode } from "../../service/problem.ts";
import type { ReplayAnswer } from "../../service/replay/replay-answer.ts";
import {
  type ChangedDecision,
  Counter,
  type Counts,
  type Tally,
  type UnreadableDecision,
} from "../../service/replay/tally.ts";

/** Changed decisions that the page lists; the others are counted. */
export const MAX_LISTED = 100;
/** Those that cannot be read, likewise. */
const MAX_NAMED = 20;
/** Differences of each that are shown. */
const MAX_SHOWN = 2;

/** The count that a replay's pages made so far. Its size does not grow with the decisions. */
export interface Counted {
  readonly tally: Tally;
  /** The first of those that changed. */
  readonly changed: readonly ChangedDecision[];
  /** The first of those that cannot be read. */
  readonly unreadable: readonly UnreadableDecision[];
}

export const NOTHING_COUNTED: Counted = { tally: new Counter().tally(), changed: [], unreadable: [] };

/** With one more page of the replay. */
export function countedWith({ tally, changed, unreadable }: Counted, page: ReplayAnswer): Counted {
  const counter = new Counter();
  counter.add(tally);
  counter.add(page);
  const listed = [...changed, ...page.changed].slice(0, MAX_LISTED);
  return {
    tally: counter.tally(),
    changed: listed.map((one) => ({ ...one, differences: one.differences.slice(0, MAX_SHOWN) })),
    unreadable: [...unreadable, ...page.unreadable].slice(0, MAX_NAMED),
  };
}

const count = z.int().min(0);
const text = (most: number) => z.string().max(most);
const name = text(253);
/** `same`, `differs`, `refused`, `gone`, `unreadable`. */
const counts = z.tuple([count, count, count, count, count]);
/** Kind of a decision. For one that cannot be read it may be any text that stands there. */
const kind = text(4096);
const CODES = Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]];
const value = z.unknown().optional();
const id = z.string().regex(/^[\w-]{1,64}$/);
const decidedAt = z.iso.datetime();
const changedDecision = z.object({
  id,
  kind,
  node: name,
  decidedAt,
  pod: z.object({ namespace: name, name, uid: name }).nullable(),
  recordedVerdict: text(64),
  verdict: text(64).nullable(),
  differences: z
    .array(
      z.object({
        path: text(4096),
        recorded: value,
        replayed: value,
        omitted: z.array(z.enum(["recorded", "replayed"])).optional(),
      }),
    )
    .max(MAX_SHOWN),
  differenceCount: count,
  problem: z.object({ code: z.enum(CODES), detail: text(65_536) }).nullable(),
});
const carried = z.object({
  all: counts,
  kinds: z.array(z.tuple([kind, counts])).max(4096),
  nodes: z.array(z.tuple([name, counts])),
  verdicts: z.array(z.tuple([kind, text(64), text(64).nullable(), count])).max(4096),
  changed: z.array(changedDecision).max(MAX_LISTED),
  unreadable: z.array(z.object({ id, kind, node: name, decidedAt, unreadable: text(4096) })).max(MAX_NAMED),
});

const listOf = (c: Counts): [number, number, number, number, number] => [
  c.same,
  c.differs,
  c.refused,
  c.gone,
  c.unreadable,
];
const countsIn = ([same, differs, refused, gone, unreadable]: [number, number, number, number, number]): Counts => ({
  replayed: same + differs + refused,
  same,
  differs,
  refused,
  gone,
  unreadable,
});

/** As a form carries it from page to page; the server keeps nothing. */
export function countedText({ tally, changed, unreadable }: Counted): string {
  const { counts: all, byKind, byNode, verdicts } = tally;
  return JSON.stringify({
    all: listOf(all),
    kinds: Object.entries(byKind).map(([of, c]) => [of, listOf(c)]),
    nodes: Object.entries(byNode).map(([of, c]) => [of, listOf(c)]),
    verdicts: verdicts.map((v) => [v.kind, v.recorded, v.replayed, v.count]),
    changed,
    unreadable,
  });
}

/** Null: no page of ours wrote it. */
export function countedIn(given: string): Counted | null {
  if (given === "") return NOTHING_COUNTED;
  let input: unknown;
  try {
    input = JSON.parse(given);
  } catch {
    return null;
  }
  const read = carried.safeParse(input);
  if (!read.success) return null;
  const { all, kinds, nodes, verdicts, changed, unreadable } = read.data;
  const byKind = Object.fromEntries(kinds.map(([of, c]) => [of, countsIn(c)]));
  const byNode = Object.fromEntries(nodes.map(([of, c]) => [of, countsIn(c)]));
  const tally: Tally = {
    counts: countsIn(all),
    byKind,
    byNode,
    verdicts: verdicts.map(([of, recorded, replayed, n]) => ({ kind: of, recorded, replayed, count: n })),
  };
  return { tally, changed: changed as readonly ChangedDecision[], unreadable };
}
