import { type DecisionHead, seriesOf } from "../../../db/rows.ts";
import {
  EVICTION_SIGNALS,
  type EvictionDecision,
  type EvictionSignal,
  type Forecast,
  type RankedPod,
  type Ranking,
  type Reclaim,
  type ThresholdState,
} from "../../model/eviction.ts";
import { isCurrentPolicy } from "../../profiles/index.ts";
import { rankChangeSentences } from "../../text/sentences/eviction.ts";
import { many } from "../../text/sentences/words.ts";
import { amountText, resourceOfSignal } from "../../text/size.ts";
import { AFTER_NODE_LEVEL, FILE_SYSTEMS, signalText, thresholdText } from "../../text/tables/eviction.ts";
import { delayText, durationText, soonText } from "../../text/time-text.ts";
import { jsonBlock, type Point, plot } from "../draw/plot.ts";
import { limitText } from "../fleet/fleet.ts";
import { cutInside, html, moment, quantityShown } from "../html.ts";
import type { Html } from "../page.ts";
import { recordPart } from "../record-part.ts";
import { verdictTag } from "../verdict-tag.ts";
import type { EvictionHistory } from "./eviction-history.ts";
import { LISTS, type ListView, PLOT_RANGES, type PlotRange } from "./lists.ts";
import { eventMarks, eventsList, latestOf, type NodeEvent, otherEvents, plotsLegend, spansOf } from "./node-events.ts";
import type { NodeView } from "./view.ts";
import { notKnown, podName, refusedText, scrolling, section } from "./view.ts";

const TONE: Readonly<Record<ThresholdState["state"], string>> = {
  above: "good",
  below: "bad",
  unreclaimed: "warn",
  unobserved: "warn",
  unwatched: "",
};
const isBytes = (signal: EvictionSignal): boolean => signal.endsWith(".available") && signal !== "pid.available";

/** The drawn values of one signal. */
interface SignalHistory {
  /** Oldest first. */
  readonly points: readonly Point[];
  /** Oldest first, those of this signal. */
  readonly acts: readonly NodeEvent[];
}

/** One signal: the available amount over time, thresholds, actions, the state of each threshold, and forecasts. */
function signalPlot(signal: EvictionSignal, decision: EvictionDecision, { points, acts }: SignalHistory): Html {
  const thresholds = decision.thresholds.filter((threshold) => threshold.signal === signal);
  const drawn = points.length > 0 ? points : pointNow(thresholds);
  const limits = thresholds.flatMap(({ quantity, value, graceMs }) =>
    quantity === null
      ? []
      : [
          {
            value: quantity,
            words: `${graceWords(graceMs)} ${limitText({ signal, threshold: value })}`,
            soft: graceMs > 0,
          },
        ],
  );
  const amount = (value: number): string => (isBytes(signal) ? signalText(signal, value) : value.toLocaleString("en"));
  const last = drawn.at(-1)?.[1];
  const now = last === undefined ? "not observed" : amount(last);
  const thresholdWords = limits.map(({ words }) => words).join(", ");
  const marks = eventMarks(acts);
  const done = marks.map((mark) => `; ${mark.number}: ${mark.words}`).join("");
  const words = `${signal}: ${now}${thresholdWords === "" ? ", no threshold" : `; thresholds ${thresholdWords}`}${done}`;
  const forecastOf = (of: ThresholdState | undefined): Forecast | undefined =>
    decision.forecast.find(
      ({ threshold }) =>
        of !== undefined && thresholdText(threshold) === thresholdText(of) && threshold.graceMs === of.graceMs,
    );
  const data = {
    signal,
    bytes: isBytes(signal),
    times: drawn.map(([atMs]) => atMs / 1000),
    values: drawn.map(([, value]) => value),
    limits,
    acts: marks.map(({ atMs, number, tone }) => ({ at: atMs / 1000, number, tone })),
  };
  return html`<figure class="card plot" id="plot-${signal}"><figcaption><strong>${signal}</strong> <span>${now}</span></figcaption>
${drawn.length === 0 ? html`<p class="soft small">Not observed: the passes’ stats did not have it.</p>` : plot({ points: drawn, limits, marks, words, amount: isBytes(signal) ? amount : shortCount, isBytes: isBytes(signal) })}
${drawn.length > 1 ? jsonBlock(data) : ""}${eventsList(acts, signal)}<ul class="thresholds">${thresholds.map((threshold, i) => line(threshold, forecastOf(threshold), i === 0 ? undefined : forecastOf(thresholds[i - 1])))}</ul></figure>`;
}

/** `20 M`, `32 k`: a number of inodes or process ids in short form. */
const shortCount = (count: number): string => {
  if (count >= 1e6) return `${Math.round(count / 1e5) / 10} M`;
  return count >= 1e4 ? `${Math.round(count / 100) / 10} k` : `${count}`;
};

/** Without a history, the points are those of the pass itself. */
function pointNow(thresholds: readonly ThresholdState[]): readonly Point[] {
  const seen = thresholds.find(({ available }) => available !== null);
  return seen === undefined || seen.available === null ? [] : [[seen.statsAtMs ?? 0, seen.available]];
}

const graceWords = (graceMs: number): string => (graceMs === 0 ? "hard" : `soft ${durationText(graceMs)}`);

/** `before`: the forecast of the previous line, which is not repeated. */
function line(threshold: ThresholdState, forecast: Forecast | undefined, before: Forecast | undefined): Html {
  const { signal, value, graceMs, state, derivedFrom, graceLeftMs } = threshold;
  const left =
    graceMs > 0 && graceLeftMs !== null && (state === "below" || state === "unreclaimed")
      ? `, ${durationText(graceLeftMs)} of its grace left`
      : "";
  const made = derivedFrom === undefined ? "" : `, made from ${derivedFrom}`;
  const own = forecast === undefined ? [] : forecastText(forecast);
  const isRepeated = before !== undefined && forecastText(before).join() === own.join();
  const [text = "", pod = "", rest = ""] = own;
  return html`<li><span class="${graceMs === 0 ? "hard" : "soft-limit"}">&lt; ${quantityShown(resourceOfSignal(signal), value)}</span> ${graceWords(graceMs)} <span class="tag ${TONE[state] ?? ""}">${state}</span>${left}${made}${text === "" || isRepeated ? "" : html`<br><span class="small soft">${text}${cutInside(pod)}${rest}</span>`}</li>`;
}

/** When a threshold is met by the forecast; then the pod that would be evicted first, and how long that delays it. */
function forecastText(forecast: Forecast): readonly string[] {
  const { threshold, slopePerSecond, observations, belowInMs, evictsInMs, victims } = forecast;
  if (slopePerSecond === null) return [`no forecast: ${observations} of the three observations that it takes`];
  const perMinute = Math.round(slopePerSecond * 60);
  const change =
    perMinute === 0 ? "steady" : `${perMinute > 0 ? "+" : ""}${signalText(threshold.signal, perMinute)}/min`;
  if (belowInMs === null) return [`${change}: not coming nearer`];
  const after = (ms: number, what: string): string =>
    soonText(ms) === "now" ? "now" : `${durationText(ms)} after ${what}`;
  const met = `met ${after(belowInMs, "these stats")}`;
  // for a threshold that is met, the pass counts the rest of its grace period
  const evictsAfter = belowInMs === 0 ? "this pass" : "these stats";
  const evicts = evictsInMs === null || evictsInMs === belowInMs ? "" : `, evicts ${after(evictsInMs, evictsAfter)}`;
  const [first] = victims;
  const text = `${change}: ${met}${evicts}`;
  if (first === undefined) return [text];
  const off = typeof first.buysMs === "number" ? `, which delays it by ${delayText(first.buysMs)}` : "";
  return [`${text}; `, podName(first.pod), ` is evicted first${off}`];
}

const MAX_DRIVING = 10;

/** Which pods would be evicted first for each resource, and what would change that; the ranking in use comes first. */
function rankings({ rankings: all, reclaim }: EvictionDecision, lists: ListView): Html {
  const drives = ({ signals }: Ranking): boolean => reclaim !== null && signals.includes(reclaim.threshold.signal);
  const inOrder = [...all.filter(drives), ...all.filter((ranking) => !drives(ranking))];
  const known = inOrder.filter(({ pods }) => pods.length > 0);
  const asked = known.filter((ranking) => lists.isAsked("ranking", nameOf(ranking)));
  const shown = asked.length > 0 ? asked : known;
  if (shown.length === 0) return html`<p class="soft">No ranking: no running pod is known.</p>`;
  const names = shown.map(({ resource }) => resource).join(", ");
  return html`<details id="rankings"${lists.asked === null ? "" : html` open`}><summary>Eviction order for ${names}</summary>
<div class="halves wide">${shown.map((ranking) => one(ranking, drives(ranking) ? MAX_DRIVING : LISTS.ranking.few, lists))}</div></details>`;
}

/** Each signal belongs to one ranking. */
const nameOf = ({ signals, resource }: Ranking): string => signals[0] ?? resource;

function one(ranking: Ranking, few: number, lists: ListView): Html {
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
  const table = html`<table><caption>Eviction order for ${resource} <span class="small">by ${signals.join(", ")}</span></caption>
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
  return html`<tr><td class="num soft">${place}</td><td>${cutInside(podName(pod))}${critical ? html` <span class="tag">critical</span> <span class="small soft">skipped</span>` : ""}${tie ? html` <span class="tag">tie</span>` : ""}</td><td class="num">${priority}</td><td class="num">${usage === null ? "no stats" : amount(usage)}</td><td class="num">${exceedsRequest === null ? "" : amount(request)}</td><td class="num${exceedsRequest === true ? " warn-text" : ""}">${amount(aboveRequest)}</td></tr>`;
}

/** The number of plots that are shown open, unless more signals are under pressure. */
const SEEN_PLOTS = 3;
const PRESSED: ReadonlySet<ThresholdState["state"]> = new Set(["below", "unreclaimed"]);

/** How near a signal is to its nearest threshold: 0 if one is met, 1 at twice a threshold. */
function nearness(signal: EvictionSignal, { thresholds }: EvictionDecision): number {
  const own = thresholds.filter((threshold) => threshold.signal === signal);
  const ratios = own.map(({ state, available, quantity }) => {
    if (PRESSED.has(state)) return 0;
    return available === null || quantity === null ? Number.MAX_VALUE : available / Math.max(1, quantity) - 1;
  });
  return Math.max(0, Math.min(Number.MAX_VALUE, ...ratios));
}

/** The plots of signals under pressure or acted on, of memory, and of those nearest to a threshold; the others are folded. */
function plotsOf(
  signals: readonly EvictionSignal[],
  decision: EvictionDecision,
  of: (s: EvictionSignal) => SignalHistory,
) {
  const isTwin = (signal: EvictionSignal): boolean =>
    decision.fileSystems === "one" && /^(?:imagefs|containerfs)\./.test(signal);
  const isMemory = (signal: EvictionSignal): boolean => signal === "memory.available";
  const nearest = signals
    .filter((signal) => !isTwin(signal))
    .sort((a, b) => Number(isMemory(b)) - Number(isMemory(a)) || nearness(a, decision) - nearness(b, decision));
  const seen = new Set(signals.filter((one) => nearness(one, decision) === 0 || of(one).acts.length > 0));
  for (const signal of nearest) if (seen.size < SEEN_PLOTS) seen.add(signal);
  const others = signals.filter((signal) => !seen.has(signal));
  const drawn = (some: readonly EvictionSignal[], label: string): Html =>
    html`<div class="plots" tabindex="0" role="region" aria-label="${label}">${some.map((signal) => signalPlot(signal, decision, of(signal)))}</div>`;
  return html`${drawn(
    signals.filter((signal) => seen.has(signal)),
    "Plots",
  )}${
    others.length === 0
      ? ""
      : html`<details id="other-plots"><summary>${many(others.length, "signal")} farther from a threshold: ${others.join(", ")}</summary>${drawn(others, "Plots of signals farther from a threshold")}</details>`
  }`;
}

const RANGE_WORDS: Readonly<Record<PlotRange, string>> = { "1h": "hour", "6h": "6 hours", "1d": "day", "7d": "week" };
/** Links to the same plots over other time ranges. */
function rangesNav({ range }: EvictionHistory, node: string): Html {
  const link = (of: PlotRange | null, words: string): Html => {
    const query = of === null ? "" : `?range=${of}`;
    return html`<a href="/nodes/${encodeURIComponent(node)}${query}#eviction"${of === range ? html` aria-current="true"` : ""}>${words}</a>`;
  };
  const ranges = (Object.keys(PLOT_RANGES) as PlotRange[]).map((of) => link(of, RANGE_WORDS[of]));
  return html`<nav class="ranges" aria-label="How far back the plots go"><span class="soft">Plots of the last</span> ${link(null, "passes")}${ranges}</nav>`;
}

/** Every signal over time with thresholds and forecast, the conditions, evicted pods, and the rankings. */
export function evictionSection(view: NodeView, lists: ListView): Html {
  const { eviction, pass, row } = view;
  const passes = `/nodes/${encodeURIComponent(row.name)}/decisions?kind=eviction`;
  const { newest } = eviction;
  if (newest !== null) {
    const { head, decision } = newest;
    const old = isCurrentPolicy(head.policyVersion) ? "" : html` by the policy ${head.policyVersion}`;
    const from = html`${verdictTag(head.verdict, head.reason)} decided ${moment(seriesOf(head).lastAtMs)}${statsTime(decision, head)}${old}, <a href="/decisions/${head.id}">why</a> · <a href="${passes}">all passes</a>`;
    const drawnOf = (): Html => drawn(decision, { eviction, from, lists });
    return section("eviction", "Eviction", html`${recordPart(head, view.undrawn, drawnOf)}`);
  }
  if (pass === null) return section("eviction", "Eviction", notKnown(noPass(view), ["stats", "kubeletConfiguration"]));
  if (!pass.ok) return section("eviction", "Eviction", refusedText(pass.error));
  const { decision, verdict, needs } = pass.value;
  const from = html`${verdictTag(verdict)} as a first pass over the newest snapshot would end: ${eviction.decisions === 0 ? "none was recorded" : "what is recorded cannot be read by this version"}${
    needs.length === 0
      ? ""
      : html`, and it lacks ${needs.map((need, i) => html`${i === 0 ? "" : ", "}<code>${need}</code>`)}`
  }`;
  return section("eviction", "Eviction", drawn(decision, { eviction, from, lists }));
}

/** Stats older than this are pointed out, so that nobody counts a forecast from the decision's time. */
const OLD_STATS_MS = 60_000;
function statsTime(
  { thresholds }: EvictionDecision,
  { decidedAtMs }: Pick<DecisionHead, "decidedAtMs">,
): Html | string {
  const atMs = latestOf(thresholds);
  return atMs === null || decidedAtMs - atMs <= OLD_STATS_MS ? "" : html` on stats of ${moment(atMs)}`;
}

const noPass = ({ eviction }: NodeView): string =>
  eviction.decisions === 0
    ? "No eviction pass was recorded, and there is no snapshot to decide one on"
    : "What the recorded eviction passes hold cannot be read by this version";

interface EvictionContext {
  readonly eviction: EvictionHistory;
  /** Describes which pass it is. */
  readonly from: Html;
  readonly lists: ListView;
}
function drawn(decision: EvictionDecision, { eviction, from, lists }: EvictionContext): Html {
  const { points, acts } = eviction;
  if (lists.asked !== null) return html`<p>${from}.</p>${rankings(decision, lists)}`;
  const of = (signal: EvictionSignal): SignalHistory => {
    const own = points.get(signal) ?? [];
    const since = own[0]?.[0] ?? Number.NEGATIVE_INFINITY;
    const spans = spansOf(acts.filter(({ signals }) => signals.includes(signal)));
    return { points: own, acts: spans.filter(({ atMs }) => atMs >= since) };
  };
  const signals = EVICTION_SIGNALS.filter(
    (signal) => points.has(signal) || decision.thresholds.some((threshold) => threshold.signal === signal),
  );
  return html`<p>${from}. <span class="soft">${FILE_SYSTEMS[decision.fileSystems] ?? ""}</span></p>
${decision.warnings.map((line) => html`<p class="note warn">${line}</p>`)}
${decision.reclaim === null ? "" : reclaimText(decision.reclaim)}
${conditions(decision)}${evicted(decision)}
${
  signals.length === 0
    ? notKnown("No threshold is configured and no signal was observed", ["kubeletConfiguration.evictionHard", "stats"])
    : html`${points.size === 0 ? "" : rangesNav(eviction, lists.node)}${plotsLegend(decision, acts)}${plotsOf(signals, decision, of)}${otherEvents(acts)}`
}
${rankings(decision, lists)}`;
}

function reclaimText({ threshold, event, nodeLevel, afterNodeLevel }: Reclaim): Html {
  const before =
    nodeLevel.length === 0
      ? ""
      : ` Before any pod is evicted: ${nodeLevel.join(", ")}; ${AFTER_NODE_LEVEL[afterNodeLevel]}.`;
  return html`<p class="note warn">For <code>${thresholdText(threshold)}</code>: ${event.reason}: ${event.message}.${before}</p>`;
}

function conditions({ conditions: list }: EvictionDecision): Html {
  if (list.length === 0) return html`<p>No pressure condition holds.</p>`;
  return html`<ul class="conditions">${list.map(
    ({ type, observed, lastObservedAtMs, untilMs }) =>
      html`<li><span class="tag warn">${type}</span> ${observed ? "observed now" : html`last observed at ${moment(lastObservedAtMs)}`}, true until ${moment(untilMs)} at least</li>`,
  )}</ul>`;
}

function evicted({ evicted: list, spared }: EvictionDecision): Html {
  const rows = list.map(
    ({ pod, cause, gracePeriodSeconds, message }) =>
      html`<tr><td><strong class="bad-text">${cutInside(podName(pod))}</strong></td><td>${cause}</td><td class="num">${gracePeriodSeconds} s</td><td>${message}</td></tr>`,
  );
  const table =
    rows.length === 0
      ? ""
      : scrolling(
          "Pods that are evicted",
          html`<table><thead><tr><th>Evicted</th><th>Cause</th><th class="num">Grace period</th><th>Message</th></tr></thead><tbody>${rows}</tbody></table>`,
        );
  return html`${table}${spared.length === 0 ? "" : html`<p>Spared, being critical: ${spared.map(podName).join(", ")}</p>`}`;
}
