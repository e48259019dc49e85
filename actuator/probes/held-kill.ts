import type { Worker, WorkerStep } from "../../api/decide/probes/worker-state.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { Storm } from "./storm.ts";

/** The step after an attempt: a liveness kill waits for the guard's word, and meanwhile the container is probed on. */
export function guarded(storm: Storm | null, worker: LiveWorker, before: Worker, taken: WorkerStep): WorkerStep {
  const { spec, pod, name } = worker;
  if (storm === null || spec.type !== "liveness" || before.stopping) return taken;
  const kill = taken.effects.find((effect) => effect.kind === "set" && effect.result === "Failure");
  if (kill?.kind === "set") {
    const { containerId } = kill;
    worker.isFailing = true;
    const container = `${name.namespace}/${name.pod}/${name.container}`;
    storm.failed({ containerId, container, group: pod.owner ?? pod.uid }, worker);
    return killHeld(before, taken);
  }
  if (worker.isFailing && taken.next.lastResult === "Success") {
    worker.isFailing = false;
    storm.recovered(before.containerId ?? "");
  }
  return taken;
}

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
