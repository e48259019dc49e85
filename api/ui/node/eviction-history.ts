import { type StoreFailure, unlessDamaged } from "../../../db/failure.ts";
import type { FleetRow, LatestRow } from "../../../db/fleet-row.ts";
import type { DecisionHead, Store } from "../../../db/store.ts";
import { EVICTION_SIGNALS, type EvictionDecision, type EvictionSignal } from "../../model/eviction.ts";
import { ok, type Result } from "../../model/result.ts";
import { type Act, actsOfRun } from "./acts.ts";
import { type Lru, lru } from "./lru.ts";
import { type Points, type Told, toldByAdmission, toldByPass } from "./told-passes.ts";

/** Points a signal are drawn of, at most. */
const MOST_DECISIONS = 200;
/** Bodies a page reads, at most: each tells of the passes before it as well. */
const MOST_BODIES = 48;

/** Runs of passes that did the same, and admissions, that are read for what they did. */
const MOST_ACTS = 12;

/** So far back points are looked for. */
const SPAN_MS = 7 * 86_400_000;
/**
 * Where to look for a kind's newest decisions: a kind that is rare among a million others would else be searched for
 * through all of them.
 */
export const aroundLatest = ({ decidedAtMs }: LatestRow, spanMs: number) => ({
  sinceMs: decidedAtMs - spanMs,
  untilMs: decidedAtMs + 1,
});

export interface EvictionHistory {
  /** The newest recorded decision; null: there is none, or what it says cannot be read. */
  readonly newest: { readonly head: DecisionHead; readonly decision: EvictionDecision } | null;
  /** Oldest first. */
  readonly points: Points;
  /** What those passes did, and what admissions between them ended; the newest of each. */
  readonly acts: readonly Act[];
  readonly decisions: number;
}
const NONE: EvictionHistory = { newest: null, points: new Map(), acts: [], decisions: 0 };

type History = Pick<Store, "listDecisions" | "getDecision">;
type Kept = Omit<Told, "pass">;
const keptOf = new WeakMap<object, Lru<Kept>>();

/**
 * What was available of each signal at the node's last passes, and what was done about it. A decision's `next` holds the
 * samples of up to 32 passes, so only those decisions are read that tell of earlier ones, or that did something.
 */
export async function evictionHistory(
  store: History,
  node: string,
  latest: FleetRow["latest"] | undefined,
): Promise<Result<EvictionHistory, StoreFailure>> {
  if (latest?.eviction === undefined) return ok(NONE);
  const range = aroundLatest(latest.eviction, SPAN_MS);
  const page = await store.listDecisions({ node, kind: "eviction", limit: MOST_DECISIONS, ...range });
  if (!page.ok) return page;
  const heads = page.value.items;
  const [first] = heads;
  if (first === undefined) return ok(NONE);
  const row = unlessDamaged(await store.getDecision(first.id));
  if (!row.ok) return row;
  // pruned meanwhile, damaged, or of another version
  const { pass, ...told } = toldByPass(row.value);
  const all = new Map<EvictionSignal, Map<number, number>>();
  let skip = Math.max(1, addTo(all, told.points));
  for (let i = skip, read = 1; i < heads.length && read < MOST_BODIES; i += skip, read++) {
    const earlier = await keptOrRead(store, heads[i] as DecisionHead);
    if (!earlier.ok) return earlier;
    skip = Math.max(1, addTo(all, earlier.value.points));
  }
  remember(store, first, told);
  const acts = await actsOf(store, heads);
  if (!acts.ok) return acts;
  const preempted = await preemptionsOf(store, node, latest, heads.at(-1)?.decidedAtMs ?? 0);
  if (!preempted.ok) return preempted;
  const sorted = EVICTION_SIGNALS.flatMap((signal) => {
    const own = [...(all.get(signal) ?? [])].sort(([a], [b]) => a - b).slice(-MOST_DECISIONS);
    return own.length === 0 ? [] : [[signal, own] as const];
  });
  return ok({
    newest: pass === null ? null : { head: first, decision: pass },
    points: new Map(sorted),
    acts: [...acts.value, ...preempted.value],
    decisions: heads.length,
  });
}

/** What is recorded never changes, so it is read once as long as it is among the last. */
async function keptOrRead(store: History, head: DecisionHead): Promise<Result<Kept, StoreFailure>> {
  const known = keptOf.get(store)?.get(head.id);
  if (known !== undefined) return ok(known);
  const row = unlessDamaged(await store.getDecision(head.id));
  if (!row.ok) return row;
  const { points, acts } =
    head.kind === "eviction" ? toldByPass(row.value) : { points: new Map(), acts: toldByAdmission(head, row.value) };
  remember(store, head, { points, acts });
  return ok({ points, acts });
}
function remember(store: History, { id }: DecisionHead, told: Kept): void {
  const kept = keptOf.get(store) ?? lru<Kept>(2048);
  keptOf.set(store, kept);
  kept.set(id, told);
}

const ACTED: ReadonlySet<string> = new Set(["evicts", "reclaims"]);
/** Of each run of passes that ended alike, for the same pod, what its first and its last did; the newest runs. */
async function actsOf(store: History, heads: readonly DecisionHead[]): Promise<Result<readonly Act[], StoreFailure>> {
  const runs: DecisionHead[][] = [];
  for (const head of heads.filter(({ verdict }) => ACTED.has(verdict))) {
    const open = runs.at(-1);
    if (open !== undefined && open[0]?.verdict === head.verdict && open[0].pod?.uid === head.pod?.uid) open.push(head);
    else if (runs.length === MOST_ACTS) break;
    else runs.push([head]);
  }
  const acts: Act[] = [];
  for (const run of runs) {
    const last = await keptOrRead(store, run[0] as DecisionHead);
    if (!last.ok) return last;
    const first = await keptOrRead(store, run.at(-1) as DecisionHead);
    if (!first.ok) return first;
    acts.push(...actsOfRun(first.value.acts, last.value.acts, run.length));
  }
  return ok(acts);
}
async function actsIn(store: History, heads: readonly DecisionHead[]): Promise<Result<readonly Act[], StoreFailure>> {
  const acts: Act[] = [];
  for (const head of heads) {
    const told = await keptOrRead(store, head);
    if (!told.ok) return told;
    acts.push(...told.value.acts);
  }
  return ok(acts);
}

/** Of the newest admissions since then: those that ended pods, which only their bodies tell. */
async function preemptionsOf(
  store: History,
  node: string,
  latest: FleetRow["latest"],
  sinceMs: number,
): Promise<Result<readonly Act[], StoreFailure>> {
  const acts: Act[] = [];
  for (const kind of ["admission", "preemption"] as const) {
    const last = latest[kind];
    if (last === undefined || last.decidedAtMs < sinceMs) continue;
    const range = { sinceMs, untilMs: last.decidedAtMs + 1 };
    const page = await store.listDecisions({ node, kind, limit: MOST_ACTS, ...range });
    if (!page.ok) return page;
    const told = await actsIn(store, page.value.items);
    if (!told.ok) return told;
    acts.push(...told.value);
  }
  return ok(acts);
}

/** How many passes were not yet told of. */
function addTo(all: Map<EvictionSignal, Map<number, number>>, points: Points): number {
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
