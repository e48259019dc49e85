import { html } from "hono/html";
import type { EvictionDecision, RankedPod, Ranking } from "../../model/eviction.ts";
import { amountText } from "../../text/amount-text.ts";
import { rankChangeSentences } from "../../text/sentences/rank-change.ts";
import type { Html } from "../page.ts";
import { LISTS, type Lists } from "./lists.ts";
import { podName } from "./managed.ts";
import { scrolling } from "./section.ts";

const MOST_DRIVING = 10;

/** Who would go first for each resource, and what would change that; the ranking that is acted on first. */
export function rankings({ rankings: all, reclaim }: EvictionDecision, lists: Lists): Html {
  const drives = ({ signals }: Ranking): boolean => reclaim !== null && signals.includes(reclaim.threshold.signal);
  const inOrder = [...all.filter(drives), ...all.filter((ranking) => !drives(ranking))];
  const known = inOrder.filter(({ pods }) => pods.length > 0);
  const asked = known.filter((ranking) => lists.isAsked("ranking", nameOf(ranking)));
  const shown = asked.length > 0 ? asked : known;
  if (shown.length === 0) return html`<p class="soft">No ranking: no running pod is known.</p>`;
  return html`<div class="halves wide">${shown.map((ranking) => one(ranking, drives(ranking) ? MOST_DRIVING : LISTS.ranking.few, lists))}</div>`;
}

/** A signal is of one ranking. */
const nameOf = ({ signals, resource }: Ranking): string => signals[0] ?? resource;

function one(ranking: Ranking, few: number, lists: Lists): Html {
  const { resource, signals, pods, total } = ranking;
  const isAsked = lists.isAsked("ranking", nameOf(ranking));
  const { from, to, note } = lists.span(
    "ranking",
    isAsked ? pods.length : total,
    nameOf(ranking),
    Math.min(few, pods.length),
  );
  const first = pods.slice(from, to);
  const sentences = lists.asked === null ? rankChangeSentences(ranking) : [];
  const table = html`<table><caption>First to go for ${resource} <span class="small">by ${signals.join(", ")}</span></caption>
<thead><tr><th class="num">Place</th><th>Pod</th><th class="num">Priority</th><th class="num">Usage</th><th class="num">Request</th><th class="num">Above</th></tr></thead><tbody>${first.map((pod) => row(pod, ranking))}</tbody></table>`;
  return html`<div>${isAsked && pods.length < total ? html`<p class="note warn">The snapshot of this pass is no longer stored: of ${total} pods the first ${pods.length} are recorded.</p>` : ""}${scrolling(`First to go for ${resource} by ${signals.join(", ")}`, table)}${note}${
    sentences.length === 0 ? "" : html`<ul class="small soft">${sentences.map((text) => html`<li>${text}</li>`)}</ul>`
  }</div>`;
}

function row(
  { place, pod, critical, priority, usage, request, aboveRequest, exceedsRequest, tie }: RankedPod,
  { resource }: Ranking,
): Html {
  const amount = (units: number | null): string => (units === null ? "" : amountText(resource, units));
  return html`<tr><td class="num soft">${place}</td><td>${podName(pod)}${critical ? html` <span class="tag">critical</span> <span class="small soft">passed over</span>` : ""}${tie ? html` <span class="tag">tie</span>` : ""}</td><td class="num">${priority}</td><td class="num">${usage === null ? "no stats" : amount(usage)}</td><td class="num">${exceedsRequest === null ? "" : amount(request)}</td><td class="num${exceedsRequest === true ? " warn-text" : ""}">${amount(aboveRequest)}</td></tr>`;
}
