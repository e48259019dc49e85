import type { ActuatorConfig } from "../config.ts";
import type { Pace } from "../pace.ts";
import type { Collector } from "./collector.ts";
import type { GcKind, TurnReport } from "./ports.ts";

export type Periods = Pick<ActuatorConfig, "containerGCPeriodSeconds" | "imageGCPeriodSeconds">;

/**
 * Runs what is due until told to stop, everything at once to begin with. A turn that takes longer than a period puts the
 * next one off: two never run at a time. Periods are read at each turn.
 */
export async function collectUntil(
  stop: AbortSignal,
  collector: Collector,
  periods: Periods,
  onTurn: (report: TurnReport) => void,
  pace: Pace,
): Promise<void> {
  const kinds = ["container-gc", "image-gc"] as const;
  const ranAt = new Map<GcKind, number>();
  const dueAt = (kind: GcKind): number => (ranAt.get(kind) ?? Number.NEGATIVE_INFINITY) + periodMs(periods, kind);
  while (!stop.aborted) {
    const now = performance.now();
    const due = kinds.filter((kind) => dueAt(kind) <= now);
    for (const kind of due) ranAt.set(kind, now);
    // a timer may go off a moment early
    if (due.length > 0) onTurn(await collector.turn(new Set(due)));
    const next = Math.min(...kinds.map(dueAt));
    await pace.sleep(Math.max(1, next - performance.now()));
  }
}

const periodMs = ({ containerGCPeriodSeconds, imageGCPeriodSeconds }: Periods, kind: GcKind): number =>
  (kind === "container-gc" ? containerGCPeriodSeconds : imageGCPeriodSeconds) * 1000;
