import {
  type Eviction,
  type EvictionDecision,
  type EvictionSignal,
  type FileSystems,
  type Forecast,
  NODE_RECLAIM,
  type RankedPod,
  type Ranking,
  type Reclaim,
  type ReclaimTakes,
  type ThresholdRef,
  type ThresholdState,
} from "../../model/eviction.ts";
import { namespacedName } from "../../model/forms.ts";
import { rankChangeSentences } from "../sentences/eviction.ts";
import { listed, many } from "../sentences/words.ts";
import { amountText, humanBytes, resourceOfSignal, writtenText } from "../size.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { bar, type Cell, type Column, type Glyph, legendText, type Row, table } from "../table.ts";
import { delayText, durationText, timeText } from "../time-text.ts";
import { countsText } from "./gc-targets.ts";
import { isSamePod, listText, outcome, podName, type Shown, sections } from "./shown.ts";

const BAR_WIDTH = 24;
const STATE_COLOR: Readonly<Record<ThresholdState["state"], Color>> = {
  above: "green",
  below: "red",
  unreclaimed: "yellow",
  unobserved: "yellow",
  unwatched: "dim",
};
const GLYPHS = [
  ["yellow", "▒", "available, below the threshold"],
  ["green", "█", "available above it"],
  ["red", "×", "missing up to it"],
  ["dim", "·", "in use"],
] as const satisfies readonly Glyph[];

/** An amount of a signal for the eye: bytes, or a number of inodes or process ids. */
export const signalText = (signal: EvictionSignal, units: number, isExact = false): string =>
  amountText(resourceOfSignal(signal), units, isExact);

const valueText = ({ signal, value }: ThresholdRef): string => writtenText(resourceOfSignal(signal), value);
/** As the kubelet's own log has it: `memory.available<500Mi`. */
export const thresholdText = (threshold: ThresholdRef): string => `${threshold.signal}<${valueText(threshold)}`;

/** Every threshold in force: the available amount, the threshold, and the distance between them. */
function thresholdsTable({ decision, columns, paint, notesAt, isExact = false }: Shown<EvictionDecision>): string {
  // hard and soft ones of a signal below each other
  const thresholds = [...Map.groupBy(decision.thresholds, ({ signal }) => signal).values()].flat();
  if (thresholds.length === 0) return paint("dim", "no threshold is configured\n");
  const right = (title: string, giveUp?: number): Column =>
    giveUp === undefined ? { title, align: "right" } : { title, align: "right", giveUp };
  const last = new Map(thresholds.map(({ signal }, i) => [signal, i]));
  const drawn = table(
    [
      { title: "SIGNAL", shrinkTo: 18 },
      right("AVAILABLE", 5),
      right("THRESHOLD", 4),
      { title: "" },
      right("DISTANCE", 6),
      { title: "STATE" },
      right("GRACE LEFT", 3),
      { title: "CAPACITY", align: "right", giveUp: 2, giveUpTo: "nothing" },
      { title: "", giveUp: 1 },
    ],
    thresholds.map((t, i) => ({
      cells: cellsOf(t, isExact, paint),
      notes: last.get(t.signal) === i ? notesAt(t.signal).map((note) => `  ${note}`) : [],
    })),
    columns,
    paint,
  );
  const unwatched = "unwatched: not checked in a kubelet's first pass, which this is without --facts\n";
  const first = thresholds.some(({ state }) => state === "unwatched") ? paint("dim", unwatched) : "";
  return `${drawn}${legendText(GLYPHS, drawn, paint)}${first}`;
}

function cellsOf(t: ThresholdState, isExact: boolean, paint: Paint): readonly (string | Cell)[] {
  const { signal, graceMs, quantity, available, capacity, state, graceLeftMs } = t;
  const amount = (units: number | null): string => (units === null ? "" : signalText(signal, units, isExact));
  const distance = available === null || quantity === null ? null : available - quantity;
  const isOpen = state === "below" || state === "unreclaimed";
  const stale = isOpen && !t.newerStats ? ", old stats" : "";
  return [
    signal,
    amount(available),
    // a share is no amount, and stays what was written
    printable(isExact && quantity !== null && !t.value.endsWith("%") ? amount(quantity) : valueText(t)),
    graceMs === 0 ? "hard" : `soft ${durationText(graceMs)}`,
    amount(distance),
    { text: `${state}${stale}`, color: STATE_COLOR[state] },
    isOpen && graceLeftMs !== null ? durationText(graceLeftMs) : "",
    amount(capacity),
    barOf(t, paint),
  ];
}

function barOf({ quantity, available, capacity }: ThresholdState, paint: Paint): string {
  if (quantity === null || available === null || capacity === null) return "";
  const below = Math.max(0, Math.min(available, quantity));
  const missing = Math.max(0, quantity - Math.max(0, available));
  const above = Math.max(0, available - quantity);
  const sizes = [below, above, missing, capacity - below - above - missing];
  const parts = GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, BAR_WIDTH);
}

/** Pods shown of the ranking that is acted on, and (`MAX_OTHERS`) of the others; the JSON has more. */
const MAX_DRIVING = 10;
const MAX_OTHERS = 5;

/**
 * Shows which pods would go first for what is short, or for memory where nothing is, and what would change that. The other rankings
 * are idle: a line names them, unless everything is asked for.
 */
function rankingTables(shown: Shown<EvictionDecision>): readonly string[] {
  const { drives, known, inOrder, acted } = rankingsOf(shown.decision);
  const drawn = (some: readonly Ranking[]): readonly string[] =>
    some.map((one) => rankingTable(one, drives(one) ? MAX_DRIVING : MAX_OTHERS, shown));
  if (shown.rankings === "all") return known.map((one) => rankingTable(one, MAX_DRIVING, shown));
  if (shown.rankings === "acted-on") return drawn(inOrder.slice(0, acted));
  if (shown.rankings === "idle") return drawn(inOrder.slice(acted));
  if (shown.explain === "full") return drawn(inOrder);
  const idle = inOrder
    .slice(acted)
    .map(({ resource, pods: [first] }) => `${resource} (${first && podName(first.pod)} would be evicted first)`);
  if (idle.length === 0) return drawn(inOrder);
  const line = `not short, and not ranked here: ${idle.join(", ")}; --explain full ranks all\n`;
  return [...drawn(inOrder.slice(0, acted)), shown.paint("dim", line)];
}

/**
 * The rankings; those for resources that are short come first. `acted`: their number, at least 1: if nothing is
 * short, the ranking for memory counts.
 */
function rankingsOf({ rankings, reclaim, thresholds }: EvictionDecision) {
  const isMet = ({ state }: ThresholdState): boolean => state === "below" || state === "unreclaimed";
  const short = reclaim === null ? thresholds.filter(isMet) : [reclaim.threshold];
  const drives = ({ signals }: Ranking): boolean => short.some(({ signal }) => signals.includes(signal));
  const known = rankings.filter(({ pods }) => pods.length > 0);
  const driving = known.filter(drives);
  const inOrder = [...driving, ...known.filter((ranking) => !drives(ranking))];
  return { drives, known, inOrder, acted: Math.max(1, driving.length) };
}

/** The resources whose rankings are idle. */
export function idleRankings(decision: EvictionDecision): readonly string[] {
  const { inOrder, acted } = rankingsOf(decision);
  return inOrder.slice(acted).map(({ resource }) => resource);
}

/** The first pods of a ranking and the requested pod, with the changes that would give them another place. */
export function rankingTable(
  ranking: Ranking,
  most: number,
  { asked, columns, paint, isExact = false }: Pick<Shown<unknown>, "asked" | "columns" | "paint" | "isExact">,
): string {
  const { resource, signals, pods, total } = ranking;
  const first = pods.slice(0, most);
  const own = asked === undefined ? undefined : pods.slice(most).find(({ pod }) => isSamePod(pod, asked));
  const rest = total - first.length - (own === undefined ? 0 : 1);
  const rows = [...first, ...(own === undefined ? [] : [own])].map((one) => rowOf(one, ranking, isExact));
  const drawn = table(
    [
      { title: "", align: "right" },
      { title: `EVICTION ORDER FOR ${resource.toUpperCase()}`, shrinkTo: 12 },
      { title: "PRIORITY", align: "right", giveUp: 2 },
      { title: "USAGE", align: "right", giveUp: 3 },
      { title: "REQUEST", align: "right", giveUp: 1 },
      { title: "ABOVE REQUEST", align: "right", giveUp: 5 },
      { title: "", giveUp: 4, giveUpTo: "below" },
    ],
    rows,
    columns,
    paint,
  );
  const sentences = rankChangeSentences(ranking, isExact).map((text) => `- ${printable(text)}\n`);
  const more = rest > 0 ? `${rest} more; ` : "";
  return `${drawn}${paint("dim", `${more}by ${signals.join(", ")}`)}\n${sentences.join("")}`;
}

function rowOf(
  { place, pod, priority, usage, request, aboveRequest, critical, tie }: RankedPod,
  of: Ranking,
  isExact: boolean,
): Row {
  const amount = (units: number): string => amountText(of.resource, units, isExact);
  const marks = [
    ...(critical ? ["critical, stays"] : []),
    ...(usage === null ? ["no stats"] : []),
    ...(tie ? ["tie"] : []),
  ];
  return {
    cells: [
      `${place}`,
      podName(pod),
      `${priority}`,
      usage === null ? "" : amount(usage),
      of.resource === "pids" ? "" : amount(request),
      aboveRequest === null ? "" : amount(aboveRequest),
      { text: marks.join(", "), color: critical ? "dim" : "yellow" },
    ],
  };
}

const MAX_VICTIMS = 3;

/** When each threshold will be met at the present rate, and by how long the eviction of each next pod would delay it. */
function forecastTable({ decision, columns, paint }: Shown<EvictionDecision>): string {
  const known = decision.forecast.filter(({ slopePerSecond }) => slopePerSecond !== null);
  if (known.length === 0) {
    const why =
      "no forecast: it needs at least three observations; give the `next` of each answer with --facts to the next";
    return decision.forecast.length === 0 ? "" : paint("dim", `${why}\n`);
  }
  const falling = known.filter(({ belowInMs }) => belowInMs !== null);
  if (falling.length === 0) return paint("dim", "no forecast: nothing that has a threshold is falling\n");
  const others = known.length - falling.length;
  const rest = others === 0 ? "" : paint("dim", `${many(others, "other threshold")} not coming nearer\n`);
  const drawn = table(
    [
      { title: "FORECAST", shrinkTo: 22 },
      { title: "CHANGES BY", align: "right", giveUp: 3 },
      { title: "MET IN", align: "right" },
      { title: "EVICTS IN", align: "right" },
      { title: "EVICTED FIRST, GAINS", giveUp: 1 },
      { title: "FROM", align: "right", giveUp: 2 },
    ],
    falling.map((forecast) => ({
      cells: [
        printable(thresholdText(forecast.threshold)),
        changeText(forecast),
        whenCell(forecast.belowInMs),
        whenCell(forecast.evictsInMs),
        victimsText(forecast),
        `${forecast.observations} obs.`,
      ],
    })),
    columns,
    paint,
  );
  return `${drawn}${rest}`;
}

function changeText({ threshold: { signal }, slopePerSecond }: Forecast): string {
  const perMinute = Math.round((slopePerSecond ?? 0) * 60);
  return perMinute === 0 ? "nothing" : `${perMinute > 0 ? "+" : ""}${signalText(signal, perMinute)}/min`;
}

const HOUR = 3_600_000;
function whenCell(ms: number | null): Cell {
  if (ms === null) return { text: "not falling", color: "dim" };
  if (ms < 1000) return { text: "now", color: "red" };
  return ms < HOUR ? { text: durationText(ms), color: "yellow" } : { text: durationText(ms) };
}

const victimsText = ({ victims }: Forecast): string =>
  victims
    .slice(0, MAX_VICTIMS)
    .flatMap(({ pod, buysMs }) => (buysMs === null ? [] : [`${podName(pod)} ${delayText(buysMs)}`]))
    .join(", ");

/**
 * Shows one pass of the eviction manager: the distance to each threshold, the evicted pods with the reasons, and
 * which pods would be next, and when.
 */
export function evictionTable(shown: Shown<EvictionDecision>): string {
  if (shown.rankings === "idle") return sections(...rankingTables(shown));
  return sections(
    headOf(shown),
    evictedTable(shown),
    thresholdsTable(shown),
    conditionsTable(shown),
    ...rankingTables(shown),
    forecastTable(shown),
  );
}

export const FILE_SYSTEMS: Readonly<Record<FileSystems, string>> = {
  one: "nodefs, imagefs and containerfs are one file system",
  dedicated: "images and containers are on a file system of their own",
  split: "images are on a file system of their own, containers on nodefs",
};

function headOf({ decision, verdict, paint, notesAt }: Shown<EvictionDecision>): string {
  const { reclaim, spared, warnings, fileSystems } = decision;
  const lines = [
    ...(reclaim === null ? [] : reclaimLines(reclaim)),
    ...(isTied(decision)
      ? ["tied with others in the ranking: a kubelet may evict any of them, as their order is random"]
      : []),
    ...(spared.length === 0 ? [] : [`not evicted because critical: ${listText(spared.map(namespacedName))}`]),
    ...warnings,
  ];
  return [
    outcome(paint, ...verdictOf({ decision, verdict })),
    ...lines.map((line) => `${printable(line)}\n`),
    `${paint("dim", FILE_SYSTEMS[fileSystems])}\n`,
    ...["facts.eviction", "containerfs", ...NODE_RECLAIM].flatMap(notesAt).map((note) => `  ${note}\n`),
  ].join("");
}

/** Whether an evicted pod ranks equal to another one. */
function isTied({ evicted, rankings, reclaim }: EvictionDecision): boolean {
  const driving = rankings.find(({ signals }) => reclaim !== null && signals.includes(reclaim.threshold.signal));
  return evicted.some((one) => driving?.pods.some(({ pod, tie }) => tie && pod.uid === one.pod.uid) === true);
}

function verdictOf({
  decision,
  verdict,
}: Pick<Shown<EvictionDecision>, "decision" | "verdict">): [Color, string, string] {
  const { evicted, conditions, reclaim } = decision;
  const types = conditions.map(({ type }) => type);
  const under = types.length === 0 ? "" : ` under ${listed(types)}`;
  if (verdict === "evicts") {
    const [first] = evicted;
    const who = evicted.length === 1 && first !== undefined ? podName(first.pod) : many(evicted.length, "pod");
    const unsure = reclaim?.afterNodeLevel === "unknown" ? ", if the node-level reclaim is not enough" : "";
    return ["red", "EVICTS", `${who}${under}${unsure}`];
  }
  if (verdict === "reclaims") return ["yellow", "RECLAIMS", `${reclaim?.resource ?? ""}${under}; no pod is evicted`];
  if (verdict === "under-pressure")
    return ["yellow", "UNDER PRESSURE", `${listed(types)}: no pod is evicted in this pass`];
  return ["green", "CALM", "no condition holds, no pod is evicted"];
}

export const AFTER_NODE_LEVEL: Readonly<Record<Reclaim["afterNodeLevel"], string>> = {
  enough: "enough: no pod is evicted",
  "not-enough": "not enough",
  unknown: "whether that is enough is not known: a pod is evicted only if it is not",
  "nothing-run": "",
};
function reclaimLines(reclaim: Reclaim): readonly string[] {
  const { threshold, orElse, event, nodeLevel, afterNodeLevel, mustReach, takes } = reclaim;
  const thrownAway = nodeReclaimText(takes);
  const others = orElse.length === 0 ? "" : ` (a kubelet may choose ${listText(orElse.map(thresholdText), ", ")})`;
  const reach = mustReach.map(({ signal, available }) => `${signal} ${signalText(signal, available)}`);
  return [
    `for ${thresholdText(threshold)}${others}: ${event.reason}: ${event.message}`,
    ...(nodeLevel.length === 0
      ? []
      : [`before any pod is evicted: ${nodeLevel.join(", ")}; ${AFTER_NODE_LEVEL[afterNodeLevel]}`]),
    ...(thrownAway === "" ? [] : [thrownAway]),
    ...(reach.length === 0 ? [] : [`must be reached: ${reach.join(", ")}`]),
  ];
}

function evictedTable({ decision, columns, paint, notesAt }: Shown<EvictionDecision>): string {
  if (decision.evicted.length === 0) return "";
  const notes = ({ pod, message }: Eviction): readonly string[] => [
    printable(message),
    ...notesAt(namespacedName(pod)),
  ];
  return table(
    [
      { title: "EVICTED", shrinkTo: 12 },
      { title: "CAUSE" },
      { title: "GRACE PERIOD", align: "right" },
      { title: "CONDITION", giveUp: 1, giveUpTo: "nothing" },
    ],
    decision.evicted.map((eviction) => ({
      cells: [
        { text: podName(eviction.pod), color: "red" },
        eviction.cause,
        `${eviction.gracePeriodSeconds} s`,
        eviction.condition?.type ?? "",
      ],
      notes: notes(eviction).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}

function conditionsTable({ decision, columns, paint, notesAt }: Shown<EvictionDecision>): string {
  if (decision.conditions.length === 0) return "";
  return table(
    [{ title: "CONDITION" }, { title: "OBSERVED" }, { title: "TRUE UNTIL, AT LEAST", giveUp: 1 }],
    decision.conditions.map(({ type, observed, lastObservedAtMs, untilMs }) => ({
      cells: [
        { text: type, color: "yellow" },
        observed ? "now" : `last at ${timeText(lastObservedAtMs)}`,
        timeText(untilMs),
      ],
      notes: notesAt(type).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}

/** The containers and images that the node-level functions would delete, in a line; empty where they are not known. */
function nodeReclaimText(takes: ReclaimTakes | null): string {
  if (takes === null || (takes.containers === null && takes.images === null)) return "";
  const { containers, images } = takes;
  const parts = [
    ...(containers === null || containers.remove.length === 0 ? [] : [countsText(containers.remove)]),
    ...(images === null || images.remove.length === 0
      ? []
      : [`${many(images.remove.length, "image")} (${humanBytes(images.freedBytes)})`]),
  ];
  const young = images?.keep.filter(({ why }) => why === "too-young").length ?? 0;
  const rest = young === 0 ? "" : `; too young to be removed: ${many(young, "image")}`;
  return `node-level: ${parts.length === 0 ? "nothing" : parts.join(", then ")} would be removed${rest}`;
}
