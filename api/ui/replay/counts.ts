import * as z from "zod";
import { byText } from "../../base/order.ts";
import { verdictLabel } from "../../model/kinds.ts";
import { PROBLEM_CODES } from "../../service/problem.ts";
import type { ReplayAnswer } from "../../service/replay/replay-answer.ts";
import type { Versions } from "../../service/replay/replay-one.ts";
import {
  type ChangedDecision,
  type Counts,
  changedOf,
  passedOf,
  ReplayTally,
  representedText,
  type Tally,
  type UnreadableDecision,
} from "../../service/replay/tally.ts";
import { type Segment, stackBar } from "../draw/bars.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import { verdictTag } from "../verdict-tag.ts";

/** The number of nodes with the most changes that are listed; the others are counted. */
const NODES = 20;
const STATES = [
  ["same", "the same", "good"],
  ["differs", "differ", "warn"],
  ["refused", "are refused now", "bad"],
  ["gone", "have no snapshot any more", "rest"],
  ["unreadable", "cannot be read", "bad"],
] as const;
/** The states to list; `unreadable` only if there are any. */
const statesOf = ({ unreadable }: Counts) => STATES.filter(([state]) => state !== "unreadable" || unreadable > 0);

export const number = (count: number): string => count.toLocaleString("en");

/** The counts as tiles over one bar. */
export function countTiles(counts: Counts): Html {
  const represented = representedText(counts);
  const tiles = statesOf(counts).map(
    ([state, words, tone]) =>
      html`<div class="card tile"><span class="figure ${counts[state] > 0 && tone !== "rest" ? `${tone}-text` : ""}">${number(counts[state])}</span><span class="soft">${words}</span></div>`,
  );
  return html`<div class="cards counts" data-passed="${passedOf(counts)}"><div class="card tile"><span class="figure">${number(counts.replayed)}</span><span class="soft">decisions replayed</span></div>${tiles}</div>
${stateBar(counts)}${represented === "" ? "" : html`<p class="soft small">${represented}.</p>`}`;
}

const stateBar = (counts: Counts): Html | "" =>
  stackBar(
    statesOf(counts).map(
      ([state, words, tone]): Segment => ({ size: counts[state], tone, words: `${number(counts[state])} ${words}` }),
    ),
    `Of ${number(passedOf(counts))} decisions ${statesOf(counts)
      .map(([state, words]) => `${number(counts[state])} ${words}`)
      .join(", ")}`,
  );

/** Changes of verdicts, the most frequent first. */
export function verdictsTable({ verdicts }: Tally): Html | "" {
  if (verdicts.length === 0) return "";
  const rows = verdicts.map(
    ({ kind, recorded, replayed, count }) =>
      html`<tr><td>${kind}</td><td>${verdictChange(recorded, replayed, { kind })}</td><td class="num">${number(count)}</td></tr>`,
  );
  return html`<div><h3>By verdict</h3><div class="scroll" tabindex="0" role="region" aria-label="Changes of verdicts"><table>
<thead><tr><th>Kind</th><th>Verdict</th><th class="num">Decisions</th></tr></thead><tbody>${rows}</tbody></table></div></div>`;
}

/** Counts by the kubelet version of the record and of the replay. */
export function versionsTable({ byVersion, counts }: Tally): Html | "" {
  const rows = byVersion.map((one) => [versionChange(one), one] as const);
  return rows.length === 0 ? "" : countsTable({ title: "By kubelet version", head: "Kubelet", rows, counts });
}
/** `1.36 → 1.37`. */
export const versionChange = ({ recordedUnder, replayedUnder }: Versions): string =>
  recordedUnder === replayedUnder ? recordedUnder : `${recordedUnder} → ${replayedUnder}`;

export function kindsTable({ byKind, counts }: Tally): Html | "" {
  const kinds = Object.entries(byKind);
  const rows = [...kinds, ...(kinds.length > 1 ? [["all", counts] as const] : [])];
  return countsTable({ title: "By kind", head: "Kind", rows, counts });
}

/** Nodes with links, those with the most changes first. */
export function nodesTable({ byNode, counts }: Tally): Html | "" {
  const nodes = Object.entries(byNode).sort(([a, x], [b, y]) => changedOf(y) - changedOf(x) || byText(a, b));
  if (nodes.length < 2) return "";
  const more = nodes.length - NODES;
  return html`<details class="by-node" id="by-node"><summary>By node: ${number(nodes.length)}</summary>
${countsTable({ title: "", head: "Node", rows: nodes.slice(0, NODES), counts })}${more > 0 ? html`<p class="soft small">and ${number(more)} more nodes, with no more changes</p>` : ""}</details>`;
}

interface CountsShown {
  readonly title: string;
  readonly head: "Kind" | "Kubelet" | "Node";
  readonly rows: readonly (readonly [string, Counts])[];
  /** The counts of all rows together. */
  readonly counts: Counts;
}

function countsTable({ title, head, rows, counts }: CountsShown): Html {
  const isDamaged = counts.unreadable > 0;
  const cell = (count: number, tone: string): Html =>
    html`<td class="num ${count > 0 ? tone : "soft"}">${number(count)}</td>`;
  const named = (name: string): Html | string =>
    head === "Node" ? html`<a href="/nodes/${encodeURIComponent(name)}">${name}</a>` : name;
  const row = ([name, c]: readonly [string, Counts]): Html =>
    html`<tr><td>${named(name)}</td>${cell(c.replayed, "")}${cell(c.same, "")}${cell(c.differs, "warn-text")}${cell(c.refused, "bad-text")}${cell(c.gone, "")}${isDamaged ? cell(c.unreadable, "bad-text") : ""}</tr>`;
  return html`<div>${title === "" ? "" : html`<h3>${title}</h3>`}<div class="scroll" tabindex="0" role="region" aria-label="By ${head.toLowerCase()}"><table>
<thead><tr><th>${head}</th><th class="num">Replayed</th><th class="num">Same</th><th class="num">Differs</th><th class="num">Refused</th><th class="num">Gone</th>${isDamaged ? html`<th class="num">Unreadable</th>` : ""}</tr></thead>
<tbody>${rows.map(row)}</tbody></table></div></div>`;
}

/** The parts of a decision that are shown beside its verdict, as in lists. */
interface DecisionHeadline {
  readonly kind: string;
  readonly pod?: unknown;
  readonly recordedReason?: string | null;
  readonly reason?: string | null;
}
/** `admitted → refused OutOfcpu`. Null: it can no longer be decided, since the new configuration is refused. */
export function verdictChange(
  recorded: string,
  replayed: string | null,
  { kind, pod, ...headline }: DecisionHeadline,
): Html {
  const tag = (verdict: string, reason: string | null = null) =>
    verdictTag(verdict, reason, verdictLabel({ kind, verdict, pod }));
  const before = tag(recorded, headline.recordedReason);
  const now = replayed === null ? html`<span class="tag bad">not decided</span>` : tag(replayed, headline.reason);
  if (recorded === replayed) return html`${before} <span class="soft small">differs in its details</span>`;
  return html`<span class="becomes">${before} <span aria-label="becomes">→</span> ${now}</span>`;
}

/** The number of changed decisions that the page lists; the others are counted. */
const MAX_LISTED = 100;
/** The number of unreadable decisions that the page lists. */
const MAX_NAMED = 20;
/** The number of differences per decision that are shown, and of pods that are kept. */
const MAX_SHOWN = 2;

/** The counts of all replay pages so far. Their size does not grow with the decisions. */
export interface Counted {
  readonly tally: Tally;
  /** The first changed decisions. */
  readonly changed: readonly ChangedDecision[];
  /** The first unreadable decisions. */
  readonly unreadable: readonly UnreadableDecision[];
}

export const NOTHING_COUNTED: Counted = { tally: new ReplayTally().tally(), changed: [], unreadable: [] };

/** Adds one more page of the replay. */
export function countedWith({ tally, changed, unreadable }: Counted, page: ReplayAnswer): Counted {
  const counter = new ReplayTally();
  counter.add(tally);
  counter.add(page);
  const listed = [...changed, ...page.changed].slice(0, MAX_LISTED);
  return {
    tally: counter.tally(),
    changed: listed.map((one) => ({
      ...one,
      differences: one.differences.slice(0, MAX_SHOWN),
      pods: one.pods.slice(0, MAX_SHOWN),
    })),
    unreadable: [...unreadable, ...page.unreadable].slice(0, MAX_NAMED),
  };
}

const count = z.int().min(0);
const text = (most: number) => z.string().max(most);
const name = text(253);
/** `same`, `differs`, `refused`, `gone`, `unreadable`, `decisions`. */
const counts = z.tuple([count, count, count, count, count, count]);
/** Kind of a decision; for an unreadable decision it may be any text. */
const kind = text(4096);
const value = z.unknown().optional();
const id = z.string().regex(/^[\w-]{1,64}$/);
const decidedAt = z.iso.datetime();
const versions = { recordedUnder: text(16), replayedUnder: text(16) };
const changedDecision = z.object({
  id,
  kind,
  node: name,
  decidedAt,
  ...versions,
  pod: z.object({ namespace: name, name, uid: name }).nullable(),
  recordedVerdict: text(64),
  recordedReason: text(253).nullable().optional(),
  verdict: text(64).nullable(),
  reason: text(253).nullable().optional(),
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
  pods: z.array(text(507)).max(MAX_SHOWN),
  podCount: count,
  problem: z.object({ code: z.enum(PROBLEM_CODES), detail: text(65_536) }).nullable(),
});
const carried = z.object({
  all: counts,
  kinds: z.array(z.tuple([kind, counts])).max(4096),
  nodes: z.array(z.tuple([name, counts])),
  versions: z.array(z.tuple([versions.recordedUnder, versions.replayedUnder, counts])).max(64),
  verdicts: z.array(z.tuple([kind, text(64), text(64).nullable(), count])).max(4096),
  changed: z.array(changedDecision).max(MAX_LISTED),
  unreadable: z.array(z.object({ id, kind, node: name, decidedAt, unreadable: text(4096) })).max(MAX_NAMED),
});

type CountList = z.infer<typeof counts>;
const listOf = (c: Counts): CountList => [c.same, c.differs, c.refused, c.gone, c.unreadable, c.decisions];
const countsIn = ([same, differs, refused, gone, unreadable, decisions]: CountList): Counts => ({
  replayed: same + differs + refused,
  same,
  differs,
  refused,
  gone,
  unreadable,
  decisions,
});

/** The counts as text that a form carries from page to page; the server stores nothing. */
export function countedText({ tally, changed, unreadable }: Counted): string {
  const { counts: all, byKind, byNode, byVersion, verdicts } = tally;
  return JSON.stringify({
    all: listOf(all),
    kinds: Object.entries(byKind).map(([of, c]) => [of, listOf(c)]),
    nodes: Object.entries(byNode).map(([of, c]) => [of, listOf(c)]),
    versions: byVersion.map((v) => [v.recordedUnder, v.replayedUnder, listOf(v)]),
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
  const { all, kinds, nodes, versions: both, verdicts, changed, unreadable } = read.data;
  const byKind = Object.fromEntries(kinds.map(([of, c]) => [of, countsIn(c)]));
  const byNode = Object.fromEntries(nodes.map(([of, c]) => [of, countsIn(c)]));
  const tally: Tally = {
    counts: countsIn(all),
    byKind,
    byNode,
    byVersion: both.map(([recordedUnder, replayedUnder, c]) => ({ recordedUnder, replayedUnder, ...countsIn(c) })),
    verdicts: verdicts.map(([of, recorded, replayed, n]) => ({ kind: of, recorded, replayed, count: n })),
  };
  return { tally, changed: changed as readonly ChangedDecision[], unreadable };
}
