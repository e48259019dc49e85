import type { ProbeHandler } from "../../model/probe-spec.ts";

/** Steps of this part of a circle leave gaps that differ by less than a factor of three, however many are made. */
const STEP = (Math.sqrt(5) - 1) / 2;
/** Probes of another period begin elsewhere on the circle. */
const SHIFT = Math.SQRT2 - 1;

/**
 * The time within its period at which a probe is due, by its number (0, 1, 2, …) among the probes of the same period:
 * from 0 to below the period, in milliseconds, counted from a moment that is the same for all probes.
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

/** The length of time in which attempts are counted as one crowd. */
export const WINDOW_MS = 100;
/** Periods that meet more seldom are taken as if they met at their worst. */
const LONGEST_MEETING_MS = 3_600_000;

export const HANDLERS = ["exec", "http", "tcp", "grpc"] as const;
export type HandlerKind = (typeof HANDLERS)[number];
export const handlerKind = (handler: ProbeHandler): HandlerKind =>
  HANDLERS.find((kind) => kind in handler) as HandlerKind;

export interface PlannedProbe {
  readonly handler: HandlerKind;
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  /** The time that one attempt takes; for execs only. */
  readonly seconds: number;
}

/** The load of all probes on a node once their containers have started; a startup probe counts as if it never ended. */
export interface ProbePlan {
  readonly probes: number;
  /** Attempts a second by handler. */
  readonly perSecond: Readonly<Record<HandlerKind, number>>;
  /** The maximum number of attempts that begin in one window of 100 ms, on a grid of such windows. */
  readonly maxAtOnce: {
    readonly spread: number;
    /** The maximum without spreading, as after a start of all pods at once: every probe. */
    readonly unspread: number;
  };
  /** Execs that run at the same time. */
  readonly execsAtOnce: {
    /** The average number of running attempts, if each takes the expected time. */
    readonly expected: number;
    /** The average number of running attempts, if each takes its whole timeout; execs of one probe never overlap. */
    readonly hanging: number;
  };
}

/** How the daemon would spread the probes over time, and the resulting load. */
export function probePlan(probes: readonly PlannedProbe[]): ProbePlan {
  const perSecond = { exec: 0, http: 0, tcp: 0, grpc: 0 };
  let expected = 0;
  let hanging = 0;
  for (const { handler, periodSeconds, timeoutSeconds, seconds } of probes) {
    perSecond[handler] += 1 / periodSeconds;
    if (handler !== "exec") continue;
    expected += Math.min(1, Math.min(seconds, timeoutSeconds) / periodSeconds);
    hanging += Math.min(1, timeoutSeconds / periodSeconds);
  }
  return {
    probes: probes.length,
    perSecond,
    maxAtOnce: { spread: maxAtOnce(probes), unspread: probes.length },
    execsAtOnce: { expected, hanging },
  };
}

function maxAtOnce(probes: readonly PlannedProbe[]): number {
  const countsByPeriod = windowCountsByPeriod(probes);
  const periods = [...countsByPeriod.keys()];
  const meetsMs = periods.reduce((all, period) => (all > LONGEST_MEETING_MS ? all : leastMultiple(all, period)), 1);
  if (meetsMs > LONGEST_MEETING_MS)
    return [...countsByPeriod.values()].reduce((sum, windows) => sum + maxOf(windows.values()), 0);
  const counts = new Array<number>(Math.ceil(meetsMs / WINDOW_MS)).fill(0);
  for (const [period, windows] of countsByPeriod)
    for (const [window, count] of windows)
      for (let i = window; i < counts.length; i += period / WINDOW_MS) counts[i] = (counts[i] as number) + count;
  return maxOf(counts);
}

/** For each period in milliseconds: the number of probes in each of its windows. */
function windowCountsByPeriod(probes: readonly PlannedProbe[]): ReadonlyMap<number, ReadonlyMap<number, number>> {
  const countsByPeriod = new Map<number, Map<number, number>>();
  const numbers = new Map<number, number>();
  for (const { periodSeconds } of probes) {
    const period = periodSeconds * 1000;
    const windows = countsByPeriod.get(period) ?? new Map<number, number>();
    const index = numbers.get(period) ?? 0;
    const window = Math.floor(phaseOf(index, period) / WINDOW_MS);
    windows.set(window, (windows.get(window) ?? 0) + 1);
    countsByPeriod.set(period, windows);
    numbers.set(period, index + 1);
  }
  return countsByPeriod;
}

function maxOf(counts: Iterable<number>): number {
  let most = 0;
  for (const count of counts) most = Math.max(most, count);
  return most;
}
const leastMultiple = (a: number, b: number): number => (a / greatestDivisor(a, b)) * b;
const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));
