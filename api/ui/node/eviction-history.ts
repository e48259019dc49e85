import { type StoreFailure, unlessDamaged } from "../../../db/failure.ts";
import type { DecisionHead, DecisionRow, FleetRow, LatestRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { Lru, perObject } from "../../base/cache.ts";
import { ok, type Result } from "../../base/result.ts";
import type { AdmissionDecision } from "../../model/admission.ts";
import { EVICTION_SIGNALS, type EvictionDecision, type EvictionSignal } from "../../model/eviction.ts";
import type { Point } from "../draw/plot.ts";
import { PLOT_RANGES, type PlotRange } from "./lists.ts";
import { eventsOfAdmission, eventsOfPass, eventsOfRun, type NodeEvent } from "./node-events.ts";

type Points = ReadonlyMap<EvictionSignal, readonly Point[]>;
/** The contents of a recorded eviction decision; a pass also contains those before it. */
interface PassContents {
  readonly points: Points;
  readonly acts: readonly NodeEvent[];
  /** Null: the decision is no pass, or another version wrote it. */
  readonly pass: EvictionDecision | null;
}
const NOTHING: PassContents = { points: new Map(), acts: [], pass: null };

interface Body {
  readonly decision: unknown;
  readonly next: unknown;
}
function bodyOf(text: string): Body | null {
  try {
    return JSON.parse(text) as Body | null;
  } catch {
    return null;
  }
}

/** Reads an eviction pass; if another version wrote it, only its known parts. */
function contentsOfPass(row: DecisionRow | null): PassContents {
  const body = row === null ? null : bodyOf(row.body);
  if (row === null || body === null) return NOTHING;
  const pass = isEviction(body.decision) ? body.decision : null;
  return { points: pointsIn(body), acts: pass === null ? [] : eventsOrNone(() => eventsOfPass(pass, row)), pass };
}

/** The pods that an admission, or a separate preemption, ends. */
function preemptionActs(head: DecisionHead, row: DecisionRow | null): readonly NodeEvent[] {
  const decision = row === null ? undefined : (bodyOf(row.body)?.decision as Partial<AdmissionDecision> | undefined);
  const { pod, preempt } = decision ?? {};
  return pod === undefined || !Array.isArray(preempt)
    ? []
    : eventsOrNone(() => eventsOfAdmission({ pod, preempt }, head));
}
function eventsOrNone(read: () => NodeEvent[]): readonly NodeEvent[] {
  try {
    return read();
  } catch {
    return [];
  }
}

function pointsIn({ next }: Body): Points {
  const samples = (next as { samples?: unknown } | null)?.samples;
  const points = new Map<EvictionSignal, Point[]>();
  for (const sample of Array.isArray(samples) ? samples : []) {
    const { atMs, signal, available } = (sample ?? {}) as Record<string, unknown>;
    if (!Number.isFinite(atMs) || !Number.isFinite(available)) continue;
    const known = EVICTION_SIGNALS.find((name) => name === signal);
    if (known === undefined) continue;
    const own = points.get(known) ?? [];
    own.push([atMs as number, available as number]);
    points.set(known, own);
  }
  return points;
}

const LISTS = ["thresholds", "conditions", "evicted", "rankings", "forecast", "spared", "warnings"] as const;
const isEviction = (decision: unknown): decision is EvictionDecision =>
  typeof decision === "object" &&
  decision !== null &&
  "reclaim" in decision &&
  LISTS.every((name) => Array.isArray((decision as Record<string, unknown>)[name]));

/** Points a signal are drawn of, at most. */
const MAX_DECISIONS = 200;
/** The maximum number of bodies that a page reads: each contains earlier passes as well. */
const MAX_BODIES = 48;

/** The number of series of equal passes, and of admissions, whose bodies are read to find what they did. */
const MAX_ACTS = 12;

/** Points are looked for this far back. */
const SPAN_MS = 7 * 86_400_000;
/**
 * The time range in which to look for a kind's newest decisions: otherwise a rare kind would be searched for among
 * all other decisions.
 */
export const aroundLatest = ({ decidedAtMs }: LatestRow, spanMs: number) => ({
  sinceMs: decidedAtMs - spanMs,
  untilMs: decidedAtMs + 1,
});

export interface EvictionHistory {
  /** The newest recorded decision; null: there is none, or it cannot be read. */
  readonly newest: { readonly head: DecisionHead; readonly decision: EvictionDecision } | null;
  /** Oldest first. */
  readonly points: Points;
  /** The acts of those passes, and of admissions between them that ended pods; the newest of each. */
  readonly acts: readonly NodeEvent[];
  readonly decisions: number;
  /** The requested time range; null: the newest passes. */
  readonly range: PlotRange | null;
}
const NONE: EvictionHistory = { newest: null, points: new Map(), acts: [], decisions: 0, range: null };

type History = Pick<Store, "listDecisions" | "getDecision">;
type CachedContents = Omit<PassContents, "pass">;
const contentsCache = perObject((_store: History) => new Lru<string, CachedContents>(MAX_KEPT));
const MAX_KEPT = 2048;

/** Reads the available amount of each signal at the node's last passes, or within `range` of the newest, and the actions taken. */
export async function evictionHistory(
  store: History,
  node: string,
  latest: FleetRow["latest"] | undefined,
  range: PlotRange | null,
): Promise<Result<EvictionHistory, StoreFailure>> {
  const last = latest?.eviction;
  if (latest === undefined || last === undefined) return ok(NONE);
  const span = aroundLatest(last, range === null ? SPAN_MS : PLOT_RANGES[range]);
  const page = await store.listDecisions({ node, kind: "eviction", limit: MAX_DECISIONS, ...span });
  if (!page.ok) return page;
  const heads = page.value.items;
  const [first] = heads;
  if (first === undefined) return ok(NONE);
  const row = unlessDamaged(await store.getDecision(first.id));
  if (!row.ok) return row;
  // pruned meanwhile, damaged, or of another version
  const { pass, ...contents } = contentsOfPass(row.value);
  contentsCache(store).set(first.id, contents);
  const isWhole = range === null || page.value.nextPageToken === null;
  const all = isWhole ? await pointsOf(store, heads, contents) : await pointsWithin(store, node, span);
  if (!all.ok) return all;
  const acted = isWhole ? ok(heads) : await actedWithin(store, node, span);
  if (!acted.ok) return acted;
  const acts = await eventsOf(store, acted.value);
  if (!acts.ok) return acts;
  const preempted = await preemptionsOf(store, node, latest, isWhole ? (heads.at(-1)?.decidedAtMs ?? 0) : span.sinceMs);
  if (!preempted.ok) return preempted;
  const sorted = EVICTION_SIGNALS.flatMap((signal) => {
    const known = [...(all.value.get(signal) ?? [])].sort(([a], [b]) => a - b);
    // a pass also contains earlier ones, which may be before the requested range
    const sinceMs = range === null ? 0 : (known.at(-1)?.[0] ?? 0) - PLOT_RANGES[range];
    const own = known.filter(([atMs]) => atMs > sinceMs);
    return own.length === 0 ? [] : [[signal, isWhole ? own.slice(-MAX_DECISIONS) : thinned(own)] as const];
  });
  return ok({
    newest: pass === null ? null : { head: first, decision: pass },
    points: new Map(sorted),
    acts: [...acts.value, ...preempted.value],
    decisions: heads.length,
    range,
  });
}

type AllPoints = Map<EvictionSignal, Map<number, number>>;
/** A decision's `next` has the samples of up to 32 passes, so only as many decisions are read as are needed for all samples. */
async function pointsOf(
  store: History,
  heads: readonly DecisionHead[],
  newest: CachedContents,
): Promise<Result<AllPoints, StoreFailure>> {
  const all: AllPoints = new Map();
  let skip = Math.max(1, addTo(all, newest.points));
  for (let i = skip, read = 1; i < heads.length && read < MAX_BODIES; i += skip, read++) {
    const earlier = await cachedOrRead(store, heads[i] as DecisionHead);
    if (!earlier.ok) return earlier;
    skip = Math.max(1, addTo(all, earlier.value.points));
  }
  return ok(all);
}

interface TimeRange {
  readonly sinceMs: number;
  readonly untilMs: number;
}
/** Passes that are looked at in a long time, spread evenly over it. */
const STRETCHES = MAX_BODIES / 2;
async function pointsWithin(
  store: History,
  node: string,
  { sinceMs, untilMs }: TimeRange,
): Promise<Result<AllPoints, StoreFailure>> {
  const all: AllPoints = new Map();
  const step = (untilMs - sinceMs) / STRETCHES;
  for (let i = STRETCHES; i > 0; i--) {
    const stretch = { sinceMs: Math.floor(sinceMs + (i - 1) * step), untilMs: Math.floor(sinceMs + i * step) };
    const page = await store.listDecisions({ node, kind: "eviction", limit: 1, ...stretch });
    if (!page.ok) return page;
    const [head] = page.value.items;
    if (head === undefined) continue;
    const found = await cachedOrRead(store, head);
    if (!found.ok) return found;
    addTo(all, found.value.points);
  }
  return ok(all);
}

/** The newest of those passes that did something. */
async function actedWithin(
  store: History,
  node: string,
  within: TimeRange,
): Promise<Result<DecisionHead[], StoreFailure>> {
  const heads: DecisionHead[] = [];
  for (const verdict of ACTED) {
    const page = await store.listDecisions({ node, kind: "eviction", verdict, limit: MAX_DECISIONS, ...within });
    if (!page.ok) return page;
    heads.push(...page.value.items);
  }
  return ok(heads.sort((a, b) => b.decidedAtMs - a.decidedAtMs));
}

const thinned = (points: readonly Point[]): readonly Point[] => {
  const step = Math.ceil(points.length / MAX_DECISIONS);
  return points.filter((_, i) => (points.length - 1 - i) % step === 0);
};

/** Reads a recorded decision, cached among the last ones, since it never changes. */
async function cachedOrRead(store: History, head: DecisionHead): Promise<Result<CachedContents, StoreFailure>> {
  const known = contentsCache(store).get(head.id);
  if (known !== undefined) return ok(known);
  const row = unlessDamaged(await store.getDecision(head.id));
  if (!row.ok) return row;
  const { points, acts } =
    head.kind === "eviction" ? contentsOfPass(row.value) : { points: new Map(), acts: preemptionActs(head, row.value) };
  contentsCache(store).set(head.id, { points, acts });
  return ok({ points, acts });
}

const ACTED: ReadonlySet<string> = new Set(["evicts", "reclaims"]);
/**
 * The acts of the newest runs of passes that ended alike, for the same pod: what the first and the last pass of each run did.
 */
async function eventsOf(
  store: History,
  heads: readonly DecisionHead[],
): Promise<Result<readonly NodeEvent[], StoreFailure>> {
  const runs: DecisionHead[][] = [];
  for (const head of heads.filter(({ verdict }) => ACTED.has(verdict))) {
    const open = runs.at(-1);
    if (open !== undefined && open[0]?.verdict === head.verdict && open[0].pod?.uid === head.pod?.uid) open.push(head);
    else if (runs.length === MAX_ACTS) break;
    else runs.push([head]);
  }
  const acts: NodeEvent[] = [];
  for (const run of runs) {
    const last = await cachedOrRead(store, run[0] as DecisionHead);
    if (!last.ok) return last;
    const first = await cachedOrRead(store, run.at(-1) as DecisionHead);
    if (!first.ok) return first;
    acts.push(...eventsOfRun(first.value.acts, last.value.acts, run.length));
  }
  return ok(acts);
}
async function eventsIn(
  store: History,
  heads: readonly DecisionHead[],
): Promise<Result<readonly NodeEvent[], StoreFailure>> {
  const acts: NodeEvent[] = [];
  for (const head of heads) {
    const contents = await cachedOrRead(store, head);
    if (!contents.ok) return contents;
    acts.push(...contents.value.acts);
  }
  return ok(acts);
}

/** Finds, among the newest admissions since then, those that ended pods, which only their bodies show. */
async function preemptionsOf(
  store: History,
  node: string,
  latest: FleetRow["latest"],
  sinceMs: number,
): Promise<Result<readonly NodeEvent[], StoreFailure>> {
  const acts: NodeEvent[] = [];
  for (const kind of ["admission", "preemption"] as const) {
    const last = latest[kind];
    if (last === undefined || last.decidedAtMs < sinceMs) continue;
    const range = { sinceMs, untilMs: last.decidedAtMs + 1 };
    const page = await store.listDecisions({ node, kind, limit: MAX_ACTS, ...range });
    if (!page.ok) return page;
    const events = await eventsIn(store, page.value.items);
    if (!events.ok) return events;
    acts.push(...events.value);
  }
  return ok(acts);
}

/** Returns the number of passes that were new. */
function addTo(all: AllPoints, points: Points): number {
  let most = 0;
  for (const [signal, own] of points) {
    const known = all.get(signal) ?? new Map<number, number>();
    all.set(signal, known);
    const before = known.size;
    for (const [atMs, value] of own) known.set(atMs, value);
    most = Math.max(most, known.size - before);
  }
  return most;
}
