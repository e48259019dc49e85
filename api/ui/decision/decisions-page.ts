import type { Result } from "../../base/result.ts";
import type { Reply } from "../../dependencies.ts";
import { DECISION_FILTERS, decisionQuery, FILTERS_OF_NODE, nodeAsked } from "../../http/decision-list.ts";
import { type Exchange, param, queryOf } from "../../http/route.ts";
import { KINDS, VERDICTS } from "../../model/decision.ts";
import { historyProblem, type Problem } from "../../service/problem.ts";
import { many } from "../../text/sentences/words.ts";
import { kubeletOptions, reasonField } from "../form-fields.ts";
import { html, raw } from "../html.ts";
import { type Html, page } from "../page.ts";
import { decisionsTable } from "../verdict-tag.ts";

type Filters = Readonly<Partial<Record<(typeof DECISION_FILTERS)[number], string>>>;

/** GET /decisions and /nodes/{node}/decisions: newest first, by the same filters as below /v1. */
export async function getDecisionsPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const ofNode = param(exchange, "node");
  const given = queryOf(exchange, ofNode === "" ? DECISION_FILTERS : FILTERS_OF_NODE);
  if (!given.ok) return given;
  const filters = normalized(given.value);
  const query = decisionQuery(filters, exchange.deps.now());
  if (!query.ok) return query;
  const node = await nodeAsked(exchange, ofNode === "" ? filters.node : ofNode);
  if (!node.ok) return node;
  const name = node.value;
  const found = await exchange.deps.store.listDecisions({ ...query.value, ...(name === null ? {} : { node: name }) });
  if (!found.ok) return historyProblem(found.error);
  const { items, nextPageToken } = found.value;
  const here = ofNode === "" ? "/decisions" : `/nodes/${encodeURIComponent(ofNode)}/decisions`;
  const isFirst = filters.pageToken === undefined;
  const list = html`<div id="list"${isFirst ? raw(" data-live") : ""}>${
    items.length === 0
      ? html`<p class="soft">No decision${ofNode === "" ? "" : " of this node"} is so${isFirst ? "" : ", or they are pruned meanwhile"}.</p>`
      : decisionsTable(items, { ofOneNode: ofNode !== "" })
  }</div>`;
  const { pageToken: _, limit: __, ...whole } = filters;
  const forms = html`<a href="/v1${here}${queryText(filters)}">JSON</a> · <a href="/v1${here}${queryText({ ...whole, format: "csv" })}">CSV</a>`;
  return page(
    ofNode === "" ? "Decisions" : `Decisions of ${ofNode}`,
    html`<p>${ofNode === "" ? "" : html`<a href="/nodes/${encodeURIComponent(ofNode)}">The node</a> · `}${forms}</p>
${form(here, filters, ofNode === "")}
<p class="soft small" id="count">${many(items.length, "decision")}${nextPageToken === null ? "" : ", and older ones"}.</p>
${list}${links(here, filters, nextPageToken)}`,
    { ...(ofNode === "" ? { place: "/decisions" } : {}), ...(isFirst ? { live: name ?? "" } : {}) },
  );
}

/** Drops empty form fields, and takes times without a zone as UTC. */
function normalized(given: Filters): Filters {
  const filled = Object.entries(given).filter(([, text]) => text.trim() !== "");
  const whole = filled.map(([name, text]) => [name, name === "since" || name === "until" ? utc(text) : text.trim()]);
  return Object.fromEntries(whole) as Filters;
}
const utc = (text: string): string => {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d(?:\.\d+)?)?$/.exec(text);
  return match === null ? text : `${match[1]}${match[2] ?? ":00"}Z`;
};

function queryText(filters: Filters & { readonly format?: string }): string {
  const text = new URLSearchParams(filters as Record<string, string>).toString();
  return text === "" ? "" : `?${text}`;
}

function form(here: string, filters: Filters, ofAll: boolean): Html {
  const { node, kind, verdict, reason, pod, kubelet = "", since, until, limit } = filters;
  const choice = (
    name: string,
    words: string,
    all: readonly string[],
    chosen: string | undefined,
    shown: Readonly<Record<string, string>> = {},
  ): Html =>
    html`<label>${words}<select name="${name}"><option value="">any</option>${all.map((one) => html`<option${shown[one] === undefined ? "" : html` value="${one}"`}${one === chosen ? raw(" selected") : ""}>${shown[one] ?? one}</option>`)}</select></label>`;
  const time = (name: string, words: string, text: string | undefined): Html =>
    html`<label>${words}<input type="text" name="${name}" value="${text ?? ""}" placeholder="2026-01-31T12:00:00Z" size="21"></label>`;
  return html`<form class="row" method="get" action="${here}" aria-label="Which decisions">
${ofAll ? html`<label>Node<input type="text" name="node" value="${node ?? ""}" size="16"></label>` : ""}
${choice("kind", "Kind", KINDS, kind)}${choice("verdict", "Verdict", VERDICTS, verdict, { decided: "decided, admitted" })}
${reasonField(reason ?? "")}
<label>Pod<input type="text" name="pod" value="${pod ?? ""}" placeholder="namespace/name" size="24"></label>
<label>Kubelet<select name="kubelet">${kubeletOptions(kubelet, "any version")}</select></label>
${time("since", "Since (UTC)", since)}${time("until", "Until (UTC)", until)}
${limit === undefined ? "" : html`<input type="hidden" name="limit" value="${limit}">`}<button class="main">Show</button> <a href="${here}">All</a></form>`;
}

function links(here: string, filters: Filters, next: string | null): Html {
  const { pageToken, ...rest } = filters;
  const first = pageToken === undefined ? "" : html`<a href="${here}${queryText(rest)}">Newest</a>`;
  const older =
    next === null ? "" : html`<a rel="next" href="${here}${queryText({ ...rest, pageToken: next })}">Older</a>`;
  return html`<nav class="pages" aria-label="Pages of the list">${first}${older}</nav>`;
}
