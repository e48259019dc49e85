import type { StoredResult } from "../../model/probe.ts";
import type { Worker, WorkerEffect, WorkerStep } from "./worker-state.ts";

/** Stores a result, and tells it when it is another. kubelet 1.36: results.manager.Set. */
export function stored(worker: Worker, result: StoredResult, effects: WorkerEffect[]): Worker {
  if (worker.stored === result || worker.containerId === null) return worker;
  effects.push({ kind: "set", containerId: worker.containerId, result });
  return { ...worker, stored: result };
}

/** Until the next tick, or no longer if something came in the meantime. */
export function waits(worker: Worker, atMs: number, effects: WorkerEffect[]): WorkerStep {
  if (worker.stopping) return ended(worker, effects);
  effects.push({ kind: "wake", atMs: worker.triggered ? atMs : worker.nextTickMs });
  return { next: worker.at === "waiting" ? worker : { ...worker, at: "waiting" }, effects };
}

/** The worker is done with; its result goes with it. */
export function ended(worker: Worker, effects: WorkerEffect[]): WorkerStep {
  if (worker.containerId !== null) effects.push({ kind: "forget", containerId: worker.containerId });
  effects.push({ kind: "stop" });
  return { next: { ...worker, at: "ended", stored: null }, effects };
}
