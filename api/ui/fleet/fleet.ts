import { HOUR_MS, MINUTE_MS } from "../../base/duration.ts";
import type { Result } from "../../base/result.ts";
import type { Reply } from "../../dependencies.ts";
import { unknownReason } from "../../http/decision-list.ts";
import type { Exchange } from "../../http/route.ts";
import {
  FLEET_VIEWS,
  type FleetNode,
  type FleetSort,
  type FleetView,
  FORECAST_MS,
  filtered,
  fleetOf,
  type Headroom,
  IN_VIEW,
  isSoon,
  knowsRefusals,
  nextThreshold,
  ordered,
  reasonsAmong,
  type Severity,
  usualOrder,
  versionsAmong,
  zonesAmong,
} from "../../service/fleet.ts";
import { historyProblem, type Problem } from "../../service/problem.ts";
import { quantityText, resourceOfSignal } from "../../text/size.ts";
import { signalText } from "../../text/tables/eviction.ts";
import { agreementLink } from "../agreement-page.ts";
import { kubeletOptions } from "../form-fields.ts";
import { ago, html, nodeName, raw, utcText } from "../html.ts";
import { all, type Html, page } from "../page.ts";
import { decisionsTable } from "../verdict-tag.ts";
import { hoursPicture } from "./hours-picture.ts";
import { csvLink, type FleetQuestion, fleetLink, fleetQuestion, HOURS } from "./question.ts";

const HOURS_WORD: Readonly<Record<number, string>> = {
  1: "last hour",
  6: "last 6 hours",
  24: "last day",
  168: "last week",
};
const SHOWS_WORD: { readonly [S in FleetView]: string } = {
  all: "all nodes",
  pressure: "under pressure",
  refused: "with refusals",
  evicted: "with evictions",
  drift: "with drift",
  silent: "silent",
  "not-known": "pressure not known",
};

/** Shown in place of a refusal count that is not known. */
export const REFUSALS_NOT_KNOWN: Html =
  html`<span class="soft" title="what kubelets refuse is not reported: start nodewise collect for the cluster, or request admission decisions">–</span>` as Html;

/** The number of nodes with each severity, among those that the other filters match; each links to them. */
function figures(nodes: readonly FleetNode[], question: FleetQuestion): Promise<Html> {
  const cards = FLEET_VIEWS.map((show) => {
    const count = nodes.filter(IN_VIEW[show]).length;
    const isKnown = show !== "refused" || count > 0 || nodes.some(knowsRefusals);
    const tone =
      show === "all" || count === 0 ? "" : show === "pressure" || show === "evicted" ? "bad-text" : "warn-text";
    const here = show === question.show ? raw(' aria-current="true"') : "";
    return html`<a class="card tile" href="${fleetLink(question, { show })}"${here}><span class="figure ${tone}">${isKnown ? count : REFUSALS_NOT_KNOWN}</span><span class="soft">${SHOWS_WORD[show]}${show === "all" ? likeWhat(question) : ""}</span></a>`;
  });
  return all([html`<nav class="cards" aria-label="Nodes by state">${all(cards)}</nav>`]);
}

function likeWhat({ q, labels, zone, kubelet, reason }: FleetQuestion): string {
  if (q !== "") return ` with “${q}”`;
  return `${labels}${zone}${kubelet}${reason}` === "" ? "" : " that match";
}

/** Plain form fields: the answer is a link that can be shared. */
function filters(
  { q, labels, zone, show, kubelet, reason, sort, order, hours }: FleetQuestion,
  nodes: readonly FleetNode[],
): Html | Promise<Html> {
  const options = (values: readonly (readonly [string, string])[], now: string): Promise<Html> =>
    all(
      values.map(
        ([value, word]) => html`<option value="${value}"${value === now ? raw(" selected") : ""}>${word}</option>`,
      ),
    );
  /** A choice, shown only if there are several values or one is chosen. */
  const choice = (label: string, name: string, any: string, words: readonly string[], now: string) =>
    words.length === 0 && now === ""
      ? ""
      : html`<label>${label}<select name="${name}">${options(
          [["", any], ...[...new Set([...words, ...(now === "" ? [] : [now])])].map((word) => [word, word] as const)],
          now,
        )}</select></label>`;
  const chosen = [q, labels, zone, show === "all" ? "" : SHOWS_WORD[show], kubelet, reason].filter(
    (word) => word !== "",
  );
  return html`<details class="filters"><summary>Filter${chosen.length === 0 ? "" : `: ${chosen.join(", ")}`}</summary><form class="row" action="/" method="get" role="search">
<label>Name has<input name="q" type="search" value="${q}" maxlength="253"></label>
<label>Labels<input name="labels" type="search" value="${labels}" placeholder="pool=web,!gpu"></label>
${choice("Zone", "zone", "any zone", zonesAmong(nodes), zone)}
<label>Show<select name="show">${options(
    FLEET_VIEWS.map((word) => [word, SHOWS_WORD[word]] as const),
    show,
  )}</select></label>
<label>Kubelet<select name="kubelet">${kubeletOptions(kubelet, "any version", versionsAmong(nodes))}</select></label>
${choice("Reason", "reason", "any reason", reasonsAmong(nodes), reason)}
<label>Counted over the<select name="hours">${options(
    HOURS.map((n) => [String(n), HOURS_WORD[n] ?? ""] as const),
    String(hours),
  )}</select></label>
<input type="hidden" name="sort" value="${sort}"><input type="hidden" name="order" value="${order}">
<span class="send"><button>Show</button> <a href="/">reset</a></span></form></details>`;
}

/** The columns before and after those of the distances to thresholds: the decisive ones come first. */
const COLUMNS: readonly (readonly [FleetSort, string, string])[] = [
  ["name", "Node", ""],
  ["severity", "State", ""],
];
const COUNTS: readonly (readonly [FleetSort, string, string])[] = [
  ["refused", "Refused", "num"],
  ["evicted", "Evicted", "num"],
  ["drift", "Drift", "num"],
  ["kubelet", "Kubelet", ""],
  ["decisions", "Decisions", "num"],
  ["seen", "Last seen", ""],
];

interface Times {
  /** Counts are of this time or later. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

function nodesTable(
  nodes: readonly FleetNode[],
  question: FleetQuestion,
  { sinceMs, nowMs }: Times,
): Html | Promise<Html> {
  if (nodes.length === 0) return html`<p>No node matches. <a href="/">All nodes</a></p>`;
  const rooms = headrooms(nodes);
  const column = ([sort, name, tone]: (typeof COLUMNS)[number], spans = html` rowspan="2"`): Html | Promise<Html> => {
    const isSorted = sort === question.sort;
    const turned = question.order === "asc" ? "desc" : "asc";
    const order = isSorted ? turned : usualOrder(sort);
    const aria = isSorted ? raw(` aria-sort="${question.order}ending"`) : "";
    const arrow = !isSorted ? "" : question.order === "asc" ? " ▲" : " ▼";
    return html`<th class="${tone}"${spans}${aria}><a href="${fleetLink(question, { sort, order })}">${name}${arrow}</a></th>`;
  };
  // the whole group sorts by the threshold that is met first
  const group = html` colspan="${rooms.length}" scope="colgroup"`;
  const left = rooms.length === 0 ? [] : [column(["headroom", "Headroom", "group"], group)];
  const heads = [
    html`<td rowspan="2"></td>`,
    ...COLUMNS.map((one) => column(one)),
    ...left,
    ...COUNTS.map((one) => column(one)),
  ];
  const below = rooms.map(([name, ...signals]) => html`<th class="num" title="${signals.join(", ")}">${name}</th>`);
  return html`<form action="/compare" method="get"><div class="scroll" tabindex="0" role="region" aria-label="Nodes"><table>
<thead><tr>${all(heads)}</tr><tr>${all(below)}</tr></thead>
<tbody>${all(nodes.map((node) => nodeRow(node, rooms, question.hours, { sinceMs, nowMs })))}</tbody></table></div>
<p class="actions"><button>Compare two</button> <a href="${csvLink(question)}" download>CSV</a> <span class="soft small">${rooms.length === 0 ? "" : HEADROOM_NOTE}</span></p></form>`;
}

const HEADROOM_NOTE = `Memory, disks and PIDs: the share of the capacity that is left until the kubelet evicts, and the time until then if it goes on falling as it did. Times beyond ${FORECAST_MS / HOUR_MS} hours are not shown: a straight line through the last passes predicts nothing that far ahead.`;

type Signal = Headroom["signal"];
const NODE_DISK = ["Node disk", "nodefs.available", "nodefs.inodesFree"] as const;
/** Resources that can run out, in familiar order, with their signals: a disk can run out of space or of inodes. */
const ROOMS: readonly (readonly [name: string, ...signals: readonly Signal[]])[] = [
  ["Pods’ memory", "allocatableMemory.available"],
  ["Memory", "memory.available"],
  NODE_DISK,
  ["Image disk", "imagefs.available", "imagefs.inodesFree"],
  ["Container disk", "containerfs.available", "containerfs.inodesFree"],
  ["PIDs", "pid.available"],
];
/** Resources with a threshold on some node; disks that are the same on all nodes are merged. */
export const headrooms = (nodes: readonly FleetNode[]): typeof ROOMS =>
  ROOMS.filter(([, ...signals]) =>
    nodes.some(({ headroom }) => headroom.some(({ signal }) => signals.includes(signal))),
  ).filter((room, _, rooms) => room === NODE_DISK || !rooms.includes(NODE_DISK) || !isTwin(room, nodes));

const firstOf = ({ headroom }: FleetNode, [, ...signals]: (typeof ROOMS)[number]): Headroom | undefined =>
  headroom.find(({ signal }) => signals.includes(signal));
/** Whether the resource's file system is the node's own disk on all nodes, with the same figure. */
const isTwin = (room: (typeof ROOMS)[number], nodes: readonly FleetNode[]): boolean =>
  (room[1] ?? "").endsWith("fs.available") &&
  nodes.every((node) => {
    const [own, disk] = [firstOf(node, room), firstOf(node, NODE_DISK)];
    return own?.ratio === disk?.ratio && own?.metAtMs === disk?.metAtMs;
  });

/** The node's version, and the version of its newest decision if that differs or the node has none. */
function version({ kubelet, kubeletVersion }: FleetNode): Html | Promise<Html> {
  const own = (kubeletVersion ?? "").replace(/^v/, "");
  if (own === "") return kubelet === "" ? html`<span class="soft">–</span>` : html`${kubelet}`;
  if (kubelet === "" || own === kubelet || own.startsWith(`${kubelet}.`)) return html`${own}`;
  return html`${own} <span class="soft" title="the kubelet version of its newest decision">as ${kubelet}</span>`;
}

const nodeRow = (
  node: FleetNode,
  rooms: typeof ROOMS,
  hours: number,
  { sinceMs, nowMs }: Times,
): Html | Promise<Html> => html`<tr>
<td><input type="checkbox" name="node" value="${node.name}" aria-label="Compare ${node.name}"></td>
<td>${nodeName(node.name)}</td><td>${severityCell(node)}</td>
${all(rooms.map(([name, ...signals]) => html`<td class="num" data-name="${name}">${headroom(node, signals, nowMs)}</td>`))}
<td class="num" data-name="Refused">${counted(node, "refused", sinceMs)}${doneByKubelet(node.name, node.kubeletRefusals, hours)}</td>
<td class="num" data-name="Evicted">${counted(node, "evicted", sinceMs)}${doneByKubelet(node.name, evictions(node), hours)}</td>
<td class="num" data-name="Drift">${drift(node)}</td><td data-name="Kubelet">${version(node)}</td><td class="num" data-name="Decisions">${node.decisions}</td>
<td data-name="Last seen">${ago(node.lastSeenMs)}${absence(node)}</td></tr>`;

function absence({ silent, deletedMs }: FleetNode): Html | Promise<Html> | "" {
  if (deletedMs !== null) return html` <span class="tag" title="its cluster deleted it">deleted</span>`;
  return silent ? html` <span class="tag warn">silent</span>` : "";
}

const TONE = { refused: "warn-text", evicted: "bad-text" } as const;
const REFUSALS: readonly string[] = ["refused", "kubelet-refuses"];

/** A count that links to its decisions; for two sorts of refusals, to the latest one. */
function counted(node: FleetNode, of: keyof typeof TONE, sinceMs: number): Html | Promise<Html> {
  if (node[of] === 0)
    return of === "refused" && !knowsRefusals(node) ? REFUSALS_NOT_KNOWN : html`<span class="soft">0</span>`;
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

/** The number of pods that the kubelet itself refused or evicted; the most frequent reason links to its outcomes. */
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

/** The distance to the threshold that is met first, and when it is met by the forecast. */
function headroom({ headroom: all }: FleetNode, signals: readonly Signal[], nowMs: number): Html | Promise<Html> {
  const first = all.find((one) => signals.includes(one.signal));
  if (first?.ratio === null || first === undefined) return html`<span class="soft">–</span>`;
  const { signal, type, ratio, metAtMs, soonMs } = first;
  const next = nextThreshold(all, first);
  const tone = ratio < 0 ? "bad-text" : ratio < NEAR || isSoon(soonMs, nowMs) ? "warn-text" : "";
  const when = metAtMs === null ? "" : `, met ${utcText(metAtMs)} as it falls`;
  const soon =
    soonMs !== null && soonMs > 0
      ? html` <span class="small">${whenText(soonMs, nowMs)}</span>`
      : next === undefined
        ? ""
        : html` <span class="small" title="${next.type} threshold ${limitText(next)} of ${signal}">${next.type} ${whenText(next.soonMs, nowMs)}</span>`;
  return html`<span class="${tone}" title="${type} threshold ${limitText(first)} of ${signal}${when}">${percentText(ratio)}${soon}</span>`;
}
/** When a threshold is met; a forecast in the past means that no pass has come since. */
function whenText(atMs: number, nowMs: number): string {
  const ms = atMs - nowMs;
  if (ms <= 0) return ms > -MINUTE_MS ? "due now" : `due ${Math.round(-ms / MINUTE_MS)} min ago`;
  if (ms < MINUTE_MS) return "in < 1 min";
  const minutes = Math.round(ms / MINUTE_MS);
  return minutes < 60 ? `in ${minutes} min` : `in ${Math.round(minutes / 6) / 10} h`;
}
const percentText = (ratio: number): string => `${(ratio * 100).toFixed(Math.abs(ratio) < 0.1 ? 1 : 0)}\u00a0%`;

/** A threshold in readable units: `700 MiB`, `10%`. */
export const limitText = ({ signal, threshold }: Pick<Headroom, "signal" | "threshold">): string =>
  quantityText(resourceOfSignal(signal), threshold);
/** `2.6 GiB (64 % of capacity) above 700 MiB`; for a threshold that is met, the missing amount. */
export function headroomText(room: Headroom): string {
  const { signal, distance, ratio } = room;
  const share = ratio === null ? "" : ` (${percentText(Math.abs(ratio))} of capacity)`;
  return `${signalText(signal, Math.abs(distance))}${share} ${distance < 0 ? "below" : "above"} ${limitText(room)}`;
}

const SEVERITY: { readonly [S in Severity]: readonly [word: string, tone: string] } = {
  ok: ["healthy", "good"],
  gone: ["gone", ""],
  "not-known": ["not known", ""],
  refuses: ["with refusals", "warn"],
  evicted: ["has evicted", "warn"],
  silent: ["silent", "warn"],
  "pressure-soon": ["pressure soon", "warn"],
  "under-pressure": ["under pressure", "warn"],
  reclaims: ["reclaims", "warn"],
  evicts: ["evicts", "bad"],
};
export const severityTag = (severity: Severity): Html | Promise<Html> =>
  html`<span class="tag ${SEVERITY[severity][1]}">${SEVERITY[severity][0]}</span>`;

/** The texts for pressure: without a true condition, and its source. */
const PRESSURE_WORDS = {
  "eviction-pass": { none: "", by: "" },
  "node-status": { none: "no pressure", by: " by the node’s status" },
  nothing: { none: "pressure not known", by: "" },
} as const;
/** The severity, which links to its eviction pass, and the true conditions. */
function severityCell({ severity, latest, pressureFrom, conditions }: FleetNode): Html | Promise<Html> {
  const { eviction } = latest;
  const tag = severityTag(severity);
  const isByPass = pressureFrom === "eviction-pass" && eviction !== undefined;
  const label = isByPass ? html`<a href="/decisions/${eviction.decisionId}">${tag}</a>` : tag;
  const { none, by } = PRESSURE_WORDS[pressureFrom ?? "nothing"];
  const words = `${conditions.join(", ") || none}${by}`;
  return words === "" ? label : html`${label} <span class="small soft">${words}</span>`;
}

function drift({ latest, drift: files, report }: FleetNode): Html | Promise<Html> {
  const { cgroups } = latest;
  if (files === null || cgroups === undefined) return html`<span class="soft">–</span>`;
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

/** GET /: the nodes and their state. A node's token sees only its own node. */
export async function getFleet(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, caller } = exchange;
  const question = fleetQuestion(exchange);
  if (!question.ok) return question;
  const now = deps.now();
  // counts are stored by the hour
  const sinceMs = Math.floor(now / HOUR_MS - question.value.hours) * HOUR_MS;
  const own = caller.node ?? undefined;
  const [rows, hours, latest] = await Promise.all([
    fleetOf(deps.store, now, sinceMs, own),
    deps.store.listHours(sinceMs, own),
    deps.store.listDecisions({ limit: LATEST, ...(own === undefined ? {} : { node: own }) }),
  ]);
  if (!rows.ok) return historyProblem(rows.error);
  if (!hours.ok) return historyProblem(hours.error);
  if (!latest.ok) return historyProblem(latest.error);
  const nodes = rows.value;
  if (nodes.length === 0)
    return page("Nodes", html`<div id="nodes" data-live>${NOTHING}</div>`, { place: "/", live: "" });
  const { q: name, selector, show, zone, kubelet, reason } = question.value;
  const named = filtered(nodes, { name, selector });
  const chosen = Object.fromEntries(Object.entries({ zone, kubelet, reason }).filter(([, word]) => word !== ""));
  const like = filtered(named, chosen);
  const found = ordered(filtered(like, { show }), question.value);
  const unknown = found.length === 0 && reason !== "" ? unknownReason(reason) : null;
  if (unknown !== null) return unknown;
  const shown = found.slice((question.value.page - 1) * ROWS, question.value.page * ROWS);
  return page(
    "Nodes",
    html`<div id="figures" data-live>${figures(like, question.value)}</div>
<div id="hours" data-live>${hoursPicture(hours.value, now, question.value.hours)}</div>
${filters(question.value, nodes)}
<div id="nodes" data-live>${nodesTable(shown, question.value, { sinceMs, nowMs: now })}
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
