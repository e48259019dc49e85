import type { HourRow } from "../../../db/rows.ts";
import { type Exchange, queryOf, queryProblem } from "../../http/route.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Reply } from "../../ports.ts";
import {
  ASKED_VERSION,
  FLEET_SORTS,
  type FleetNode,
  type FleetSort,
  filtered,
  fleetOf,
  NO_ASKED_VERSION,
  ordered,
  SHOWN,
  SHOWS,
  type Shows,
  usualOrder,
  versionsAmong,
} from "../../service/fleet.ts";
import { parseLabelSelector, type Requirement } from "../../service/label-selector.ts";
import { historyProblem, type Problem } from "../../service/problem.ts";
import { agreementLink } from "../agreement/agreement-page.ts";
import { kubeletOptions } from "../form-fields.ts";
import { ago, html, nodeName, raw, utcText } from "../html.ts";
import { all, type Html, page } from "../page.ts";
import { decisionsTable } from "../verdict-tag.ts";

/** Pixels down; across all is in shares of the width, so that the hours' type is as large on a phone. */
const TOP = 6;
const BASE = 62;
/** Distance to an edge, in percent, below which a name has to stand beside its hour. */
const EDGE = 4;
const DAYS = 48;

/** Decisions an hour as bars, with what was refused and what was evicted on each. */
export function hoursPicture(rows: readonly HourRow[], nowMs: number, hours: number): Html | Promise<Html> {
  if (hours < 2) return html``;
  const last = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const known = new Map(rows.map((row) => [row.hourMs, row]));
  const slots = Array.from({ length: hours + 1 }, (_, i) => last - (hours - i) * HOUR_MS);
  const most = Math.max(1, ...rows.map((row) => row.decisions));
  const step = 100 / slots.length;
  const bars = slots.map((hourMs, i) => barOf(known.get(hourMs), (i + 0.12) * step, { width: 0.76 * step, most }));
  const names = slots.map((hourMs, i) => nameOf(hourMs, (i + 0.5) * step, hours));
  return html`<figure class="card"><figcaption class="small soft">Decisions an hour, at most ${most} (hours in UTC)</figcaption>
<svg class="hours" role="img" aria-label="Decisions of each hour, at most ${most}">
<line class="line" x1="0" x2="100%" y1="${BASE}" y2="${BASE}"/>${all(bars)}${all(names)}</svg>
<ul class="legend"><li>decisions</li><li class="warn">refused</li><li class="bad">evicted</li></ul></figure>`;
}

interface Scale {
  readonly width: number;
  readonly most: number;
}
function barOf(row: HourRow | undefined, at: number, { width, most }: Scale): Html | Promise<Html> {
  if (row === undefined) return html``;
  const { hourMs, decisions, refused, evicted } = row;
  const high = (count: number): number => (count === 0 ? 0 : Math.max(2, Math.round((count / most) * (BASE - TOP))));
  const part = (count: number, tone: string): Html | Promise<Html> =>
    html`<rect class="${tone}" x="${at.toFixed(2)}%" width="${width.toFixed(2)}%" y="${BASE - high(count)}" height="${high(count)}"/>`;
  const words = `${utcText(hourMs)}: ${decisions} decisions, ${refused} refused, ${evicted} evicted`;
  return html`<g><title>${words}</title>${part(decisions, "faint")}${part(refused + evicted, "warn")}${part(evicted, "bad")}</g>`;
}

/** Round hours, or days; every other one is left out where there is little room. */
function nameOf(hourMs: number, at: number, hours: number): Html | Promise<Html> {
  const every = hours > DAYS ? 24 : hours > 12 ? 4 : 1;
  const count = hourMs / HOUR_MS;
  if (count % every !== 0) return html``;
  const side = at < EDGE ? " start" : at > 100 - EDGE ? " end" : "";
  const minor = (count / every) % 2 === 0 ? "" : " minor";
  const text = utcText(hourMs);
  const x = `${at.toFixed(2)}%`;
  return html`<g class="hour${minor}${side}"><line class="line" x1="${x}" x2="${x}" y1="${BASE}" y2="${BASE + 4}"/><text class="soft" x="${x}" y="${BASE + 18}">${hours > DAYS ? text.slice(5, 10) : text.slice(11, 16)}</text></g>`;
}

const HOUR_MS = 3_600_000;

const HOURS = [1, 6, 24, 168] as const;
const PARAMETERS = ["q", "labels", "show", "kubelet", "sort", "order", "hours", "page"] as const;

/** The part of the fleet that is to be seen; the link holds all of it. */
interface FleetQuestion {
  /** Part of the node's name. */
  readonly q: string;
  /** A label selector; empty: any. */
  readonly labels: string;
  readonly show: Shows;
  /** Version of the kubelet; empty: any. */
  readonly kubelet: string;
  readonly sort: FleetSort;
  readonly order: "asc" | "desc";
  /** Counts go back so far. */
  readonly hours: number;
  /** From 1. */
  readonly page: number;
}

const MAX_PAGES = 9_999;

type Asked = FleetQuestion & { readonly selector: readonly Requirement[] };

function fleetQuestion(exchange: Exchange): Result<Asked, Problem> {
  const given = queryOf(exchange, PARAMETERS);
  if (!given.ok) return given;
  const { q = "", labels = "", show = "all" } = given.value;
  const kubelet = (given.value.kubelet ?? "").trim();
  const { sort = "name", order, hours = "24", page = "1" } = given.value;
  const issues: InputIssue[] = [];
  const among = <T extends string>(path: string, value: string, words: readonly T[]): T => {
    const found = words.find((word) => word === value);
    if (found === undefined)
      issues.push({ path, message: `must be one of ${words.filter((word) => word !== "").join(", ")}` });
    return found ?? (words[0] as T);
  };
  const hour = among("hours", hours, HOURS.map(String));
  const place = /^\d{1,4}$/.test(page) ? Number(page) : 0;
  if (place < 1) issues.push({ path: "page", message: `must be a number from 1 to ${MAX_PAGES}` });
  if (kubelet !== "" && !ASKED_VERSION.test(kubelet)) issues.push({ path: "kubelet", message: NO_ASKED_VERSION });
  const by = among("sort", sort, FLEET_SORTS);
  const selector = parseLabelSelector(labels);
  if (!selector.ok) issues.push({ path: "labels", message: selector.error });
  const question: Asked = {
    q: q.trim().slice(0, 253),
    labels: labels.trim(),
    selector: selector.ok ? selector.value : [],
    show: among("show", show, SHOWS),
    kubelet,
    sort: by,
    order: among("order", order ?? usualOrder(by), ["asc", "desc"]),
    hours: Number(hour),
    page: place,
  };
  return issues.length === 0 ? ok(question) : queryProblem(issues);
}

/** The link to the same with some of it changed; what is as it would be anyway is left out. */
export function fleetLink(question: FleetQuestion, change: Partial<FleetQuestion>): string {
  const { q, labels, show, kubelet, sort, order, hours, page } = { ...question, page: 1, ...change };
  const query = new URLSearchParams();
  if (q !== "") query.set("q", q);
  if (labels !== "") query.set("labels", labels);
  if (show !== "all") query.set("show", show);
  if (kubelet !== "") query.set("kubelet", kubelet);
  if (sort !== "name") query.set("sort", sort);
  if (order !== usualOrder(sort)) query.set("order", order);
  if (hours !== 24) query.set("hours", String(hours));
  if (page !== 1) query.set("page", String(page));
  const text = query.toString();
  return text === "" ? "/" : `/?${text}`;
}

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
  "not-known": "pressure not known",
};

/** How many of the nodes with that name stand in which way; each leads to them. */
function figures(nodes: readonly FleetNode[], question: FleetQuestion): Promise<Html> {
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
function filters(
  { q, labels, show, kubelet, sort, order, hours }: FleetQuestion,
  nodes: readonly FleetNode[],
): Html | Promise<Html> {
  const options = (values: readonly (readonly [string, string])[], now: string): Promise<Html> =>
    all(
      values.map(
        ([value, word]) => html`<option value="${value}"${value === now ? raw(" selected") : ""}>${word}</option>`,
      ),
    );
  return html`<form class="row" action="/" method="get" role="search">
<label>Name has<input name="q" type="search" value="${q}" maxlength="253"></label>
<label>Labels<input name="labels" type="search" value="${labels}" placeholder="pool=web,!gpu"></label>
<label>Show<select name="show">${options(
    SHOWS.map((word) => [word, SHOWS_WORD[word]] as const),
    show,
  )}</select></label>
<label>Kubelet<select name="kubelet">${kubeletOptions(kubelet, "any version", versionsAmong(nodes))}</select></label>
<label>Counted over the<select name="hours">${options(
    HOURS.map((n) => [String(n), HOURS_WORD[n] ?? ""] as const),
    String(hours),
  )}</select></label>
<input type="hidden" name="sort" value="${sort}"><input type="hidden" name="order" value="${order}">
<button>Show</button> <a href="/">reset</a></form>`;
}

const COLUMNS: readonly (readonly [FleetSort, string, string])[] = [
  ["name", "Node", ""],
  ["kubelet", "Kubelet", ""],
  ["pressure", "Pressure", ""],
  ["headroom", "Headroom", ""],
  ["refused", "Refused", "num"],
  ["evicted", "Evicted", "num"],
  ["drift", "Drift", "num"],
  ["decisions", "Decisions", "num"],
  ["seen", "Last seen", ""],
];

/** `sinceMs`: what is counted is of then or later. */
function nodesTable(nodes: readonly FleetNode[], question: FleetQuestion, sinceMs: number): Html | Promise<Html> {
  if (nodes.length === 0) return html`<p>No node is like that. <a href="/">All nodes</a></p>`;
  const head = COLUMNS.map(([sort, name, tone]) => {
    const isSorted = sort === question.sort;
    const turned = question.order === "asc" ? "desc" : "asc";
    const order = isSorted ? turned : usualOrder(sort);
    const aria = isSorted ? raw(` aria-sort="${question.order}ending"`) : "";
    const arrow = !isSorted ? "" : question.order === "asc" ? " ▲" : " ▼";
    return html`<th class="${tone}"${aria}><a href="${fleetLink(question, { sort, order })}">${name}${arrow}</a></th>`;
  });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Nodes"><table>
<thead><tr>${all(head)}</tr></thead>
<tbody>${all(nodes.map((node) => nodeRow(node, question.hours, sinceMs)))}</tbody></table></div>`;
}

/** The node's own version, and as which one its newest decision was made where that is another or the node tells none. */
function version({ kubelet, kubeletVersion }: FleetNode): Html | Promise<Html> {
  const own = (kubeletVersion ?? "").replace(/^v/, "");
  if (own === "") return kubelet === "" ? html`<span class="soft">–</span>` : html`${kubelet}`;
  if (kubelet === "" || own === kubelet || own.startsWith(`${kubelet}.`)) return html`${own}`;
  return html`${own} <span class="soft" title="as which kubelet its newest decision was made">as ${kubelet}</span>`;
}

const nodeRow = (node: FleetNode, hours: number, sinceMs: number): Html | Promise<Html> => html`<tr>
<td>${nodeName(node.name)}</td>
<td>${version(node)}</td>
<td>${pressure(node)}</td><td>${headroom(node)}</td>
<td class="num">${counted(node, "refused", sinceMs)}${doneByKubelet(node.name, node.kubeletRefusals, hours)}</td>
<td class="num">${counted(node, "evicted", sinceMs)}${doneByKubelet(node.name, evictions(node), hours)}</td>
<td class="num">${drift(node)}</td><td class="num">${node.decisions}</td>
<td>${ago(node.lastSeenMs)}${absence(node)}</td></tr>`;

function absence({ silent, deletedMs }: FleetNode): Html | Promise<Html> | "" {
  if (deletedMs !== null) return html` <span class="tag" title="its cluster deleted it">deleted</span>`;
  return silent ? html` <span class="tag warn">silent</span>` : "";
}

const TONE = { refused: "warn-text", evicted: "bad-text" } as const;
const REFUSALS: readonly string[] = ["refused", "kubelet-refuses"];

/** A count leads to the decisions that it counts: of the two sorts of refusal to the one that was met last. */
function counted(node: FleetNode, of: keyof typeof TONE, sinceMs: number): Html | Promise<Html> {
  if (node[of] === 0) return html`<span class="soft">0</span>`;
  const newest = Object.values(node.latest).find(({ verdict }) => REFUSALS.includes(verdict));
  const verdict = of === "evicted" ? "evicts" : (newest?.verdict ?? "refused");
  const query = new URLSearchParams({ verdict, since: new Date(sinceMs).toISOString() });
  return html`<a class="${TONE[of]}" href="/nodes/${encodeURIComponent(node.name)}/decisions?${query.toString()}">${node[of]}</a>${of === "refused" ? why(node.refusals) : ""}`;
}

const reasonsText = (refusals: FleetNode["refusals"]): string =>
  refusals.map(({ reason, count }) => `${reason} ${count}`).join(", ");

/** The most frequent reason, and how many others there are. */
function why(refusals: FleetNode["refusals"]): Html | Promise<Html> {
  const [first, ...others] = refusals;
  if (first === undefined) return html``;
  return html` <span class="small soft" title="${reasonsText(refusals)}">${first.reason}${others.length === 0 ? "" : ` +${others.length}`}</span>`;
}

const evictions = ({ kubeletEvicted: count }: FleetNode): FleetNode["refusals"] =>
  count === 0 ? [] : [{ reason: "Evicted", count }];

/** How many pods the kubelet itself refused or evicted; the most frequent reason leads to its outcomes. */
function doneByKubelet(node: string, counts: FleetNode["refusals"], hours: number): Html | Promise<Html> {
  const [first] = counts;
  if (first === undefined) return html``;
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const days = hours < 24 ? "1" : hours < 168 ? "7" : "30";
  const href = agreementLink({ days, node, reason: first.reason, verdict: "all" });
  const others = counts.length === 1 ? "" : ` +${counts.length - 1}`;
  return html`<br><span class="small">kubelet <span class="bad-text">${total}</span> <a title="${reasonsText(counts)}" href="${href}">${first.reason}</a>${others}</span>`;
}

/** A threshold nearer than this is worth a colour. */
const NEAR = 0.05;

/** What is left to the eviction threshold that is met first. */
function headroom({ headroom: [first], firstMetMs }: FleetNode): Html | Promise<Html> {
  if (first?.ratio === null || first === undefined) return html`<span class="soft">–</span>`;
  const { signal, threshold, type, ratio, metAtMs } = first;
  const isFalling = firstMetMs !== null && firstMetMs > 0;
  const tone = ratio < 0 ? "bad-text" : ratio < NEAR || isFalling ? "warn-text" : "";
  const when = metAtMs === null ? "" : `, met ${utcText(metAtMs)} as it falls`;
  const soon = isFalling
    ? html` <span class="small">met ${utcText(firstMetMs).slice("2026-01-31 ".length)}</span>`
    : "";
  return html`<span class="${tone}" title="${type} threshold ${threshold}${when}">${percentText(ratio)} <span class="small">${signal}</span>${soon}</span>`;
}
const percentText = (ratio: number): string => `${(ratio * 100).toFixed(Math.abs(ratio) < 0.1 ? 1 : 0)} %`;

function pressure({ latest, pressure: degree, pressureFrom, conditions }: FleetNode): Html | Promise<Html> {
  const { eviction } = latest;
  if (pressureFrom === "node-status") {
    const told = html`<span class="small soft">by the node's status</span>`;
    return html`<span class="tag ${degree === 0 ? "good" : "warn"}">${conditions.join(", ") || "no pressure"}</span> ${told}`;
  }
  if (pressureFrom === null || eviction === undefined) return html`<span class="soft">not known</span>`;
  const word = conditions.length === 0 ? eviction.verdict : `${eviction.verdict}: ${conditions.join(", ")}`;
  const tone = degree === 0 ? "good" : degree === 3 ? "bad" : "warn";
  return html`<a href="/decisions/${eviction.decisionId}"><span class="tag ${tone}">${word}</span></a>`;
}

function drift({ latest, drift: files, report }: FleetNode): Html | Promise<Html> {
  const { cgroups } = latest;
  if (cgroups === undefined) return html`<span class="soft">–</span>`;
  if (files === 0) return html`<span class="soft">0</span>`;
  const tone = report !== null && report.failedCount > 0 ? "bad-text" : "warn-text";
  return html`<a class="${tone}" href="/decisions/${cgroups.decisionId}">${files}</a>`;
}

function pager(found: number, rows: number, question: FleetQuestion): Html | Promise<Html> {
  const pages = Math.max(1, Math.ceil(found / rows));
  if (pages === 1) return html`<p class="soft small">${found} ${found === 1 ? "node" : "nodes"}</p>`;
  const { page } = question;
  const link = (to: number, word: string): Html | Promise<Html> | "" =>
    to < 1 || to > pages ? "" : html`<a href="${fleetLink(question, { page: to })}">${word}</a> `;
  return html`<p class="small">${link(page - 1, "← before")}<span class="soft">page ${page} of ${pages}, ${found} nodes</span> ${link(page + 1, "next →")}</p>`;
}

const LATEST = 15;
const ROWS = 100;

/** GET /: the nodes and how they stand. A node's token sees its own. */
export async function getFleet(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller } = exchange;
  const question = fleetQuestion(exchange);
  if (!question.ok) return question;
  const now = ports.now();
  // counts are kept by the hour
  const sinceMs = Math.floor(now / HOUR_MS - question.value.hours) * HOUR_MS;
  const own = caller.node ?? undefined;
  const [rows, hours, latest] = await Promise.all([
    fleetOf(ports.store, now, sinceMs, own),
    ports.store.listHours(sinceMs, own),
    ports.store.listDecisions({ limit: LATEST, ...(own === undefined ? {} : { node: own }) }),
  ]);
  if (!rows.ok) return historyProblem(rows.error);
  if (!hours.ok) return historyProblem(hours.error);
  if (!latest.ok) return historyProblem(latest.error);
  const nodes = rows.value;
  if (nodes.length === 0)
    return page("Nodes", html`<div id="nodes" data-live>${NOTHING}</div>`, { place: "/", live: "" });
  const { q: name, selector, show, kubelet } = question.value;
  const named = filtered(nodes, { name, selector });
  const found = ordered(filtered(named, { show, ...(kubelet === "" ? {} : { kubelet }) }), question.value);
  const shown = found.slice((question.value.page - 1) * ROWS, question.value.page * ROWS);
  return page(
    "Nodes",
    html`<div id="figures" data-live>${figures(named, question.value)}</div>
<div id="hours" data-live>${hoursPicture(hours.value, now, question.value.hours)}</div>
${filters(question.value, nodes)}
<div id="nodes" data-live>${nodesTable(shown, question.value, sinceMs)}
${pager(found.length, ROWS, question.value)}</div>
<h2 id="latest"><a href="/decisions">Newest decisions</a>${found.length === nodes.length ? "" : " of all nodes"}</h2>
<div id="decisions" data-live>${decisionsTable(latest.value.items)}</div>`,
    { place: "/", live: caller.node ?? "" },
  );
}

const NOTHING: Html | Promise<Html> =
  html`<p>No node has posted a snapshot yet. On any machine with <code>kubectl</code>:</p>
<pre>kubectl get node NODE -o json &gt; node.json
kubectl get pods -A --field-selector spec.nodeName=NODE -o json &gt; pods.json
nodewise decide cgroups --node node.json --pods pods.json</pre>
<p>or post a snapshot to <code>/v1/decisions/cgroups</code>: <a href="/docs">the API</a> says how. Or look what would be decided
without posting anything: <a href="/what-if">what if</a>.</p>`;
