import type { ProbeType } from "../../model/probe-spec.ts";
import type { ContainerRun, ProbeNodeEvent, Span } from "../../model/probes-decision.ts";
import { type BackOff, type BackOffLimits, isOver, raised } from "./back-off.ts";
import { MIN_GRACE_SECONDS } from "./settings.ts";
import {
  type ContainerTrace,
  type QuirkOccurrence,
  SimClock,
  SimProbeWorker,
  type SimulatedPod,
  type Timeline,
  type TimelineContainer,
  type TimelineInput,
} from "./sim-worker.ts";
import { RESTART_GRACE_MS } from "./worker.ts";
import type { ContainerSeen, PodForProbe, WorkerEffect } from "./worker-state.ts";

/** CrashLoopBackOff of one container. kubelet 1.36: doBackOff, flowcontrol.Backoff. */
class RestartBackOff {
  readonly #limits: BackOffLimits;
  #entry: BackOff | undefined;

  constructor(limits: BackOffLimits) {
    this.#limits = limits;
  }

  /** When the container may start again; `endedAtMs`: the end of the newest known dead container. */
  untilMs(endedAtMs: number, nowMs: number): number {
    const entry = this.#entry;
    if (entry === undefined || isOver(entry, endedAtMs, this.#limits)) return nowMs;
    return Math.max(nowMs, endedAtMs + entry.delayMs);
  }
  /** Records one more start. */
  raise(endedAtMs: number, nowMs: number): void {
    this.#entry = raised(this.#entry, endedAtMs, { nowMs, limits: this.#limits });
  }
}

type Open<T> = { -readonly [K in keyof T]: T[K] };
/** The moments at which something began and ceased to hold. */
class Spans {
  readonly list: Open<Span>[] = [];
  note(holds: boolean, atMs: number): void {
    const last = this.list.at(-1);
    const isOpen = last !== undefined && last.toMs === null;
    if (holds === isOpen) return;
    if (holds) this.list.push({ fromMs: atMs, toMs: null });
    else if (last !== undefined) last.toMs = atMs;
  }
}

/** One container of the dry run: its instances, its status as the kubelet sees it, and its probes. */
class SimContainer implements ContainerTrace {
  readonly spec: TimelineContainer;
  readonly runs: Open<ContainerRun>[] = [];
  readonly lanes: readonly SimProbeWorker[];
  readonly backOff: RestartBackOff;
  state: ContainerSeen["state"] = "waiting";
  /** True: it is being terminated. */
  isStopping = false;
  /** The container's `started` in the status. */
  isStarted = false;
  isReady = false;
  willRestart = true;
  readonly #started = new Spans();
  readonly #ready = new Spans();
  #seen: PodForProbe = NOT_THERE;

  constructor(
    spec: TimelineContainer,
    pod: Omit<SimulatedPod, "seen">,
    { strict, backOff }: Pick<TimelineInput, "strict" | "backOff">,
  ) {
    this.spec = spec;
    this.backOff = new RestartBackOff(backOff);
    const here: SimulatedPod = {
      clock: pod.clock,
      seen: () => this.#seen,
      onEffect: (lane, effect) => pod.onEffect(lane, effect),
      attempted: () => pod.attempted(),
    };
    this.lanes = spec.probes.map((probe) => new SimProbeWorker(here, probe, spec.sidecar, strict));
  }
  get name(): string {
    return this.spec.name;
  }
  get restarts(): number {
    return Math.max(0, this.runs.length - 1);
  }
  get started(): readonly Span[] {
    return this.#started.list;
  }
  get ready(): readonly Span[] {
    return this.#ready.list;
  }
  get run(): Open<ContainerRun> | undefined {
    return this.runs.at(-1);
  }
  lane(type: ProbeType): SimProbeWorker | undefined {
    return this.lanes.find((lane) => lane.type === type);
  }
  storedBy(type: ProbeType): string | null {
    return this.run === undefined ? null : (this.lane(type)?.storedFor(this.run.id) ?? null);
  }

  begin(nowMs: number): void {
    this.runs.push({ id: `c${this.runs.length}`, startedAtMs: nowMs, endedAtMs: null, endedBy: null });
    this.state = "running";
    this.isStopping = false;
    this.isStarted = this.lane("startup") === undefined;
  }
  end(nowMs: number): void {
    const { run } = this;
    if (run !== undefined) run.endedAtMs = nowMs;
    this.state = "terminated";
    this.isStopping = false;
  }
  /** Updates, after each change, what the workers see, and the record. */
  settle(isPodEnded: boolean, nowMs: number): void {
    const isRunning = this.state === "running";
    if (!isRunning) this.isStarted = false;
    if (!this.isStarted) this.isReady = false;
    this.#started.note(this.isStarted, nowMs);
    this.#ready.note(this.isReady, nowMs);
    const { run, state, isStarted: started, willRestart } = this;
    const startedAtMs = isRunning ? (run?.startedAtMs ?? null) : null;
    const container = run === undefined ? null : { id: run.id, state, startedAtMs, started, willRestart };
    this.#seen = { ended: isPodEnded, deleting: false, container };
  }
}
const NOT_THERE: PodForProbe = { ended: false, deleting: false, container: null };

const MAX_ATTEMPTS = 20_000;
const KILLED = 137;

/** One pod of the dry run; it starts, stops and restarts its containers by the results of their probes. */
export class SimPod {
  readonly clock = new SimClock();
  readonly #input: TimelineInput;
  readonly #containers: readonly SimContainer[];
  readonly #ready = new Spans();
  readonly #events = new Map<string, { -readonly [K in keyof ProbeNodeEvent]: ProbeNodeEvent[K] }>();
  readonly #quirks = new Map<string, QuirkOccurrence>();
  #managerStartMs: number | null = null;
  #isReady = false;
  #isEnded = false;
  #isSyncDue = false;
  /** The pod's worker waits for a container to end until then. */
  #busyUntilMs = 0;
  #attempts = 0;

  constructor(input: TimelineInput) {
    this.#input = input;
    this.#containers = input.containers.map((spec) => {
      const container: SimContainer = new SimContainer(
        spec,
        {
          clock: this.clock,
          onEffect: (lane, effect) => this.#handleEffect(container, lane, effect),
          attempted: () => void this.#attempts++,
        },
        input,
      );
      return container;
    });
  }

  run(): Timeline {
    const { endMs, kubeletRestartMs } = this.#input;
    for (const { lanes } of this.#containers) for (const lane of lanes) lane.begin(null, 0);
    this.#sync();
    if (kubeletRestartMs !== null) this.clock.at(kubeletRestartMs, () => this.#restartKubelet());
    this.clock.runUntil(endMs, () => this.#attempts >= MAX_ATTEMPTS);
    const { nowMs } = this.clock;
    return {
      endMs: nowMs,
      truncated: nowMs < endMs,
      containers: this.#containers,
      ready: this.#ready.list,
      events: [...this.#events.values()],
      quirks: [...this.#quirks.values()],
    };
  }

  /** A pass of the pod's worker: start what may start, make the status, end what failed. kubelet 1.36: syncPod. */
  #sync(): void {
    this.#isSyncDue = false;
    const { nowMs } = this.clock;
    if (nowMs < this.#busyUntilMs) {
      this.#syncSoon(this.#busyUntilMs);
      return;
    }
    this.#startFirst();
    const wasPodReady = this.#isReady;
    const status = { managerStartMs: this.#managerStartMs, wasPodReady, triggers: this.#input.statusTriggers };
    for (const container of this.#containers) updateStatus(container, status);
    this.#startFirst();
    this.#settle();
    for (const container of this.#containers) this.#endIfFailed(container);
  }
  #syncSoon(atMs = this.clock.nowMs): void {
    if (this.#isSyncDue) return;
    this.#isSyncDue = true;
    this.clock.at(atMs, () => this.#sync());
  }
  #settle(): void {
    const { nowMs } = this.clock;
    for (const container of this.#containers) container.settle(this.#isEnded, nowMs);
    this.#isReady = this.#containers.every(({ isReady }) => isReady);
    this.#ready.note(this.#isReady, nowMs);
  }
  /** Sidecars one after the other, the rest when these have started. */
  #startFirst(): void {
    for (const container of this.#containers) {
      if (container.run === undefined) this.#start(container);
      if (container.spec.sidecar && !container.isStarted && container.started.length === 0) return;
    }
  }
  #start(container: SimContainer): void {
    container.begin(this.clock.nowMs);
    this.#settle();
    this.#syncSoon();
  }

  #endIfFailed(container: SimContainer): void {
    if (container.state !== "running" || container.isStopping) return;
    if (container.storedBy("liveness") === "Failure") this.#stop(container, "liveness");
    else if (container.storedBy("startup") === "Failure") this.#stop(container, "startup");
  }
  /** kubelet 1.36: computePodActions, killContainer. */
  #stop(container: SimContainer, by: ProbeType): void {
    const { spec } = container;
    const restarts = spec.restartPolicy !== "Never";
    const what = `${spec.sidecar ? "Init container" : "Container"} ${spec.name} failed ${by} probe`;
    this.#record(container, "Normal", "Killing", restarts && !spec.sidecar ? `${what}, will be restarted` : what);
    container.isStopping = true;
    if (container.run !== undefined) container.run.endedBy = by;
    const own = spec.probes.find(({ type }) => type === by)?.timing.terminationGracePeriodSeconds;
    const graceMs = Math.max(MIN_GRACE_SECONDS, own ?? this.#input.graceSeconds) * 1000;
    const { stopMs, exitCode } = this.#input;
    const untilMs = this.clock.nowMs + Math.min(stopMs, graceMs);
    this.#busyUntilMs = Math.max(this.#busyUntilMs, untilMs);
    this.clock.at(untilMs, () => this.#ended(container, restarts, stopMs > graceMs ? KILLED : exitCode));
  }
  #ended(container: SimContainer, restarts: boolean, exitCode: number): void {
    const { nowMs } = this.clock;
    const before = container.runs.at(-2)?.endedAtMs ?? null;
    container.end(nowMs);
    container.willRestart = restarts;
    // the status at the start of this sync does not contain its end yet, so the one before counts
    const untilMs = before === null ? nowMs : container.backOff.untilMs(before, nowMs);
    if (restarts && untilMs <= nowMs) {
      if (before !== null) container.backOff.raise(before, nowMs);
      this.#start(container);
      return;
    }
    const isOver = restarts && container.spec.restartPolicy === "OnFailure" && exitCode === 0;
    if (isOver) container.willRestart = false;
    else if (restarts) this.#waitForBackOff(container, nowMs);
    this.#isEnded = this.#containers.every((c) => c.spec.sidecar || (c.state === "terminated" && !c.willRestart));
    this.#settle();
    this.#syncSoon();
  }
  #waitForBackOff(container: SimContainer, endedAtMs: number): void {
    container.state = "waiting";
    this.clock.at(container.backOff.untilMs(endedAtMs, endedAtMs), () => {
      container.backOff.raise(endedAtMs, this.clock.nowMs);
      this.#start(container);
    });
  }

  #handleEffect(
    container: SimContainer,
    lane: SimProbeWorker,
    effect: Extract<WorkerEffect, { kind: "set" | "event" | "quirk" }>,
  ): void {
    const { type } = lane;
    if (effect.kind === "event") this.#record(container, "Warning", effect.reason, effect.message);
    else if (effect.kind === "quirk") this.#noteQuirk(effect.code, container.name, type);
    else {
      // liveness matters to the pod's worker only when it fails. kubelet 1.36: syncLoopIteration
      if (type === "liveness" && effect.result !== "Failure") return;
      if (type === "startup" && container.state === "running") container.isStarted = effect.result === "Success";
      if (type === "readiness") container.isReady = effect.result === "Success";
      this.#settle();
      this.#syncSoon();
    }
  }
  #restartKubelet(): void {
    this.#managerStartMs = this.clock.nowMs;
    for (const { lanes } of this.#containers) {
      for (const lane of lanes) lane.begin(this.#managerStartMs, this.#input.jitter);
    }
    this.#syncSoon();
  }

  #record(container: SimContainer, type: ProbeNodeEvent["type"], reason: string, message: string): void {
    const { nowMs } = this.clock;
    const key = `${container.name}\n${reason}\n${message}`;
    const known = this.#events.get(key);
    if (known === undefined) {
      const firstAtMs = nowMs;
      this.#events.set(key, { type, reason, message, container: container.name, count: 1, firstAtMs, lastAtMs: nowMs });
    } else {
      known.count++;
      known.lastAtMs = nowMs;
    }
  }
  #noteQuirk(code: QuirkOccurrence["code"], container: string, type: ProbeType): void {
    const key = `${code} ${container} ${type}`;
    const known = this.#quirks.get(key);
    if (known === undefined) this.#quirks.set(key, { code, container, type, times: 1, firstAtMs: this.clock.nowMs });
    else known.times++;
  }
}

interface StatusInput {
  /** When the kubelet restarted; null: long ago. */
  readonly managerStartMs: number | null;
  /** The pod's condition Ready as it was before. */
  readonly wasPodReady: boolean;
  readonly triggers: boolean;
}

/**
 * Computes one container's status, and probes readiness out of turn if it is not ready. kubelet 1.36: manager.UpdatePodStatus.
 */
function updateStatus(container: SimContainer, input: StatusInput): void {
  container.isStarted = isStarted(container);
  if (!container.isStarted) return;
  if (container.storedBy("readiness") === "Success") {
    container.isReady = true;
    return;
  }
  const lane = container.lane("readiness");
  const hasWorker = lane?.isRunning === true;
  let isReady = !hasWorker;
  const startedAtMs = container.run?.startedAtMs ?? 0;
  const { managerStartMs, wasPodReady } = input;
  // a container that ran before the kubelet did stays as it was until it is probed
  if (managerStartMs !== null && startedAtMs < managerStartMs - RESTART_GRACE_MS) {
    isReady ||= container.storedBy("readiness") === null;
    if (lane !== undefined && !wasPodReady) isReady = false;
  }
  container.isReady = isReady;
  if (hasWorker && input.triggers) lane?.trigger();
}

/** kubelet 1.36: manager.isContainerStarted. */
function isStarted(container: SimContainer): boolean {
  if (container.state !== "running") return false;
  const stored = container.storedBy("startup");
  if (stored !== null) return stored === "Success";
  return container.isStarted || container.lane("startup")?.isRunning !== true;
}
