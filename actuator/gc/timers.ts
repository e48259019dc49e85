import { setTimeout as sleep } from "node:timers/promises";
import type { ActuatorConfig } from "../config.ts";
import type { Collector } from "./collector.ts";
import type { GcKind, TurnReport } from "./ports.ts";

export type Periods = Pick<ActuatorConfig, "containerGCPeriodSeconds" | "imageGCPeriodSeconds">;

/**
 * Runs what is due until told to stop, everything at once to begin with. A turn that takes longer than a period puts the
 * next one off: two never run at a time.
 */
export async function collectUntil(
  stop: AbortSignal,
  collector: Collector,
  periods: Periods,
  onTurn: (report: TurnReport) => void,
): Promise<void> {
  const periodMs: Readonly<Record<GcKind, number>> = {
    "container-gc": periods.containerGCPeriodSeconds * 1000,
    "image-gc": periods.imageGCPeriodSeconds * 1000,
  };
  const kinds = Object.keys(periodMs) as GcKind[];
  const dueAt = new Map<GcKind, number>();
  while (!stop.aborted) {
    const now = performance.now();
    const due = kinds.filter((kind) => (dueAt.get(kind) ?? now) <= now);
    for (const kind of due) dueAt.set(kind, now + periodMs[kind]);
    // a timer may go off a moment early
    if (due.length > 0) onTurn(await collector.turn(new Set(due)));
    const next = Math.min(...dueAt.values());
    await sleep(Math.max(1, next - performance.now()), undefined, { signal: stop }).catch(() => {});
  }
}
