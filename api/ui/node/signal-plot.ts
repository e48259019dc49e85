import { html } from "hono/html";
import type { EvictionDecision, EvictionSignal, Forecast, ThresholdState } from "../../model/eviction.ts";
import { signalText, thresholdText } from "../../text/tables/thresholds.ts";
import { durationText } from "../../text/time-text.ts";
import { jsonBlock, type Point, plot } from "../draw/plot.ts";
import type { Html } from "../page.ts";
import type { Act } from "./acts.ts";
import { actMarks, actsList } from "./acts-list.ts";
import { podName } from "./managed.ts";

const TONE: Readonly<Record<ThresholdState["state"], string>> = {
  above: "good",
  below: "bad",
  unreclaimed: "warn",
  unobserved: "warn",
  unwatched: "",
};
const isBytes = (signal: EvictionSignal): boolean => signal.endsWith(".available") && signal !== "pid.available";

/** What is drawn of one signal. */
export interface SignalHistory {
  /** Oldest first. */
  readonly points: readonly Point[];
  /** Oldest first, those of this signal. */
  readonly acts: readonly Act[];
}

/** One signal: what was available over time, its thresholds, what was done, how each stands, and when it is met if it goes on. */
export function signalPlot(signal: EvictionSignal, decision: EvictionDecision, { points, acts }: SignalHistory): Html {
  const thresholds = decision.thresholds.filter((threshold) => threshold.signal === signal);
  const drawn = points.length > 0 ? points : pointNow(thresholds);
  const limits = thresholds.flatMap(({ quantity, value, graceMs }) =>
    quantity === null ? [] : [{ value: quantity, words: `${graceWords(graceMs)} ${value}`, soft: graceMs > 0 }],
  );
  const amount = (value: number): string => (isBytes(signal) ? signalText(signal, value) : value.toLocaleString("en"));
  const last = drawn.at(-1)?.[1];
  const now = last === undefined ? "not observed" : amount(last);
  const told = limits.map(({ words }) => words).join(", ");
  const marks = actMarks(acts);
  const done = marks.map((mark) => `; ${mark.number}: ${mark.words}`).join("");
  const words = `${signal}: ${now}${told === "" ? ", no threshold" : `; thresholds ${told}`}${done}`;
  const forecast = decision.forecast.filter((one) => one.threshold.signal === signal);
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
${drawn.length > 1 ? jsonBlock(data) : ""}${actsList(acts)}<ul class="thresholds">${thresholds.map((threshold) => line(threshold, forecast))}</ul></figure>`;
}

/** `20 M`, `32 k`: a number of inodes or process ids where there is little room. */
const shortCount = (count: number): string => {
  if (count >= 1e6) return `${Math.round(count / 1e5) / 10} M`;
  return count >= 1e4 ? `${Math.round(count / 100) / 10} k` : `${count}`;
};

/** Without a history the pass itself is one. */
function pointNow(thresholds: readonly ThresholdState[]): readonly Point[] {
  const seen = thresholds.find(({ available }) => available !== null);
  return seen === undefined || seen.available === null ? [] : [[seen.statsAtMs ?? 0, seen.available]];
}

const graceWords = (graceMs: number): string => (graceMs === 0 ? "hard" : `soft ${durationText(graceMs)}`);

function line(threshold: ThresholdState, forecasts: readonly Forecast[]): Html {
  const { value, graceMs, state, derivedFrom, graceLeftMs } = threshold;
  const left =
    graceMs > 0 && graceLeftMs !== null && (state === "below" || state === "unreclaimed")
      ? `, ${durationText(graceLeftMs)} of its grace left`
      : "";
  const made = derivedFrom === undefined ? "" : `, made from ${derivedFrom}`;
  const own = forecasts.find(
    (one) => thresholdText(one.threshold) === thresholdText(threshold) && one.threshold.graceMs === graceMs,
  );
  return html`<li><span class="${graceMs === 0 ? "hard" : "soft-limit"}">&lt; ${value}</span> ${graceWords(graceMs)} <span class="tag ${TONE[state] ?? ""}">${state}</span>${left}${made}${own === undefined ? "" : html`<br><span class="small soft">${forecastText(own)}</span>`}</li>`;
}

/** When a threshold is met if it goes on like this, and how long the pods that would go put that off. */
export function forecastText(forecast: Forecast): string {
  const { threshold, slopePerSecond, observations, belowInMs, evictsInMs, victims } = forecast;
  if (slopePerSecond === null) return `no forecast: ${observations} of the three observations that it takes`;
  const perMinute = Math.round(slopePerSecond * 60);
  const change =
    perMinute === 0 ? "steady" : `${perMinute > 0 ? "+" : ""}${signalText(threshold.signal, perMinute)}/min`;
  if (belowInMs === null) return `${change}: not coming nearer`;
  const met = belowInMs === 0 ? "met now" : `met in ${durationText(belowInMs)}`;
  const evicts = evictsInMs === null || evictsInMs === belowInMs ? "" : `, evicts in ${durationText(evictsInMs)}`;
  const first = victims
    .slice(0, 2)
    .flatMap(({ pod, buysMs }) => (buysMs === null ? [] : [`${podName(pod)} buys ${durationText(buysMs)}`]));
  return `${change}: ${met}${evicts}${first.length === 0 ? "" : `; goes first: ${first.join(", then ")}`}`;
}
