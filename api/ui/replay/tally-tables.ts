import { type Counts, passedOf, type Tally } from "../../service/replay/tally.ts";
import { type Segment, stackBar } from "../draw/stack-bar.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import { verdictTag } from "../verdict-tag.ts";

/** Nodes with the most changes; the others are counted. */
const NODES = 20;
const STATES = [
  ["same", "the same", "good"],
  ["differs", "differ", "warn"],
  ["refused", "are refused now", "bad"],
  ["gone", "have no snapshot any more", "rest"],
  ["unreadable", "cannot be read", "bad"],
] as const;
/** The states to list; `unreadable` is listed only where there are any. */
const statesOf = ({ unreadable }: Counts) => STATES.filter(([state]) => state !== "unreadable" || unreadable > 0);

export const number = (count: number): string => count.toLocaleString("en");
const others = ({ differs, refused }: Counts): number => differs + refused;

/** How many of each, as tiles over one bar. */
export function countTiles(counts: Counts): Html {
  const tiles = statesOf(counts).map(
    ([state, words, tone]) =>
      html`<div class="card tile"><span class="figure ${counts[state] > 0 && tone !== "rest" ? `${tone}-text` : ""}">${number(counts[state])}</span><span class="soft">${words}</span></div>`,
  );
  return html`<div class="cards counts" data-passed="${passedOf(counts)}"><div class="card tile"><span class="figure">${number(counts.replayed)}</span><span class="soft">decisions replayed</span></div>${tiles}</div>
${stateBar(counts)}`;
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

/** From which verdict to which, the most frequent first. */
export function verdictsTable({ verdicts }: Tally): Html | "" {
  if (verdicts.length === 0) return "";
  const rows = verdicts.map(
    ({ kind, recorded, replayed, count }) =>
      html`<tr><td>${kind}</td><td>${verdictChange(recorded, replayed)}</td><td class="num">${number(count)}</td></tr>`,
  );
  return html`<div><h3>By verdict</h3><div class="scroll" tabindex="0" role="region" aria-label="Changes of verdicts"><table>
<thead><tr><th>Kind</th><th>Verdict</th><th class="num">Decisions</th></tr></thead><tbody>${rows}</tbody></table></div></div>`;
}

export function kindsTable({ byKind, counts }: Tally): Html | "" {
  const kinds = Object.entries(byKind);
  const rows = [...kinds, ...(kinds.length > 1 ? [["all", counts] as const] : [])];
  return countsTable({ title: "By kind", head: "Kind", rows, counts });
}

/** With links, those with the most changes first. */
export function nodesTable({ byNode, counts }: Tally): Html | "" {
  const nodes = Object.entries(byNode).sort(([a, x], [b, y]) => others(y) - others(x) || (a < b ? -1 : 1));
  if (nodes.length < 2) return "";
  const more = nodes.length - NODES;
  return html`<details class="by-node" id="by-node"><summary>By node: ${number(nodes.length)}</summary>
${countsTable({ title: "", head: "Node", rows: nodes.slice(0, NODES), counts })}${more > 0 ? html`<p class="soft small">and ${number(more)} more nodes, with no more changes</p>` : ""}</details>`;
}

interface CountsShown {
  readonly title: string;
  readonly head: "Kind" | "Node";
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

/** `decided → refused`. Null: it cannot be decided any more, since the new configuration is refused for it. */
export function verdictChange(recorded: string, replayed: string | null): Html {
  const now = replayed === null ? html`<span class="tag bad">not decided</span>` : html`${verdictTag(replayed)}`;
  if (recorded === replayed) return html`${verdictTag(recorded)} <span class="soft small">otherwise</span>`;
  return html`<span class="becomes">${verdictTag(recorded)} <span aria-label="becomes">→</span> ${now}</span>`;
}
