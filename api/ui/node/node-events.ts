import type { AdmissionDecision } from "../../model/admission.ts";
import type { EvictionDecision, EvictionSignal } from "../../model/eviction.ts";
import type { PodRef } from "../../model/forms.ts";
import { thresholdText } from "../../text/tables/eviction.ts";
import type { PlotMark } from "../draw/plot.ts";
import { cutInside, html, utcText } from "../html.ts";
import type { Html } from "../page.ts";

const ACT_KINDS = ["evicted", "reclaimed", "preempted"] as const;
type ActKind = (typeof ACT_KINDS)[number];

/** A decision's act against a shortage, as a plot marks it. */
export interface NodeEvent {
  readonly kind: ActKind;
  readonly decisionId: string;
  /** The time of the stats that it was decided on; without one, when it was decided. */
  readonly atMs: number;
  /** The time of the last consecutive pass with the same action, and the number of such passes. */
  readonly untilMs: number;
  readonly times: number;
  /** The evicted pods, or the reclaim functions that ran. */
  readonly what: string;
  /** The threshold, the limit or the pod that it was done for. */
  readonly why: string;
  /** The signals in whose plots the event is marked. */
  readonly signals: readonly EvictionSignal[];
}
interface Head {
  readonly id: string;
  readonly decidedAtMs: number;
}

const nameOf = ({ namespace, name, uid }: PodRef): string => (name === "" ? uid : `${namespace}/${name}`);
const CAUSES = {
  emptyDir: "a limit of an emptyDir",
  "pod-ephemeral-storage": "the pod’s limit of ephemeral-storage",
  "container-ephemeral-storage": "a container’s limit of ephemeral-storage",
} as const;

/** The actions of an eviction pass: the evicted pods, or the node-level reclaiming if that was enough. */
export function eventsOfPass(
  { reclaim, evicted, thresholds }: EvictionDecision,
  { id, decidedAtMs }: Head,
): NodeEvent[] {
  const of = reclaim?.threshold;
  const own = thresholds.find(({ signal, value }) => signal === of?.signal && value === of.value);
  const atMs = own?.statsAtMs ?? latestOf(thresholds) ?? decidedAtMs;
  const at = { decisionId: id, atMs, untilMs: atMs, times: 1 };
  const why = of === undefined ? "" : thresholdText(of);
  const signals = of === undefined ? [] : [of.signal];
  const gone = evicted.map(
    ({ pod, cause }): NodeEvent =>
      cause === "threshold"
        ? { kind: "evicted", ...at, what: nameOf(pod), why, signals }
        : { kind: "evicted", ...at, what: nameOf(pod), why: CAUSES[cause], signals: ["nodefs.available"] },
  );
  if (gone.length > 0 || reclaim === null || reclaim.nodeLevel.length === 0) return gone;
  return [{ kind: "reclaimed", ...at, what: reclaim.nodeLevel.join(", "), why, signals }];
}
/** The time of the newest stats; null: they have none. */
export function latestOf(thresholds: EvictionDecision["thresholds"]): number | null {
  const times = thresholds.flatMap(({ statsAtMs }) => (statsAtMs === null ? [] : [statsAtMs]));
  return times.length === 0 ? null : Math.max(...times);
}

const FREED: Readonly<Record<string, readonly EvictionSignal[]>> = {
  memory: ["allocatableMemory.available", "memory.available"],
  "ephemeral-storage": ["nodefs.available"],
};
/** The pods that an admission ends, as one event, marked at the signals that they relieve. */
export function eventsOfAdmission(
  { pod, preempt }: Pick<AdmissionDecision, "pod" | "preempt">,
  { id, decidedAtMs }: Head,
): NodeEvent[] {
  if (preempt.length === 0) return [];
  const others = preempt.length - MAX_NAMES;
  const names = preempt.slice(0, MAX_NAMES).map(nameOf).join(", ");
  const freed = preempt.flatMap(({ frees }) => frees.flatMap(({ resource }) => FREED[resource] ?? []));
  return [
    {
      kind: "preempted",
      decisionId: id,
      atMs: decidedAtMs,
      untilMs: decidedAtMs,
      times: 1,
      what: others > 0 ? `${names} and ${others} more` : names,
      why: nameOf(pod),
      signals: [...new Set(freed)],
    },
  ];
}
const MAX_NAMES = 3;

/** Acts that consecutive passes repeated, merged into one. Oldest first. */
export function spansOf(acts: readonly NodeEvent[]): readonly NodeEvent[] {
  const spans: NodeEvent[] = [];
  for (const act of acts.toSorted((a, b) => a.atMs - b.atMs)) {
    const last = spans.findLastIndex(({ kind, why }) => kind === act.kind && why === act.why);
    const open = spans[last];
    if (open !== undefined && open.what === act.what)
      spans[last] = { ...open, untilMs: act.untilMs, times: open.times + act.times };
    else spans.push(act);
  }
  return spans;
}

/** The events of a run of passes, of which the first and the last are read. */
export const eventsOfRun = (
  first: readonly NodeEvent[],
  last: readonly NodeEvent[],
  passes: number,
): readonly NodeEvent[] =>
  first.map((act) => {
    const end = last.find(({ kind, what }) => kind === act.kind && what === act.what) ?? act;
    const why = end.why === act.why ? act.why : `${act.why}, then ${end.why}`;
    return { ...act, why, untilMs: Math.max(act.atMs, end.atMs), times: passes };
  });

const TONE: { readonly [K in ActKind]: string } = { evicted: "bad", reclaimed: "warn", preempted: "c3" };
const MEANS: { readonly [K in ActKind]: string } = {
  evicted: "a pod is evicted",
  reclaimed: "space is freed, no pod is evicted",
  preempted: "a pod is preempted for a critical one",
};
/** Marks on one plot; more would hide its curve. */
const MAX_MARKS = 9;

const hourOf = (ms: number): string => utcText(ms).slice(11, 19);
const timesText = ({ atMs, untilMs, times }: NodeEvent): string =>
  times === 1 ? `at ${hourOf(atMs)}` : `by ${times} passes from ${hourOf(atMs)} to ${hourOf(untilMs)}`;
const forText = ({ why }: NodeEvent): string => (why === "" ? "" : ` for ${why}`);
const whatText = (act: NodeEvent): string => `${act.kind} ${act.what}${forText(act)}`;

/** The newest of them, as marks with the numbers that the list has. */
export const eventMarks = (acts: readonly NodeEvent[]): readonly PlotMark[] =>
  acts.slice(-MAX_MARKS).map((act, i) => ({
    atMs: act.atMs,
    number: i + 1,
    tone: TONE[act.kind],
    words: `${whatText(act)} ${timesText(act)}`,
  }));

/** The number of events that are listed open; earlier ones are folded. */
const MAX_SEEN = 3;
/** The events behind the numbers of a plot, each with its decision; the newest are last, earlier ones folded below. */
export function eventsList(acts: readonly NodeEvent[], id: string): Html | "" {
  if (acts.length === 0) return "";
  const marked = acts.slice(-MAX_MARKS);
  const folded = Math.max(0, marked.length - MAX_SEEN);
  const before = acts.length - MAX_SEEN;
  const unmarked = acts.length - marked.length;
  const rest = html`<details id="acts-${id}"><summary class="small">${before} before</summary><ol class="acts">${marked.slice(0, folded).map(item)}</ol>${unmarked > 0 ? html`<p class="small soft">and ${unmarked} before</p>` : ""}</details>`;
  return html`<ol class="acts" start="${folded + 1}">${marked.slice(folded).map(item)}</ol>${folded === 0 ? "" : rest}`;
}
const item = (act: NodeEvent): Html | Promise<Html> =>
  html`<li class="${TONE[act.kind]}"><a href="/decisions/${act.decisionId}" title="${whatText(act)}">${act.kind} ${cutInside(act.what)}${forText(act)}</a> <span class="soft">${timesText(act)}</span></li>`;

/** The acts for resources that have no plot: CPUs, or a number of pods. */
export function otherEvents(acts: readonly NodeEvent[]): Html | "" {
  const others = spansOf(acts.filter(({ signals }) => signals.length === 0));
  if (others.length === 0) return "";
  return html`<p class="small soft">Without a plot of its own:</p>${eventsList(others, "others")}`;
}

/** Explains the lines of the plots. */
export function plotsLegend({ thresholds }: EvictionDecision, acts: readonly NodeEvent[]): Html {
  const lines = [
    ["curve", "available", true],
    ["hard", "hard threshold", thresholds.some(({ graceMs }) => graceMs === 0)],
    ["soft-line", "soft threshold", thresholds.some(({ graceMs }) => graceMs > 0)],
  ] as const;
  const kinds = ACT_KINDS.filter((kind) => acts.some((act) => act.kind === kind));
  return html`<ul class="legend lines">${lines.filter(([, , isThere]) => isThere).map(([tone, words]) => html`<li class="${tone}">${words}</li>`)}${kinds.map((kind) => html`<li class="act ${TONE[kind]}">${kind}: ${MEANS[kind]}</li>`)}</ul>`;
}
