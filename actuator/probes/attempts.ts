import type { AttemptOutcome } from "../../api/decide/probes/worker-state.ts";
import type { ProbeCounters } from "../status/probe-counters.ts";
import type { Attempt, ProbePorts } from "./attempt.ts";
import type { ExecLimit } from "./exec-limit.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { ProbeTime } from "./probe-time.ts";

export interface AttemptsPorts {
  readonly attempt: Attempt;
  readonly runtime: ProbePorts;
  readonly time: ProbeTime;
  readonly counters: ProbeCounters;
  readonly execLimit: ExecLimit;
  /** `seconds`: without what it waited for its turn. */
  readonly onOutcome: (worker: LiveWorker, outcome: AttemptOutcome, seconds: number) => void;
  /** An exec had to wait for its turn longer than its period. */
  readonly onOverdue: (worker: LiveWorker, seconds: number) => void;
}

/** Asks containers; of execs only so many at once. */
export class Attempts {
  readonly #ports: AttemptsPorts;

  constructor(ports: AttemptsPorts) {
    this.#ports = ports;
  }

  begin(worker: LiveWorker, containerId: string): void {
    const number = ++worker.attempt;
    if (worker.handler !== "exec") {
      void this.#run(worker, containerId, number);
      return;
    }
    const { execLimit, time } = this.#ports;
    const queuedMs = time.now();
    let hasBegun = false;
    const unqueue = execLimit.add(worker.name.podUid, () => {
      hasBegun = true;
      worker.unqueue = null;
      const waitedMs = time.now() - queuedMs;
      if (waitedMs > worker.periodMs) this.#overdue(worker, waitedMs / 1000);
      return this.#run(worker, containerId, number);
    });
    if (!hasBegun) worker.unqueue = unqueue;
  }

  /** What it asked for is not waited for any more. */
  drop(worker: LiveWorker): void {
    worker.attempt++;
    worker.unqueue?.();
    worker.unqueue = null;
  }

  #overdue(worker: LiveWorker, seconds: number): void {
    this.#ports.counters.execProbeWaited();
    this.#ports.onOverdue(worker, seconds);
  }

  async #run(worker: LiveWorker, containerId: string, number: number): Promise<void> {
    const { attempt, runtime, time, counters, onOutcome } = this.#ports;
    const beganMs = time.now();
    let outcome: AttemptOutcome;
    try {
      outcome = await attempt(worker.asked(containerId), runtime);
    } catch (error) {
      // as the kubelet, whose worker outlives a panic of its probe
      outcome = { error: (error as Error).message };
    }
    const seconds = (time.now() - beganMs) / 1000;
    counters.probed(worker.spec.type, "error" in outcome ? "error" : outcome.result, seconds);
    if (worker.attempt === number) onOutcome(worker, outcome, seconds);
  }
}
