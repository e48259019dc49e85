import type { DecisionHead, DecisionRow } from "../../../db/store.ts";
import type { AdmissionDecision } from "../../model/admission.ts";
import { EVICTION_SIGNALS, type EvictionDecision, type EvictionSignal } from "../../model/eviction.ts";
import type { Point } from "../draw/plot.ts";
import { type Act, actsOfAdmission, actsOfPass } from "./acts.ts";

export type Points = ReadonlyMap<EvictionSignal, readonly Point[]>;
/** What a recorded decision tells of the signals; of a pass, of those before it as well. */
export interface Told {
  readonly points: Points;
  readonly acts: readonly Act[];
  /** Null: it is none, or another version wrote it. */
  readonly pass: EvictionDecision | null;
}
const NOTHING: Told = { points: new Map(), acts: [], pass: null };

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

/** Reads an eviction pass; another version may have written it, and then only what is known is taken. */
export function toldByPass(row: DecisionRow | null): Told {
  const body = row === null ? null : bodyOf(row.body);
  if (row === null || body === null) return NOTHING;
  const pass = isEviction(body.decision) ? body.decision : null;
  return { points: pointsIn(body), acts: pass === null ? [] : told(() => actsOfPass(pass, row)), pass };
}

/** The pods that an admission, or a preemption that was asked for by itself, ends. */
export function toldByAdmission(head: DecisionHead, row: DecisionRow | null): readonly Act[] {
  const decision = row === null ? undefined : (bodyOf(row.body)?.decision as Partial<AdmissionDecision> | undefined);
  const { pod, preempt } = decision ?? {};
  return pod === undefined || !Array.isArray(preempt) ? [] : told(() => actsOfAdmission({ pod, preempt }, head));
}
function told(read: () => Act[]): readonly Act[] {
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
