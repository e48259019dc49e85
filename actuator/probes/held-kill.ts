import type { Worker, WorkerStep } from "../../api/decide/probes/worker-state.ts";
import type { FailedContainer } from "../../api/model/probe-guard.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { Storm } from "./storm.ts";

/**
 * The step after an attempt: the guard hears of a liveness probe that fails and of one that succeeds again; a kill waits for
 * its word, and meanwhile the container is probed on.
 */
export function guarded(storm: Storm | null, worker: LiveWorker, before: Worker, taken: WorkerStep): WorkerStep {
  const { spec } = worker;
  const { containerId } = before;
  if (storm === null || spec.type !== "liveness" || before.stopping || containerId === null) return taken;
  worker.told ??= storm.inherited(containerId, worker);
  if (taken.effects.some((effect) => effect.kind === "set" && effect.result === "Failure")) {
    worker.told = "failed";
    storm.failed(failureOf(worker, containerId), worker);
    return killHeld(before, taken);
  }
  if (!isCounted(before, taken.next)) return taken;
  if (taken.next.lastResult === "Failure") {
    worker.told ??= "failing";
    storm.failing(failureOf(worker, containerId));
  } else if (worker.told !== null) {
    worker.told = null;
    storm.recovered(containerId);
  }
  return taken;
}

const failureOf = ({ name, pod }: LiveWorker, containerId: string): FailedContainer => ({
  containerId,
  container: `${name.namespace}/${name.pod}/${name.container}`,
  group: pod.owner ?? pod.uid,
});

/** What was thrown away changes no run. */
const isCounted = (before: Worker, next: Worker): boolean =>
  next.lastResult !== before.lastResult || next.resultRun !== before.resultRun;

/** What was stored stays, and the run goes on, so that the next failure reaches the threshold again. */
const killHeld = (before: Worker, { next, effects }: WorkerStep): WorkerStep => ({
  next: {
    ...next,
    stored: before.stored,
    onHold: false,
    resultRun: before.lastResult === "Failure" ? before.resultRun + 1 : 1,
  },
  effects: effects.filter(({ kind }) => kind !== "set"),
});

/** The kill that was held. kubelet 1.36: the end of worker.doProbe. */
export const killNow = (worker: Worker): WorkerStep => ({
  next: { ...worker, at: "waiting", stored: "Failure", onHold: true, resultRun: 0 },
  effects:
    worker.containerId === null
      ? []
      : [
          { kind: "set", containerId: worker.containerId, result: "Failure" },
          { kind: "wake", atMs: worker.nextTickMs },
        ],
});
