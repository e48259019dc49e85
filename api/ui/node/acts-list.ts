import { html } from "hono/html";
import type { EvictionDecision } from "../../model/eviction.ts";
import type { PlotMark } from "../draw/plot-marks.ts";
import type { Html } from "../page.ts";
import { utcText } from "../time.ts";
import { ACT_KINDS, type Act, type ActKind, spansOf } from "./acts.ts";

const TONE: { readonly [K in ActKind]: string } = { evicted: "bad", reclaimed: "warn", preempted: "c3" };
const MEANS: { readonly [K in ActKind]: string } = {
  evicted: "a pod is evicted",
  reclaimed: "space is freed, no pod goes",
  preempted: "a pod makes room for a critical one",
};
/** Of one plot: more would hide its curve. */
const MOST = 9;

const hourOf = (ms: number): string => utcText(ms).slice(11, 19);
const timesText = ({ atMs, untilMs, times }: Act): string =>
  times === 1 ? `at ${hourOf(atMs)}` : `by ${times} passes from ${hourOf(atMs)} to ${hourOf(untilMs)}`;
const whatText = ({ kind, what, why }: Act): string => `${kind} ${what}${why === "" ? "" : ` for ${why}`}`;

/** The newest of them, as marks with the numbers that the list has. */
export const actMarks = (acts: readonly Act[]): readonly PlotMark[] =>
  acts.slice(-MOST).map((act, i) => ({
    atMs: act.atMs,
    number: i + 1,
    tone: TONE[act.kind],
    words: `${whatText(act)} ${timesText(act)}`,
  }));

/** What the numbers of a plot stand for, each with its decision. */
export function actsList(acts: readonly Act[]): Html | "" {
  if (acts.length === 0) return "";
  const older = acts.length - MOST;
  return html`<ol class="acts">${acts.slice(-MOST).map(item)}</ol>${older > 0 ? html`<p class="small soft">and ${older} before</p>` : ""}`;
}
const item = (act: Act): Html | Promise<Html> =>
  html`<li class="${TONE[act.kind]}"><a href="/decisions/${act.decisionId}">${whatText(act)}</a> <span class="soft">${timesText(act)} UTC</span></li>`;

/** What was done for what has no plot: CPUs, or a number of pods. */
export function otherActs(acts: readonly Act[]): Html | "" {
  const others = spansOf(acts.filter(({ signals }) => signals.length === 0));
  if (others.length === 0) return "";
  return html`<p class="small soft">Without a plot of its own:</p>${actsList(others)}`;
}

/** What the lines of the plots mean. */
export function plotsLegend({ thresholds }: EvictionDecision, acts: readonly Act[]): Html {
  const lines = [
    ["curve", "available", true],
    ["hard", "hard threshold", thresholds.some(({ graceMs }) => graceMs === 0)],
    ["soft-line", "soft threshold", thresholds.some(({ graceMs }) => graceMs > 0)],
  ] as const;
  const kinds = ACT_KINDS.filter((kind) => acts.some((act) => act.kind === kind));
  return html`<ul class="legend lines">${lines.filter(([, , isThere]) => isThere).map(([tone, words]) => html`<li class="${tone}">${words}</li>`)}${kinds.map((kind) => html`<li class="act ${TONE[kind]}">${kind}: ${MEANS[kind]}</li>`)}</ul>`;
}
