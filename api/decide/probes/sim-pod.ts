import type { ProbeType } from "../../model/probe.ts";
import type { ProbeNodeEvent } from "../../model/probes-decision.ts";
import { LEAST_GRACE_SECONDS } from "./reach.ts";
import { SimClock } from "./sim-clock.ts";
import { SimContainer, Spans } from "./sim-container.ts";
import type { Lane } from "./sim-lane.ts";
import { updateStatus } from "./sim-status.ts";
import type { QuirkMet, Timeline, TimelineInput } from "./timeline-input.ts";
import type { WorkerEffect } from "./worker-state.ts";

const MOST_ATTEMPTS = 20_000;
const KILLED = 137;

/** One pod of the dry run: starts, ends and restarts its containers as the results of their probes say. */
export class SimPod {
  readonly clock = new SimClock();
  readonly #input: TimelineInput;
  readonly #containers: readonly SimContainer[];
  readonly #ready = new Spans();
  readonly #events = new Map<string, { -readonly [K in keyof ProbeNodeEvent]: ProbeNodeEvent[K] }>();
  readonly #quirks = new Map<string, QuirkMet>();
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
          told: (lane, effect) => this.#told(container, lane, effect),
          attempted: () => void this.#attempts++,
        },
        input.strict,
      );
      return container;
    });
  }

  run(): Timeline {
    const { endMs, kubeletRestartMs } = this.#input;
    for (const { lanes } of this.#containers) for (const lane of lanes) lane.begin(null, 0);
    this.#sync();
    if (kubeletRestartMs !== null) this.clock.at(kubeletRestartMs, () => this.#restartKubelet());
    this.clock.runUntil(endMs, () => this.#attempts >= MOST_ATTEMPTS);
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
    const graceMs = Math.max(LEAST_GRACE_SECONDS, own ?? this.#input.graceSeconds) * 1000;
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
    // its end is not in the status that this pass of the pod's worker began with: the one before it counts
    const untilMs = before === null || !this.#input.backOff ? nowMs : container.backOff.untilMs(before, nowMs);
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

  #told(container: SimContainer, lane: Lane, effect: Extract<WorkerEffect, { kind: "set" | "event" | "quirk" }>): void {
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
  #noteQuirk(code: QuirkMet["code"], container: string, type: ProbeType): void {
    const key = `${code} ${container} ${type}`;
    const known = this.#quirks.get(key);
    if (known === undefined) this.#quirks.set(key, { code, container, type, times: 1, firstAtMs: this.clock.nowMs });
    else known.times++;
  }
}
