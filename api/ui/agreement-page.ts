import type { OutcomeFilter, OutcomeTally } from "../../db/rows.ts";
import { DAY_MS, HOUR_MS } from "../base/duration.ts";
import { notAmongIssue } from "../base/near-name.ts";
import type { Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { agreementFilter, countsOf, type KindAgreement, type ListedOutcome, listedOutcome } from "../http/agreement.ts";
import { unknownReason } from "../http/decision-list.ts";
import { type Exchange, queryOf, queryProblem } from "../http/route.ts";
import {
  AGREEMENT_VERDICTS,
  type AgreementVerdict,
  type Comparison,
  isAgreementVerdict,
  OUTCOME_KINDS,
  type SideValue,
} from "../model/outcome.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { shareText } from "../text/size.ts";
import { durationText } from "../text/time-text.ts";
import { stackBar } from "./draw/bars.ts";
import { reasonField } from "./form-fields.ts";
import { html, nodeName, raw, utcText } from "./html.ts";
import { all, type Html, page } from "./page.ts";

/** The style sheet's classes for verdicts. */
const TONE: { readonly [V in AgreementVerdict]: "good" | "bad" | "rest" } = {
  agrees: "good",
  differs: "bad",
  "not-comparable": "rest",
};
/** The verdict's word for several outcomes. */
const WORD: { readonly [V in AgreementVerdict]: string } = {
  agrees: "agree",
  differs: "differ",
  "not-comparable": "not comparable",
};

/** A time range in pieces; the last contains `untilMs`. */
interface Pieces {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly pieceMs: number;
}

const WIDTH = 1000;
const HEIGHT = 100;

/** The outcomes of one kind: the total of each verdict, and its share over time. */
export function kindPicture(
  kind: KindAgreement,
  tally: readonly OutcomeTally[],
  pieces: Pieces,
  link: string,
): Html | Promise<Html> {
  const { agrees, differs, notComparable, share } = kind;
  const counts: Readonly<Record<AgreementVerdict, number>> = { agrees, differs, "not-comparable": notComparable };
  const words = AGREEMENT_VERDICTS.map((verdict) => `${counts[verdict]} ${WORD[verdict]}`).join(", ");
  const segments = AGREEMENT_VERDICTS.map((verdict) => ({
    size: counts[verdict],
    tone: TONE[verdict],
    words: `${counts[verdict]} ${WORD[verdict]}`,
  }));
  return html`<div class="bar-row"><div><a href="${link}">${kind.kind}</a>
<span>${share === null ? html`<span class="soft">none could be compared</span>` : html`<strong>${shareText(share)}</strong> agree`} <span class="soft">· ${words}</span></span></div>
${stackBar(segments, `${kind.kind}: ${words}`)}${overTime(kind.kind, tally, pieces)}</div>`;
}

function overTime(
  kind: string,
  tally: readonly OutcomeTally[],
  { sinceMs, untilMs, pieceMs }: Pieces,
): Html | Promise<Html> {
  const first = sinceMs - (sinceMs % pieceMs);
  const count = Math.floor((untilMs - first) / pieceMs) + 1;
  const step = WIDTH / count;
  const own = Map.groupBy(
    tally.filter((row) => row.kind === kind),
    ({ fromMs }) => fromMs,
  );
  const columns = Array.from({ length: count }, (_, i) => {
    const rows = own.get(first + i * pieceMs) ?? [];
    return columnOf(rows, first + i * pieceMs, i * step, step * 0.86);
  });
  return html`<svg class="shares" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${kind}: shares over time, ${utcText(first)} to ${utcText(untilMs)}">${all(columns)}</svg>`;
}

/** A stacked column, from the bottom: agrees, differs, not comparable. */
function columnOf(rows: readonly OutcomeTally[], fromMs: number, x: number, width: number): Html | Promise<Html> {
  const sum = rows.reduce((total, { count }) => total + count, 0);
  if (sum === 0) return html``;
  let y = HEIGHT;
  const totals: string[] = [];
  const parts = AGREEMENT_VERDICTS.flatMap((verdict) => {
    const count = rows.find((row) => row.verdict === verdict)?.count ?? 0;
    if (count === 0) return [];
    const height = (count / sum) * HEIGHT;
    y -= height;
    totals.push(`${count} ${WORD[verdict]}`);
    return [
      html`<rect class="${TONE[verdict]}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}"/>`,
    ];
  });
  return html`<g><title>${utcText(fromMs)}: ${totals.join(", ")}</title>${all(parts)}</g>`;
}

/** Days that are looked back, and the pieces in which they are drawn. */
const SPANS = { "1": HOUR_MS, "7": 6 * HOUR_MS, "30": DAY_MS } as const;
type Days = keyof typeof SPANS;
const DAYS_WORD: { readonly [D in Days]: string } = { "1": "last day", "7": "last 7 days", "30": "last 30 days" };
const PAGE_ROWS = 20;

interface Question {
  readonly days: Days;
  readonly kind: string;
  readonly node: string;
  readonly reason: string;
  /** A uid, a `namespace/name`, or a name. */
  readonly pod: string;
  readonly verdict: AgreementVerdict | "all";
}
const NARROWING = ["kind", "node", "reason", "pod"] as const;

/** GET /agreement: how decisions compare with what kubelets did, over time, and those that differ with both sides. */
export async function getAgreementPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, ["days", ...NARROWING, "verdict", "pageToken"]);
  if (!given.ok) return given;
  const { days = "7", verdict = "differs", pageToken } = given.value;
  const narrowing = NARROWING.map((name) => [name, given.value[name]?.trim() ?? ""] as const);
  if (!isDays(days)) return queryProblem([notAmongIssue("days", days, Object.keys(SPANS))]);
  const filter = agreementFilter(exchange, {
    ...(verdict === "all" ? {} : { verdict }),
    ...Object.fromEntries(narrowing.filter(([, value]) => value !== "")),
  });
  if (!filter.ok) return filter;
  const { store, now } = exchange.deps;
  const untilMs = now();
  const pieces = { sinceMs: untilMs - Number(days) * DAY_MS, untilMs, pieceMs: SPANS[days] };
  const asked: OutcomeFilter = { ...filter.value, sinceMs: pieces.sinceMs };
  const { verdict: _, ...everything } = asked;
  const tally = await store.tallyOutcomes(everything, pieces.pieceMs);
  if (!tally.ok) return historyProblem(tally.error);
  const unknown = tally.value.length === 0 ? unknownReason(asked.reason) : null;
  if (unknown !== null) return unknown;
  const listed = await store.listOutcomes({
    ...asked,
    limit: PAGE_ROWS,
    ...(pageToken === undefined ? {} : { pageToken }),
  });
  if (!listed.ok) return historyProblem(listed.error);
  const named = Object.fromEntries(narrowing) as Pick<Question, (typeof NARROWING)[number]>;
  const question: Question = { days, ...named, verdict: verdict as Question["verdict"] };
  const kinds = countsOf(tally.value);
  const pictures = kinds.map((one) =>
    kindPicture(one, tally.value, pieces, agreementLink({ ...question, kind: one.kind })),
  );
  const { items, nextPageToken } = listed.value;
  return page(
    "Agreement",
    html`<p class="soft">What kubelets really did, compared with what would have been decided on the last snapshot before it. <code>nodewise collect</code> reports what kubelets do.</p>
${filters(question)}
${kinds.length === 0 ? html`<p>No outcome of a kubelet was reported in this time.</p>` : html`<section class="card bars" aria-label="By kind">${all(pictures)}${legend(pieces)}</section>`}
<h2 id="list">${question.verdict === "all" ? "Outcomes" : `Outcomes that ${LISTED[question.verdict]}`}</h2>
${items.length === 0 ? html`<p class="soft">None.</p>` : all(items.map((row) => outcomeCard(listedOutcome(row))))}
${nextPageToken === null ? "" : html`<p><a rel="next" href="${agreementLink(question, nextPageToken)}">Older</a></p>`}`,
    { place: "/agreement", live: "" },
  );
}
const LISTED: { readonly [V in AgreementVerdict]: string } = { ...WORD, "not-comparable": "are not comparable" };
const isDays = (text: string): text is Days => Object.hasOwn(SPANS, text);

/** The link to outcomes; values equal to the defaults are left out. */
export const agreementLink = (question: Partial<Question>, pageToken?: string): string => {
  const { days = "7", verdict = "differs" } = question;
  const query = new URLSearchParams();
  if (days !== "7") query.set("days", days);
  for (const name of NARROWING) if (question[name]) query.set(name, question[name]);
  if (verdict !== "differs") query.set("verdict", verdict);
  if (pageToken !== undefined) query.set("pageToken", pageToken);
  return query.size === 0 ? "/agreement" : `/agreement?${query}`;
};

function filters({ days, kind, node, reason, pod, verdict }: Question): Html | Promise<Html> {
  const options = (values: readonly (readonly [string, string])[], now: string): Promise<Html> =>
    all(
      values.map(
        ([value, word]) => html`<option value="${value}"${value === now ? raw(" selected") : ""}>${word}</option>`,
      ),
    );
  return html`<form class="row" action="/agreement" method="get" role="search">
<label>Over the<select name="days">${options(Object.entries(DAYS_WORD), days)}</select></label>
<label>Kind<select name="kind">${options([["", "all kinds"], ...OUTCOME_KINDS.map((one) => [one, one] as const)], kind)}</select></label>
<label>Node<input name="node" value="${node}" maxlength="253" placeholder="all nodes"></label>
${reasonField(reason)}
<label>Pod<input name="pod" value="${pod}" placeholder="NAMESPACE/NAME"></label>
<label>List those that<select name="verdict">${options(
    [...AGREEMENT_VERDICTS.map((one) => [one, LISTED[one]] as const), ["all", "were reported (all)"]],
    verdict,
  )}</select></label>
<span class="send"><button>Show</button> <a href="/agreement">reset</a></span></form>`;
}

const legend = ({ sinceMs, untilMs }: Pieces): Html =>
  html`<ul class="legend">${AGREEMENT_VERDICTS.map((verdict) => html`<li class="${TONE[verdict]}">${WORD[verdict]}</li>`)}<li class="plain soft">${utcText(sinceMs)} to ${utcText(untilMs)}</li></ul>`;

const CARD_TONE: { readonly [V in AgreementVerdict]: string } = {
  agrees: "good",
  differs: "bad",
  "not-comparable": "",
};

/** One outcome with both sides, and links to the decisions that were compared. */
function outcomeCard({ at, node, kind, verdict, pod, comparison }: ListedOutcome): Html | Promise<Html> {
  const tone = isAgreementVerdict(verdict) ? CARD_TONE[verdict] : "";
  const name = pod === null ? "" : `${pod.namespace}/${pod.name}`;
  const who = pod === null ? "" : html` <code>${name}</code>`;
  const label = `Both sides: ${kind} ${name} on ${node}, ${at}`;
  return html`<article class="card finding ${tone}"><h3><span class="tag ${tone}">${verdict}</span> ${kind}${who} <span class="soft small"><time datetime="${at}">${utcText(Date.parse(at))}</time> on ${nodeName(node)}</span></h3>
${comparison === null ? html`<p class="soft">Another version recorded it.</p>` : comparisonPart(comparison, label)}</article>`;
}

function comparisonPart(comparison: Comparison, label: string): Html | Promise<Html> {
  const { difference, why, snapshotId, snapshotAgeMs, policyVersion } = comparison;
  const differs =
    difference === null
      ? ""
      : html`<p><strong>${difference.field}</strong>: the kubelet ${valueText(difference.kubelet)}, Nodewise ${valueText(difference.nodewise)}</p>`;
  const reason =
    why === null
      ? ""
      : html`<p><code>${why.code}</code> ${why.message}${why.missing.length === 0 ? "" : html`: <code>${why.missing.join(", ")}</code>`}</p>`;
  const links =
    snapshotId === null
      ? ""
      : html`<p class="soft small">on the <a href="/v1/snapshots/${snapshotId}">snapshot</a>${snapshotAgeMs === null ? "" : ` of ${durationText(snapshotAgeMs)} before`}${policyVersion === null ? "" : html`, by <code>${policyVersion}</code>`} · <a href="/what-if?snapshot=${snapshotId}">what if</a></p>`;
  return html`${differs}${reason}${sidesTable(comparison, label)}${links}`;
}

function sidesTable({ kubelet, nodewise, measured, difference }: Comparison, label: string): Html | Promise<Html> {
  const fields = Object.keys({ ...kubelet, ...nodewise });
  const ours = (field: string): string => (nodewise === null ? "" : valueText(nodewise[field] ?? null));
  const rows = fields.map(
    (field) =>
      html`<tr${field === difference?.field ? raw(' class="changed"') : ""}><td>${field}</td><td>${valueText(kubelet[field] ?? null)}</td><td>${ours(field)}</td></tr>`,
  );
  const beside = measured.map(
    (one) =>
      html`<tr class="soft"><td>${one.field} <span class="small">(measured)</span></td><td>${valueText(one.kubelet)}</td><td>${valueText(one.nodewise)}</td></tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table class="sides stacked"><thead><tr><th>Field</th><th>Kubelet</th><th>Nodewise</th></tr></thead><tbody>${all([...rows, ...beside])}</tbody></table></div>`;
}

function valueText(value: SideValue): string {
  if (value === null || value === "") return "–";
  return Array.isArray(value) ? value.join(" ") || "–" : String(value);
}
