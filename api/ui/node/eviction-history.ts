import type { StoreFailure } from "../../../db/failure.ts";
import type { LatestRow } from "../../../db/fleet-row.ts";
import type { DecisionHead, DecisionRow, Store } from "../../../db/store.ts";
import { EVICTION_SIGNALS, type EvictionDecision, type EvictionSignal } from "../../model/eviction.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Point } from "../draw/plot.ts";
import { type Lru, lru } from "./lru.ts";

/** Points a signal are drawn of, at most. */
const MOST_DECISIONS = 200;
/** Bodies a page reads, at most: each tells of the passes before it as well. */
const MOST_BODIES = 48;

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

type Points = ReadonlyMap<EvictionSignal, readonly Point[]>;
export interface EvictionHistory {
  /** The newest recorded decision; null: there is none, or what it says cannot be read. */
  readonly newest: { readonly head: DecisionHead; readonly decision: EvictionDecision } | null;
  /** Oldest first. */
  readonly points: Points;
  readonly decisions: number;
}

type History = Pick<Store, "listDecisions" | "getDecision">;
const pointsOf = new WeakMap<object, Lru<Points>>();

/**
 * What was available of each signal at the node's last passes. A decision's `next` holds the samples of up to 32 passes, so
 * only those decisions are read that tell of earlier ones.
 */
export async function evictionHistory(
  store: History,
  node: string,
  latest: LatestRow | undefined,
): Promise<Result<EvictionHistory, StoreFailure>> {
  if (latest === undefined) return ok({ newest: null, points: new Map(), decisions: 0 });
  const range = aroundLatest(latest, SPAN_MS);
  const page = await store.listDecisions({ node, kind: "eviction", limit: MOST_DECISIONS, ...range });
  if (!page.ok) return page;
  const heads = page.value.items;
  const kept = pointsOf.get(store) ?? lru<Points>(2048);
  pointsOf.set(store, kept);
  const all = new Map<EvictionSignal, Map<number, number>>();
  let newest: EvictionHistory["newest"] = null;
  for (let i = 0, read = 0; i < heads.length && read < MOST_BODIES; read++) {
    const head = heads[i] as DecisionHead;
    let points = i === 0 ? undefined : kept.get(head.id);
    if (points === undefined) {
      const row = await store.getDecision(head.id);
      if (!row.ok) return row;
      // pruned meanwhile
      const body = row.value === null ? null : bodyOf(row.value);
      points = body === null ? new Map() : pointsIn(body);
      kept.set(head.id, points);
      if (i === 0 && body !== null && isEviction(body.decision)) newest = { head, decision: body.decision };
    }
    i += Math.max(1, addTo(all, points));
  }
  const sorted = EVICTION_SIGNALS.flatMap((signal) => {
    const own = [...(all.get(signal) ?? [])].sort(([a], [b]) => a - b).slice(-MOST_DECISIONS);
    return own.length === 0 ? [] : [[signal, own] as const];
  });
  return ok({ newest, points: new Map(sorted), decisions: heads.length });
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

interface Body {
  readonly decision: unknown;
  readonly next: unknown;
}
function bodyOf({ body }: DecisionRow): Body | null {
  try {
    return JSON.parse(body) as Body;
  } catch {
    return null;
  }
}

/** Another version may have written it: only what is a sample is taken. */
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
