import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asked, nextMessage } from "./heard.ts";
import type { ProbesSeen } from "./probes-daemon-process.ts";

export interface ProbesFigure {
  readonly name: string;
  /** Milliseconds by which workers ran later than they were due. */
  readonly lateMs: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly aimLateMs: number;
  /**
   * The largest delay of a timer in an idle process during the measurement: the delay that the machine itself causes.
   */
  readonly machineLateMs: number;
  /** CPU time of the daemon's process, all threads, as a fraction of one core. */
  readonly share: number;
  readonly aimShare: number;
  readonly attemptsPerSecond: number;
  readonly failures: number;
  readonly rssBytes: readonly [start: number, end: number];
  /** Memory in use after a garbage collection. */
  readonly heldBytes: readonly [start: number, end: number];
}

const PROBES = 5000;
const SERVERS = 16;
const AIM_LATE_MS = 250;
const AIM_SHARE = 0.5;
const WARM_UP_MS = 3_000;
/** `BENCH_PROBES_SECONDS=600` checks that the memory stays flat. */
const MEASURED_MS = Number(process.env["BENCH_PROBES_SECONDS"] ?? 8) * 1000;
const STARTED_MS = 20_000;
const IDLE_TICK_MS = 10;
const DAEMON_FILE = "probes-daemon-process.ts";
/** The flags with which the launcher starts a daemon. */
const DAEMON_FLAGS = ["--max-semi-space-size=2", "--optimize-for-size", "--no-opt", "--no-maglev"];

/**
 * Measures the real probe manager with real requests to real servers on loopback, each in its own process. Throws if
 * fewer than half of the probes are made, or if more than half of them fail.
 */
export async function benchProbes(): Promise<readonly ProbesFigure[]> {
  const children: ChildProcess[] = [];
  const begin = async (file: string, ...args: readonly (string | number)[]): Promise<[ChildProcess, unknown]> => {
    const execArgv = file === DAEMON_FILE ? ["--expose-gc", ...DAEMON_FLAGS] : [];
    const options = { execArgv, timeout: MEASURED_MS + STARTED_MS };
    const child = fork(join(import.meta.dirname, file), args.map(String), options);
    children.push(child);
    return [child, await nextMessage(child)];
  };
  try {
    const [, ports] = await begin("probes-server-process.ts", SERVERS);
    const [daemon] = await begin(DAEMON_FILE, PROBES, ...(ports as readonly number[]));
    await sleep(WARM_UP_MS);
    const before = await asked<ProbesSeen>(daemon);
    const machineLateMs = await idleFor(MEASURED_MS);
    const after = await asked<ProbesSeen>(daemon);
    return [{ ...figureOf(before, after), machineLateMs }];
  } finally {
    for (const child of children) child.disconnect();
  }
}

/** The largest delay of a timer in this process, which is otherwise idle. */
async function idleFor(ms: number): Promise<number> {
  const end = performance.now() + ms;
  let latest = 0;
  for (let due = performance.now(); due < end; ) {
    due = performance.now() + IDLE_TICK_MS;
    await sleep(IDLE_TICK_MS);
    latest = Math.max(latest, performance.now() - due);
  }
  return latest;
}

function figureOf(before: ProbesSeen, after: ProbesSeen): Omit<ProbesFigure, "machineLateMs"> {
  const { seconds, late, attempts, failures, cpuMicros } = after;
  const attemptsPerSecond = attempts / seconds;
  if (attemptsPerSecond < PROBES / 2 || failures > attempts / 2)
    throw new Error(`${attemptsPerSecond.toFixed(0)} attempts a second, ${failures} of ${attempts} did not succeed`);
  return {
    name: `${PROBES} http probes of one second, for ${Math.round(seconds)} s`,
    lateMs: { p50: lateAt(late, 0.5), p99: lateAt(late, 0.99), max: lateAt(late, 1) },
    aimLateMs: AIM_LATE_MS,
    share: cpuMicros / 1e6 / seconds,
    aimShare: AIM_SHARE,
    attemptsPerSecond,
    failures,
    rssBytes: [before.rssBytes, after.rssBytes],
    heldBytes: [before.heldBytes, after.heldBytes],
  };
}

/** The quantile `part` of the delays, rounded up to a whole millisecond. */
function lateAt(late: readonly number[], part: number): number {
  let left = part * late.reduce((sum, count) => sum + count, 0);
  const ms = late.findIndex((count) => {
    left -= count;
    return left <= 0;
  });
  return ms + 1;
}
