/** Steps of this part of a circle leave gaps that differ by less than a factor of three, however many are made. */
const STEP = (Math.sqrt(5) - 1) / 2;
/** Probes of another period begin elsewhere on the circle. */
const SHIFT = Math.SQRT2 - 1;

/**
 * When in its period the probe with this number (0, 1, 2, … among those of the same period) is due: milliseconds from 0
 * to below the period, counted from any moment that all probes share.
 */
export function phaseOf(index: number, periodMs: number): number {
  const turns = index * STEP + (periodMs / 1000) * SHIFT;
  return (turns - Math.floor(turns)) * periodMs;
}

/** The first such moment that is not before `nowMs`; `epochMs` is the moment that all probes share. */
export function nextAtPhase(phaseMs: number, periodMs: number, epochMs: number, nowMs: number): number {
  const first = epochMs + phaseMs;
  return first + Math.max(0, Math.ceil((nowMs - first) / periodMs)) * periodMs;
}
