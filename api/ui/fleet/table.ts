import { html, raw } from "hono/html";
import { nodeName } from "../node-name.ts";
import { all, type Html } from "../page.ts";
import { ago } from "../time.ts";
import { type FleetQuestion, fleetLink, HOURS, SHOWS, type Shows, type Sort } from "./question.ts";
import { SHOWN, type Standing } from "./standing.ts";

const HOURS_WORD: Readonly<Record<number, string>> = {
  1: "last hour",
  6: "last 6 hours",
  24: "last day",
  168: "last week",
};
const SHOWS_WORD: { readonly [S in Shows]: string } = {
  all: "all nodes",
  pressure: "under pressure",
  refused: "with refusals",
  evicted: "with evictions",
  drift: "with drift",
  silent: "silent",
};

/** How many of the nodes with that name stand in which way; each leads to them. */
export function figures(nodes: readonly Standing[], question: FleetQuestion): Promise<Html> {
  const cards = SHOWS.map((show) => {
    const count = nodes.filter(SHOWN[show]).length;
    const tone =
      show === "all" || count === 0 ? "" : show === "pressure" || show === "evicted" ? "bad-text" : "warn-text";
    const here = show === question.show ? raw(' aria-current="true"') : "";
    return html`<a class="card tile" href="${fleetLink(question, { show })}"${here}><span class="figure ${tone}">${count}</span><span class="soft">${SHOWS_WORD[show]}${show === "all" && question.q !== "" ? ` with “${question.q}”` : ""}</span></a>`;
  });
  return all([html`<nav class="cards" aria-label="Nodes by how they stand">${all(cards)}</nav>`]);
}

/** Plain form fields: the answer is a link that can be shared. */
export function filters({ q, show, sort, order, hours }: FleetQuestion): Html | Promise<Html> {
  const options = (values: readonly (readonly [string, string])[], now: string): Promise<Html> =>
    all(
      values.map(
        ([value, word]) => html`<option value="${value}"${value === now ? raw(" selected") : ""}>${word}</option>`,
      ),
    );
  return html`<form class="row" action="/" method="get" role="search">
<label>Name has<input name="q" type="search" value="${q}" maxlength="253"></label>
<label>Show<select name="show">${options(
    SHOWS.map((word) => [word, SHOWS_WORD[word]] as const),
    show,
  )}</select></label>
<label>Counted over the<select name="hours">${options(
    HOURS.map((n) => [String(n), HOURS_WORD[n] ?? ""] as const),
    String(hours),
  )}</select></label>
<input type="hidden" name="sort" value="${sort}"><input type="hidden" name="order" value="${order}">
<button>Show</button> <a href="/">reset</a></form>`;
}

const COLUMNS: readonly (readonly [Sort, string, string])[] = [
  ["name", "Node", ""],
  ["pressure", "Pressure", ""],
  ["refused", "Refused", "num"],
  ["evicted", "Evicted", "num"],
  ["drift", "Drift", "num"],
  ["decisions", "Decisions", "num"],
  ["seen", "Last seen", ""],
];

/** `sinceMs`: what is counted was decided then or later. */
export function nodesTable(
  nodes: readonly Standing[],
  conditions: ReadonlyMap<string, readonly string[]>,
  question: FleetQuestion,
  sinceMs: number,
): Html | Promise<Html> {
  if (nodes.length === 0) return html`<p>No node is like that. <a href="/">All nodes</a></p>`;
  const head = COLUMNS.map(([sort, name, tone]) => {
    const isSorted = sort === question.sort;
    const turned = question.order === "asc" ? "desc" : "asc";
    const order = isSorted ? turned : sort === "name" ? "asc" : "desc";
    const aria = isSorted ? raw(` aria-sort="${question.order}ending"`) : "";
    const arrow = !isSorted ? "" : question.order === "asc" ? " ▲" : " ▼";
    return html`<th class="${tone}"${aria}><a href="${fleetLink(question, { sort, order })}">${name}${arrow}</a></th>`;
  });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Nodes"><table>
<thead><tr>${all(head)}</tr></thead>
<tbody>${all(nodes.map((node) => nodeRow(node, conditions.get(node.name) ?? [], sinceMs)))}</tbody></table></div>`;
}

const nodeRow = (node: Standing, conditions: readonly string[], sinceMs: number): Html | Promise<Html> => html`<tr>
<td>${nodeName(node.name)}</td>
<td>${pressure(node, conditions)}</td>
<td class="num">${counted(node, "refused", sinceMs)}</td><td class="num">${counted(node, "evicted", sinceMs)}</td>
<td class="num">${drift(node)}</td><td class="num">${node.decisions}</td>
<td>${ago(node.lastSeenMs)}${node.silent ? html` <span class="tag warn">silent</span>` : ""}</td></tr>`;

const TONE = { refused: "warn-text", evicted: "bad-text" } as const;
const REFUSALS: readonly string[] = ["refused", "kubelet-refuses"];

/** A count leads to the decisions that it counts: of the two sorts of refusal to the one that was met last. */
function counted(node: Standing, of: keyof typeof TONE, sinceMs: number): Html | Promise<Html> {
  if (node[of] === 0) return html`<span class="soft">0</span>`;
  const newest = Object.values(node.latest).find(({ verdict }) => REFUSALS.includes(verdict));
  const verdict = of === "evicted" ? "evicts" : (newest?.verdict ?? "refused");
  const query = new URLSearchParams({ verdict, since: new Date(sinceMs).toISOString() });
  return html`<a class="${TONE[of]}" href="/nodes/${encodeURIComponent(node.name)}/decisions?${query.toString()}">${node[of]}</a>`;
}

function pressure({ latest, pressure: degree }: Standing, conditions: readonly string[]): Html | Promise<Html> {
  const { eviction } = latest;
  if (eviction === undefined) return html`<span class="soft">not known</span>`;
  const word = conditions.length === 0 ? eviction.verdict : `${eviction.verdict}: ${conditions.join(", ")}`;
  const tone = degree === 0 ? "good" : degree === 3 ? "bad" : "warn";
  return html`<a href="/decisions/${eviction.decisionId}"><span class="tag ${tone}">${word}</span></a>`;
}

function drift({ latest, drift: files, report }: Standing): Html | Promise<Html> {
  const { cgroups } = latest;
  if (cgroups === undefined) return html`<span class="soft">–</span>`;
  if (files === 0) return html`<span class="soft">0</span>`;
  const tone = report !== null && report.failedCount > 0 ? "bad-text" : "warn-text";
  return html`<a class="${tone}" href="/decisions/${cgroups.decisionId}">${files}</a>`;
}

export function pager(found: number, rows: number, question: FleetQuestion): Html | Promise<Html> {
  const pages = Math.max(1, Math.ceil(found / rows));
  if (pages === 1) return html`<p class="soft small">${found} ${found === 1 ? "node" : "nodes"}</p>`;
  const { page } = question;
  const link = (to: number, word: string): Html | Promise<Html> | "" =>
    to < 1 || to > pages ? "" : html`<a href="${fleetLink(question, { page: to })}">${word}</a> `;
  return html`<p class="small">${link(page - 1, "← before")}<span class="soft">page ${page} of ${pages}, ${found} nodes</span> ${link(page + 1, "next →")}</p>`;
}
