import type { Attempt, ProbeRequest } from "../../../actuator/probes/engine/attempt.ts";
import type { ManagerDeps, ManagerSettings } from "../../../actuator/probes/engine/engine.ts";
import type { ProbeHistoryEntry } from "../../../actuator/probes/engine/history-entry.ts";
import type { Guarded } from "../../../actuator/probes/engine/liveness-storm-guard.ts";
import { ProbeManager } from "../../../actuator/probes/engine/probe-manager.ts";
import type { ProbeClock } from "../../../actuator/probes/engine/probe-time.ts";
import type { ProbeChange, ProbeWarning } from "../../../actuator/probes/engine/probed.ts";
import { type AttemptResult, noProbeCounters } from "../../../actuator/status/counters.ts";
import type { ProbeOutcome, ProbeType } from "../../../api/model/probe-spec.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { START } from "../../kit/runnable-pods.ts";

/** A clock that moves only when the test advances it. */
export class StillClock implements ProbeClock {
  wallMs = START;
  #monoMs = 5_000;
  readonly #timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();

  nowMs(): number {
    return this.wallMs;
  }
  monotonicMs(): number {
    return this.#monoMs;
  }
  get sinceStart(): number {
    return this.#monoMs - 5_000;
  }
  get timers(): number {
    return this.#timers.size;
  }
  after = (ms: number, run: () => void): (() => void) => {
    const timer = { dueMs: this.#monoMs + ms, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };
  async advance(ms: number): Promise<void> {
    const endMs = this.#monoMs + ms;
    for (;;) {
      await settled();
      const due = [...this.#timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#to(Math.max(this.#monoMs, due.dueMs));
      due.run();
    }
    this.#to(endMs);
  }
  #to(monoMs: number): void {
    this.wallMs += monoMs - this.#monoMs;
    this.#monoMs = monoMs;
  }
}
/** Waits until pending promises are settled, without any time passing. */
const settled = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) await Promise.resolve();
};

export interface Asked extends ProbeRequest {
  readonly atMs: number;
  readonly end: (outcome: ProbeOutcome) => void;
}
export const OK = { result: "success", output: "fine" } as const satisfies ProbeOutcome;
export const BAD = {
  result: "failure",
  output: "HTTP probe failed with statuscode: 500",
} as const satisfies ProbeOutcome;

export interface ManagerFixture {
  readonly clock: StillClock;
  readonly manager: ProbeManager;
  /** The attempts that started, in order. */
  readonly asked: Asked[];
  /** The outcome with which attempts end immediately; null: an attempt lasts until the test ends it. */
  answer: (asked: ProbeRequest) => ProbeOutcome | null;
  readonly results: ProbeChange[];
  readonly events: ProbeWarning[];
  /** The decisions of the liveness storm guard. */
  readonly guarded: Guarded[];
  readonly history: ProbeHistoryEntry[];
  readonly counted: { readonly ended: [ProbeType, AttemptResult][]; waited: number; readonly late: number[] };
}
/** A manager whose attempts are scripted; by default the first attempts are not spread over the period. */
export function managerFixture(
  more: Partial<ManagerSettings> = {},
  random = () => 0,
  guardStateFile?: NonNullable<ManagerDeps["guardStateFile"]>,
): ManagerFixture {
  const clock = new StillClock();
  const counted: ManagerFixture["counted"] = { ended: [], waited: 0, late: [] };
  const lists = { asked: [] as Asked[], results: [] as ProbeChange[], events: [] as ProbeWarning[] };
  const reported = { guarded: [] as Guarded[], history: [] as ProbeHistoryEntry[] };
  const attempt: Attempt = (asked) => {
    const { promise, resolve } = Promise.withResolvers<ProbeOutcome>();
    lists.asked.push({ ...asked, atMs: clock.sinceStart, end: resolve });
    const answer = made.answer(asked);
    if (answer !== null) resolve(answer);
    return promise;
  };
  const counters = {
    ...noProbeCounters,
    probed: (type: ProbeType, result: AttemptResult) => void counted.ended.push([type, result]),
    execProbeWaited: () => void counted.waited++,
    probeLate: (seconds: number) => void counted.late.push(seconds),
  };
  const manager = new ProbeManager(
    {
      ...{ attempt, clock, random, counters },
      runtime: { exec: () => Promise.reject(new Error("nothing is run here")) },
      ...(guardStateFile === undefined ? {} : { guardStateFile }),
      history: { add: (entry) => void reported.history.push(entry), flush: () => {} },
      onResult: (change) => void lists.results.push(change),
      onEvent: (warning) => void lists.events.push(warning),
      onGuard: (guarded) => void reported.guarded.push(guarded),
    },
    // by default the daemon has run for longer than any period
    {
      startedAtMs: START - 3_600_000,
      strict: false,
      spread: false,
      execLimit: 64,
      guard: null,
      profile: v1_36,
      ...more,
    },
  );
  const made: ManagerFixture = { clock, manager, ...lists, ...reported, counted, answer: () => OK };
  return made;
}
/** `liveness Success Failure`: the results that were reported for one probe type. */
export const resultsOf = ({ results }: ManagerFixture, type: ProbeType): readonly string[] =>
  results.filter((change) => change.type === type).map(({ result }) => result);
