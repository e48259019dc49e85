import type { ProbeType, StoredResult } from "../../model/probe-spec.ts";
import type {
  AttemptOutcome,
  ContainerSeen,
  PodForProbe,
  TimedWorkerSpec,
  Worker,
  WorkerEffect,
  WorkerEvent,
  WorkerStep,
} from "./worker-state.ts";

const TITLE: Readonly<Record<ProbeType, string>> = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" };

/** Builds the kubelet's event for an attempt, in its words; null for a plain success. kubelet 1.36: prober.probe. */
export function probeEvent(
  type: ProbeType,
  outcome: AttemptOutcome,
): Extract<WorkerEffect, { readonly kind: "event" }> | null {
  const title = TITLE[type];
  if ("error" in outcome) {
    const message = `${title} probe errored and resulted in ${outcome.state ?? "unknown"} state: ${outcome.error}`;
    return { kind: "event", reason: "Unhealthy", message };
  }
  if (outcome.result === "success") return null;
  if (outcome.result === "warning") {
    return { kind: "event", reason: "ProbeWarning", message: `${title} probe warning: ${outcome.output}` };
  }
  return { kind: "event", reason: "Unhealthy", message: `${title} probe failed: ${outcome.output}` };
}

/** Attempts of one tick while they end in errors. kubelet 1.36: maxProbeRetries. */
const MAX_TRIES = 3;

/** The turn after its attempt: try again, throw away, or count. kubelet 1.36: prober.probe, worker.doProbe. */
function attempted(
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
  return waitForTick(result === null ? worker : counted(spec, worker, result, effects), atMs, effects);
}

/** The result of an attempt; null: it is discarded. */
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
  const isSameResult = worker.lastResult === result;
  const resultRun = isSameResult ? worker.resultRun + 1 : 1;
  const carried = isSameResult ? worker.carried : 0;
  const next: Worker = { ...worker, lastResult: result, resultRun, carried };
  const threshold = result === "Failure" ? probe.failureThreshold : probe.successThreshold;
  if (resultRun < threshold) return next;
  if (resultRun - carried < threshold && worker.stored !== result) {
    effects.push({ kind: "quirk", code: "counters-carry-over" });
  }
  const updated = stored(next, result, effects);
  const holds = type === "startup" || (type === "liveness" && result === "Failure");
  return holds ? { ...updated, onHold: true, resultRun: 0, carried: 0 } : updated;
}

/** The results that count before the first one. kubelet 1.36: worker.initialValue. */
const INITIAL_RESULT: Readonly<Record<ProbeType, StoredResult>> = {
  startup: "Unknown",
  liveness: "Success",
  readiness: "Failure",
};
/** A container that started longer than this before the daemon was not started by it. kubelet 1.36: kubeletRestartGracePeriod. */
export const RESTART_GRACE_MS = 10_000;

/**
 * A worker that begins at `nowMs`. `jitter` (0 to 1, chance is the caller's) is the share of its period that it sleeps
 * first, and only counts while the daemon is younger than that period. kubelet 1.36: newWorker, worker.run.
 */
export function startWorker(spec: TimedWorkerSpec, nowMs: number, jitter: number): WorkerStep {
  const period = periodMs(spec);
  const sleepMs = period > nowMs - spec.managerStartMs ? Math.floor(jitter * period) : 0;
  const next: Worker = {
    at: "sleeping",
    nextTickMs: nowMs + sleepMs,
    containerId: null,
    stored: null,
    lastResult: "Success",
    resultRun: 0,
    carried: 0,
    onHold: false,
    tries: 0,
    triggered: false,
    stopping: false,
  };
  return { next, effects: [{ kind: "wake", atMs: next.nextTickMs }] };
}

/**
 * Computes one worker's step for one event: exactly what the kubelet's worker does, or with `strict` what is
 * documented. After each step it waits for one thing: a `wake`, an attempt, or nothing (`stop`). If several events
 * arrived during a probe, the kubelet picks randomly; here a stop precedes a trigger, and a trigger a tick. kubelet
 * 1.36: worker.run, worker.doProbe.
 */
export function step(spec: TimedWorkerSpec, worker: Worker, event: WorkerEvent): WorkerStep {
  if (worker.at === "ended") return { next: worker, effects: [] };
  switch (event.on) {
    case "tick":
      return tick(spec, worker, event.atMs, event.pod);
    case "trigger":
      if (worker.at !== "waiting") return { next: { ...worker, triggered: true }, effects: [] };
      return turn(spec, { ...worker, nextTickMs: event.atMs + periodMs(spec) }, event.atMs, event.pod, []);
    case "attempted":
      return worker.at === "probing" ? attempted(spec, worker, event) : { next: worker, effects: [] };
    case "stop":
      if (worker.at === "probing") return { next: { ...worker, stopping: true }, effects: [] };
      if (worker.at === "sleeping" && !spec.strict) {
        return { next: { ...worker, stopping: true }, effects: [{ kind: "quirk", code: "sleep-ignores-stop" }] };
      }
      return ended(worker, []);
  }
}

function tick(spec: TimedWorkerSpec, worker: Worker, atMs: number, pod: PodForProbe | null): WorkerStep {
  if (worker.at === "probing") return { next: worker, effects: [] };
  const period = periodMs(spec);
  if (worker.at === "waiting" && worker.triggered) {
    return turn(spec, { ...worker, triggered: false, nextTickMs: atMs + period }, atMs, pod, []);
  }
  const { nextTickMs } = worker;
  if (atMs < nextTickMs) return { next: worker, effects: [{ kind: "wake", atMs: nextTickMs }] };
  if (worker.at === "sleeping") {
    return turn(spec, { ...worker, at: "waiting", nextTickMs: atMs + period }, atMs, pod, []);
  }
  // Missed ticks count as one, and the next keeps to the beat of the first.
  const missed = Math.floor((atMs - nextTickMs) / period);
  return turn(spec, { ...worker, nextTickMs: nextTickMs + (missed + 1) * period }, atMs, pod, []);
}

/** One turn, up to its attempt if there is one. */
function turn(
  spec: TimedWorkerSpec,
  before: Worker,
  atMs: number,
  pod: PodForProbe | null,
  effects: WorkerEffect[],
): WorkerStep {
  if (pod === null) return waitForTick(before, atMs, effects);
  if (pod.ended) return ended(before, effects);
  const { container } = pod;
  if (container === null) return waitForTick(before, atMs, effects);
  let worker = before;
  if (worker.containerId !== container.id) worker = withContainer(spec, worker, container, effects);
  if (worker.onHold) return waitForTick(worker, atMs, effects);
  if (container.state !== "running") {
    worker = stored(worker, "Failure", effects);
    if (container.state === "terminated" && !container.willRestart) return ended(worker, effects);
    return waitForTick(worker, atMs, effects);
  }
  if (pod.deleting && spec.type !== "readiness") return ended(stored(worker, "Success", effects), effects);
  if (!isDue(spec, container, atMs)) return waitForTick(worker, atMs, effects);
  effects.push({ kind: "attempt", containerId: container.id, tries: 1 });
  return { next: { ...worker, at: "probing", tries: 1 }, effects };
}

function withContainer(
  spec: TimedWorkerSpec,
  worker: Worker,
  container: ContainerSeen,
  effects: WorkerEffect[],
): Worker {
  if (worker.containerId !== null) effects.push({ kind: "forget", containerId: worker.containerId });
  const { startedAtMs, id } = container;
  const isKept =
    container.state === "running" && startedAtMs !== null && startedAtMs < spec.managerStartMs - RESTART_GRACE_MS;
  let next: Worker = { ...worker, containerId: id, stored: null, onHold: false, carried: worker.resultRun };
  if (spec.strict) next = { ...next, lastResult: "Success", resultRun: 0, carried: 0 };
  // A sidecar that is known as started would else hold back the pod's start.
  if (spec.sidecar && spec.type === "startup" && container.started) next = stored(next, "Success", effects);
  if (!isKept) return stored(next, INITIAL_RESULT[spec.type], effects);
  if (spec.type === "readiness") effects.push({ kind: "quirk", code: "ready-kept-on-restart" });
  return next;
}

function isDue({ type, probe }: TimedWorkerSpec, { startedAtMs, started }: ContainerSeen, atMs: number): boolean {
  if (Math.trunc((atMs - (startedAtMs ?? 0)) / 1000) < probe.initialDelaySeconds) return false;
  return started === (type !== "startup");
}

const periodMs = ({ probe }: TimedWorkerSpec): number => probe.periodSeconds * 1000;

/** Stores a result, and reports a change. kubelet 1.36: results.manager.Set. */
function stored(worker: Worker, result: StoredResult, effects: WorkerEffect[]): Worker {
  if (worker.stored === result || worker.containerId === null) return worker;
  effects.push({ kind: "set", containerId: worker.containerId, result });
  return { ...worker, stored: result };
}

/** Waits until the next tick, or not at all if an event arrived meanwhile. */
function waitForTick(worker: Worker, atMs: number, effects: WorkerEffect[]): WorkerStep {
  if (worker.stopping) return ended(worker, effects);
  effects.push({ kind: "wake", atMs: worker.triggered ? atMs : worker.nextTickMs });
  return { next: worker.at === "waiting" ? worker : { ...worker, at: "waiting" }, effects };
}

/** Ends the worker, and removes its result. */
function ended(worker: Worker, effects: WorkerEffect[]): WorkerStep {
  if (worker.containerId !== null) effects.push({ kind: "forget", containerId: worker.containerId });
  effects.push({ kind: "stop" });
  return { next: { ...worker, at: "ended", stored: null }, effects };
}
