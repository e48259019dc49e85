import { probeEvent } from "./probe-event.ts";
import { stored, waits } from "./settle.ts";
import type { AttemptOutcome, TimedWorkerSpec, Worker, WorkerEffect, WorkerStep } from "./worker-state.ts";

/** Attempts of one tick while they end in errors. kubelet 1.36: maxProbeRetries. */
export const MAX_TRIES = 3;

/** The turn after its attempt: try again, throw away, or count. kubelet 1.36: prober.probe, worker.doProbe. */
export function attempted(
  spec: TimedWorkerSpec,
  worker: Worker,
  { atMs, outcome }: { readonly atMs: number; readonly outcome: AttemptOutcome },
): WorkerStep {
  const effects: WorkerEffect[] = [];
  const { containerId, tries } = worker;
  if ("error" in outcome && tries < MAX_TRIES && containerId !== null) {
    effects.push({ kind: "attempt", containerId, tries: tries + 1 });
    return { next: { ...worker, tries: tries + 1 }, effects };
  }
  const event = probeEvent(spec.type, outcome);
  if (event !== null) effects.push(event);
  const result = resultOf(spec, outcome, effects);
  return waits(result === null ? worker : counted(spec, worker, result, effects), atMs, effects);
}

/** Null: thrown away. */
function resultOf(
  { strict }: TimedWorkerSpec,
  outcome: AttemptOutcome,
  effects: WorkerEffect[],
): "Success" | "Failure" | null {
  if (!("error" in outcome)) return outcome.result === "failure" ? "Failure" : "Success";
  if (strict) return "Failure";
  effects.push({ kind: "quirk", code: outcome.state === "failure" ? "hang-discarded" : "error-discarded" });
  return null;
}

function counted(
  spec: TimedWorkerSpec,
  worker: Worker,
  result: "Success" | "Failure",
  effects: WorkerEffect[],
): Worker {
  const { type, probe } = spec;
  const goesOn = worker.lastResult === result;
  const resultRun = goesOn ? worker.resultRun + 1 : 1;
  const carried = goesOn ? worker.carried : 0;
  const next: Worker = { ...worker, lastResult: result, resultRun, carried };
  const threshold = result === "Failure" ? probe.failureThreshold : probe.successThreshold;
  if (resultRun < threshold) return next;
  if (resultRun - carried < threshold && worker.stored !== result) {
    effects.push({ kind: "quirk", code: "counters-carry-over" });
  }
  const told = stored(next, result, effects);
  const holds = type === "startup" || (type === "liveness" && result === "Failure");
  return holds ? { ...told, onHold: true, resultRun: 0, carried: 0 } : told;
}
