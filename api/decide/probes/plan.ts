import type { ProbeHandler, ProbeSpec } from "../../model/probe.ts";
import { phaseOf } from "./spread.ts";

/** Of the time in which attempts are counted as one crowd. */
export const WINDOW_MS = 100;
/** Periods that meet more seldom are taken as if they met at their worst. */
const LONGEST_MEETING_MS = 3_600_000;

export const HANDLERS = ["exec", "http", "tcp", "grpc"] as const;
export type HandlerKind = (typeof HANDLERS)[number];
export const handlerKind = (handler: ProbeHandler): HandlerKind =>
  HANDLERS.find((kind) => kind in handler) as HandlerKind;

/** What all probes of a node do to it once their containers have started; a startup probe counts as if it never ended. */
export interface ProbePlan {
  readonly probes: number;
  /** Attempts a second by handler. */
  readonly perSecond: Readonly<Record<HandlerKind, number>>;
  /** Most attempts that begin in one window of 100 ms, on a grid of such windows. */
  readonly mostAtOnce: {
    readonly spread: number;
    /** Where nobody spreads them, as after a start of all pods at once: every probe. */
    readonly unspread: number;
  };
  /** Execs that run at the same time. */
  readonly execsAtOnce: {
    /** On the average, when each takes as long as was said. */
    readonly expected: number;
    /** On the average, when each takes its whole timeout; no exec of a probe overlaps another one of it. */
    readonly hanging: number;
  };
}

/** `execSeconds`: what an exec takes, of one probe. */
export function probePlan(probes: readonly ProbeSpec[], execSeconds: (probe: ProbeSpec) => number): ProbePlan {
  const perSecond = { exec: 0, http: 0, tcp: 0, grpc: 0 };
  let expected = 0;
  let hanging = 0;
  for (const probe of probes) {
    const { handler, periodSeconds, timeoutSeconds } = probe;
    const kind = handlerKind(handler);
    perSecond[kind] += 1 / periodSeconds;
    if (kind !== "exec") continue;
    expected += Math.min(1, Math.min(execSeconds(probe), timeoutSeconds) / periodSeconds);
    hanging += Math.min(1, timeoutSeconds / periodSeconds);
  }
  return {
    probes: probes.length,
    perSecond,
    mostAtOnce: { spread: mostAtOnce(probes), unspread: probes.length },
    execsAtOnce: { expected, hanging },
  };
}

function mostAtOnce(probes: readonly ProbeSpec[]): number {
  const rings = ringsOf(probes);
  const periods = [...rings.keys()];
  const meetsMs = periods.reduce((all, period) => (all > LONGEST_MEETING_MS ? all : leastMultiple(all, period)), 1);
  if (meetsMs > LONGEST_MEETING_MS) return [...rings.values()].reduce((sum, ring) => sum + maxOf(ring), 0);
  const counts = new Array<number>(Math.ceil(meetsMs / WINDOW_MS)).fill(0);
  for (const ring of rings.values())
    for (let i = 0; i < counts.length; i++) counts[i] = (counts[i] as number) + (ring[i % ring.length] as number);
  return maxOf(counts);
}

/** By period: how many probes fall into each of its windows. */
function ringsOf(probes: readonly ProbeSpec[]): ReadonlyMap<number, number[]> {
  const rings = new Map<number, number[]>();
  const numbers = new Map<number, number>();
  for (const { periodSeconds } of probes) {
    const period = periodSeconds * 1000;
    const ring = rings.get(period) ?? new Array<number>(period / WINDOW_MS).fill(0);
    const index = numbers.get(period) ?? 0;
    const window = Math.floor(phaseOf(index, period) / WINDOW_MS);
    ring[window] = (ring[window] as number) + 1;
    rings.set(period, ring);
    numbers.set(period, index + 1);
  }
  return rings;
}

const maxOf = (counts: readonly number[]): number => counts.reduce((most, count) => Math.max(most, count), 0);
const leastMultiple = (a: number, b: number): number => (a / greatestDivisor(a, b)) * b;
const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));
