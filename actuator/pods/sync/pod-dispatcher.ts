import type { BackOff, BackOffLimits } from "../../../api/decide/probes/back-off.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { PodActions } from "../../lifecycle/actions.ts";
import { backOffEventMessage, backOffOfStarts } from "../../lifecycle/back-off.ts";
import { effectiveGracePeriod } from "../../lifecycle/container-termination.ts";
import { afterForeign, FOREIGN_SANDBOX } from "../../lifecycle/foreign-sandbox.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import { podActions } from "../../lifecycle/pod-actions.ts";
import { isStopped } from "../../lifecycle/pod-state.ts";
import { finishedPhase, resizeRestarts } from "../../lifecycle/pod-status.ts";
import type { StartError } from "../../lifecycle/status/containers.ts";
import type { PodStatus } from "../../lifecycle/status/status.ts";
import type { Counters } from "../../status/counters.ts";
import { OTHER_KUBELET } from "../admission/admission-queue.ts";
import type { ForeignSandboxes } from "../admission/foreign-sandboxes.ts";
import type { OtherKubelet } from "../admission/other-kubelet.ts";
import type { PodAdmitter } from "../admission/pod-admitter.ts";
import type { CgroupView, PodCgroups } from "../cgroups/cgroup-view.ts";
import { CALL_REASONS } from "../devices/device-allocator.ts";
import { type NodeClaimsPort, PREPARING_CLAIMS, UNPREPARING_CLAIMS } from "../devices/pod-claims.ts";
import { CHECKPOINT_NOT_WRITTEN, type NodeDevices, REALLOCATING, WAITING_FOR_PLUGIN } from "../devices/port.ts";
import type { PodClock } from "../pod-clock.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import { type KnownPod, NOT_PROBED, type PodProbes, type PodSet, type SyncOutcome } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";
import type { ResizeActuator } from "../resize/actuator.ts";
import type { ContainerFault } from "./images.ts";
import type { PodCleanup } from "./pod-cleanup.ts";
import type { PodWorkQueue } from "./pod-work-queue.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { SyncPodResult } from "./worker-deps.ts";

interface Deps {
  readonly clock: PodClock;
  readonly eventsOf: PodEventRecorder;
  readonly onProblem: (problem: Problem) => void;
  readonly counters?: Pick<Counters, "restarted">;
  readonly worker: Pick<PodWorker, "sync" | "link" | "pruneLinks" | "end">;
  readonly hashOf: (pod: RunnablePod, container: PodContainer) => string;
  /** Absent: no container is probed. */
  readonly probes?: Pick<PodProbes, "resultOf" | "versionOf">;
  readonly devices?: Pick<NodeDevices, "version" | "slowCalls">;
  readonly claims?: Pick<NodeClaimsPort, "version" | "drivers">;
  readonly otherKubelet?: Pick<OtherKubelet, "view">;
}
interface Parts {
  readonly set: PodSet;
  readonly lifecycle: PodLifecycle;
  readonly queue: PodWorkQueue;
  readonly cleanup: PodCleanup;
  readonly admitter: PodAdmitter;
  readonly foreign: ForeignSandboxes;
  readonly resizes: ResizeActuator;
}
interface Settings {
  readonly owner: string;
  readonly backOff: BackOffLimits;
  /** The number of pods that are worked on at the same time. */
  readonly maxAtOnce: number;
}

/** The change that ends a pod's back-off early: of any plugin or driver or its answers; of the DRA drivers; none. */
type BackoffTrigger = "answers" | "drivers" | "nothing";
interface PodBackoff {
  readonly untilMs: number;
  readonly awaits: BackoffTrigger;
  /** The versions of what the pod waits for, when its back-off began. */
  readonly seen: string;
}
const BACK_OFF_PERIOD_MS = 10_000;
/**
 * Reasons of containers that wait for a plugin, for a decision about them, or for disk space. The containers have not failed.
 */
const AWAITED: ReadonlySet<string> = new Set([
  WAITING_FOR_PLUGIN,
  REALLOCATING,
  CHECKPOINT_NOT_WRITTEN,
  PREPARING_CLAIMS,
  UNPREPARING_CLAIMS,
]);

/** Pods that are left alone for a while after a failed sync. kubelet 1.36: podWorkers, backOffPeriod. */
class SyncBackoff {
  readonly #deps: Pick<Deps, "clock" | "devices" | "claims">;
  readonly #backoffs = new Map<string, PodBackoff>();

  constructor(deps: Pick<Deps, "clock" | "devices" | "claims">) {
    this.#deps = deps;
  }

  update(uid: string, { faults, isUnprepared }: SyncPodResult): void {
    const waits = Object.values(faults).some(({ reason }) => AWAITED.has(reason));
    const awaits = waits ? "answers" : isUnprepared ? "drivers" : "nothing";
    const untilMs = this.#deps.clock.nowMs() + BACK_OFF_PERIOD_MS;
    this.#backoffs.set(uid, { untilMs, awaits, seen: this.#versions(awaits) });
  }
  free(uid: string): void {
    this.#backoffs.delete(uid);
  }

  /** False as well once what the pod waits for has changed, or if the clock was set back. */
  isHeld(uid: string): boolean {
    const held = this.#backoffs.get(uid);
    if (held === undefined) return false;
    const leftMs = held.untilMs - this.#deps.clock.nowMs();
    return leftMs > 0 && leftMs <= BACK_OFF_PERIOD_MS && held.seen === this.#versions(held.awaits);
  }
  #versions(awaits: BackoffTrigger): string {
    const { devices, claims } = this.#deps;
    if (awaits === "nothing") return "";
    return awaits === "drivers" ? `${claims?.drivers}` : `${devices?.version} ${claims?.version}`;
  }
}

/** Tracks pods whose work waits for device plugins. */
class DeviceWaits {
  readonly #deps: Pick<Deps, "devices">;
  readonly #parts: Pick<Parts, "set" | "lifecycle">;
  /** The containers that each running sync is to start. */
  readonly #starts = new Map<string, readonly string[]>();

  constructor(deps: Pick<Deps, "devices">, parts: Pick<Parts, "set" | "lifecycle">) {
    this.#deps = deps;
    this.#parts = parts;
  }

  begin(uid: string, starts: readonly string[]): void {
    this.#starts.set(uid, starts);
  }

  /** A container that waits for its plugin has not failed: its back-off is reset to `before`. */
  end(
    uid: string,
    before: Readonly<Record<string, BackOff>>,
    faults: Readonly<Record<string, Pick<ContainerFault, "reason">>>,
  ): void {
    this.#starts.delete(uid);
    const names = Object.entries(faults).flatMap(([name, { reason }]) => (AWAITED.has(reason) ? [name] : []));
    const record = this.#parts.set.records.get(uid);
    if (record === undefined || names.every((name) => record.backOff[name] === before[name])) return;
    const others = Object.entries(record.backOff).filter(([name]) => !names.includes(name));
    const former = Object.entries(before).filter(([name]) => names.includes(name));
    const backOff = Object.fromEntries([...others, ...former]);
    this.#parts.lifecycle.handle(uid, { kind: "BackOffUpdated", backOff });
  }

  /** Reports the containers that a plugin keeps waiting. */
  updateSlowCalls(): void {
    for (const [uid, fault] of this.#deps.devices?.slowCalls() ?? []) {
      const starts = this.#starts.get(uid) ?? [];
      const { errors } = this.#parts.set.syncOutcome(uid);
      if (starts.every((name) => errors[name]?.message === fault.message)) continue;
      this.#parts.set.updateSyncOutcome(uid, {
        errors: { ...errors, ...Object.fromEntries(starts.map((name) => [name, fault])) },
      });
    }
  }
}

/** Time between two checks that containers' logs are linked. */
const LINKS_MS = 10_000;

/** Everything that decides what a pod needs, when it last needed nothing and time alone changes nothing. */
interface Unchanged extends Pick<KnownPod, "runtimePod"> {
  readonly synced: SyncOutcome;
  readonly probed: number;
  readonly status: PodStatus;
}
const isSame = (quiet: Unchanged | undefined, { runtimePod, synced, probed, status }: Unchanged): boolean =>
  quiet?.runtimePod === runtimePod && quiet.synced === synced && quiet.probed === probed && quiet.status === status;

/** Dispatches the work on pods: one piece at a time per pod, several pods at once. */
export class PodDispatcher {
  readonly #deps: Deps;
  readonly #settings: Settings;
  readonly #parts: Parts;
  readonly #backOff: SyncBackoff;
  readonly #deviceWaits: DeviceWaits;
  /** The state in which a pod needed nothing, by the pod's record. */
  readonly #unchanged = new WeakMap<object, Unchanged>();
  #view: CgroupView | null = null;
  #linkedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: Deps, settings: Settings, parts: Parts) {
    this.#deps = deps;
    this.#settings = settings;
    this.#parts = parts;
    this.#backOff = new SyncBackoff(deps);
    this.#deviceWaits = new DeviceWaits(deps, parts);
  }

  /** Starts the next piece of work for every pod that needs one. */
  putToWork(untouched: (uid: string) => boolean, view: CgroupView | null): void {
    this.#view = view;
    this.#linkLogs(untouched);
    this.#deviceWaits.updateSlowCalls();
    this.#parts.cleanup.clearEnded(untouched, this.#settings.maxAtOnce);
    for (const known of this.#parts.set.living()) {
      if (!untouched(known.uid) || this.#parts.queue.has(known.uid)) continue;
      if (known.record.state === "terminating") this.#endOne(known);
      else this.#actOn(known);
      if (this.#parts.queue.size >= this.#settings.maxAtOnce) return;
    }
  }

  /** Skips pods that are being worked on, whose containers may be about to be removed. */
  #linkLogs(untouched: (uid: string) => boolean): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#linkedAtMs < LINKS_MS) return;
    this.#linkedAtMs = nowMs;
    for (const { uid, pod, runtimePod } of this.#parts.set.living())
      if (runtimePod !== null && untouched(uid) && !this.#parts.queue.has(uid)) this.#deps.worker.link(pod, runtimePod);
    const { allRuntimePods: held } = this.#parts.set;
    if (held === null) return;
    const atRest = [...this.#parts.set.all()].filter(
      ({ uid, record }) => record.state !== "pending" && untouched(uid) && !this.#parts.queue.has(uid),
    );
    this.#deps.worker.pruneLinks(
      atRest.map(({ pod }) => pod),
      held,
    );
  }

  #actOn(known: KnownPod): void {
    const { uid, pod, record, runtimePod } = known;
    const view = this.#view;
    const place = view?.pods.get(uid);
    const nowMs = this.#deps.clock.nowMs();
    if (this.#backOff.isHeld(uid)) return;
    // a pod that has ended by itself is not restarted because a dead container was removed
    const { resultOf, versionOf } = this.#deps.probes ?? NOT_PROBED;
    const probed = versionOf(uid);
    const now: Unchanged = {
      runtimePod,
      synced: this.#parts.set.syncOutcome(uid),
      probed,
      status: this.#parts.set.statusOf(known, nowMs),
    };
    if (isSame(this.#unchanged.get(record), now)) return;
    this.#unchanged.delete(record);
    const resized = resizeRestarts(record, runtimePod);
    if (resized.size === 0 && finishedPhase(pod, runtimePod, now.status) !== null) {
      this.#endOne(known);
      return;
    }
    const hashOf = (container: PodContainer) => this.#deps.hashOf(pod, container);
    const backOffs = { nowMs, backOff: record.backOff, limits: this.#settings.backOff, hashOf };
    const computed = podActions(pod, runtimePod, {
      ...backOffs,
      resizeRestarts: resized,
      stoppedForResize: resized,
      resultOf,
    });
    const due = resized.size === 0 ? computed : this.#withoutEarlyStarts(known, computed, resized);
    const actions = afterForeign(due, this.#parts.set.allRuntimePods?.get(uid), this.#settings.owner);
    this.#updateBackOff(known, actions);
    if (!hasWork(actions)) {
      // a back-off ends by the passing of time
      if (actions.heldBack.length === 0 && resized.size === 0) this.#unchanged.set(record, now);
      return;
    }
    const fault = this.#whyNoStart(uid, view, place, actions.createSandbox);
    const starts = [...actions.initToStart, ...actions.toStart].map(({ name }) => name);
    const failed = starts.filter((name) => !resized.has(name));
    if (fault !== null && (actions.createSandbox || starts.length > 0)) {
      this.#parts.set.updateSyncOutcome(uid, {
        errors: Object.fromEntries(starts.map((n) => [n, fault])),
      });
      return;
    }
    const backOff = backOffOfStarts(pod, runtimePod, failed, backOffs);
    if (starts.length > 0) this.#parts.lifecycle.handle(uid, { kind: "BackOffUpdated", backOff });
    this.#deviceWaits.begin(uid, starts);
    this.#parts.queue.begin(uid, async (signal) => {
      const valuesOf = (name: string) => this.#view?.pods.get(uid)?.values.get(name) ?? null;
      const synced = await this.#deps.worker.sync({ pod, runtimePod, actions, valuesOf, signal });
      if (synced.refusal !== null && (runtimePod === null || isStopped(runtimePod)))
        this.#parts.admitter.allocationFailed(uid, synced.refusal);
      else this.#updateFaults(uid, starts, synced);
      this.#deviceWaits.end(uid, record.backOff, synced.faults);
      const isAgain = (name: string): boolean => runtimePod?.containers.some((one) => one.name === name) === true;
      this.#deps.counters?.restarted(synced.started.filter(isAgain).length);
      // stopping a pod that is over and stopped already makes no progress
      const isVain = actions.killPod && !actions.createSandbox && isStopped(runtimePod);
      return synced.undecided.length === 0 && !isVain;
    });
  }

  /**
   * Null: the start may go ahead. Containers in an existing sandbox run on and are restarted; a new sandbox would be ended by
   * another kubelet at once, again and again.
   */
  #whyNoStart(
    uid: string,
    view: CgroupView | null,
    place: PodCgroups | undefined,
    isNewSandbox: boolean,
  ): StartError | null {
    const held = this.#parts.foreign.whyHeld(uid);
    if (held !== null) return { reason: FOREIGN_SANDBOX, message: held };
    const fault = faultOf(view, place);
    if (fault !== null) return { reason: WAITS, message: fault };
    const other = isNewSandbox ? this.#deps.otherKubelet?.view : null;
    return other ? { reason: OTHER_KUBELET, message: other.brief } : null;
  }

  /**
   * Leaves out starts that are too early: a container that a resize stops is started once its cgroups have their new values,
   * and never in the sync that stops it.
   */
  #withoutEarlyStarts(known: KnownPod, actions: PodActions, resized: ReadonlySet<string>): PodActions {
    const isStopped = !actions.toKill.some(({ name }) => resized.has(name));
    if (isStopped && this.#parts.resizes.mayRestart(known)) return actions;
    const isFree = ({ name }: { readonly name: string }): boolean => !resized.has(name);
    return {
      ...actions,
      initToStart: actions.initToStart.filter(isFree),
      toStart: actions.toStart.filter(isFree),
    };
  }

  /** A fault remains until its container has started. kubelet 1.36: podWorkers leave a pod alone after a failed sync. */
  #updateFaults(uid: string, starts: readonly string[], synced: SyncPodResult): void {
    const { faults, error, started, isCut } = synced;
    const stand = Object.entries(this.#parts.set.syncOutcome(uid).errors).filter(
      ([name, { reason }]) => !started.includes(name) && !CALL_REASONS.has(reason),
    );
    const errors = { ...Object.fromEntries(stand), ...wholePodErrors(starts, error, faults), ...faults };
    this.#parts.set.updateSyncOutcome(uid, { errors });
    if (isCut || (error === null && Object.keys(faults).length === 0)) this.#backOff.free(uid);
    else this.#backOff.update(uid, synced);
  }

  #endOne(known: KnownPod): void {
    const { uid, pod, record, runtimePod } = known;
    if (runtimePod === null || isStopped(runtimePod)) return;
    const graceSeconds = effectiveGracePeriod(pod, record.end);
    this.#parts.queue.begin(uid, async (signal) => {
      const { error } = await this.#deps.worker.end({ pod, runtimePod, graceSeconds, signal });
      if (error !== null) this.#deps.onProblem({ from: "runtime", message: error });
      return error === null;
    });
  }

  /** Emits one BackOff event for each back-off of a container; the kubelet emits one at each sync. */
  #updateBackOff({ uid, pod }: KnownPod, { heldBack }: PodActions): void {
    const { heldBack: known } = this.#parts.set.syncOutcome(uid);
    if (known.length === 0 && heldBack.length === 0) return;
    const before = new Set(known.map(({ name, untilMs }) => `${name} ${untilMs}`));
    const events = this.#deps.eventsOf(pod);
    for (const { name, untilMs } of heldBack) {
      if (!before.has(`${name} ${untilMs}`)) events.warning("BackOff", backOffEventMessage(pod, name), name);
    }
    this.#parts.set.updateSyncOutcome(uid, { heldBack });
  }
}

/** The reason of a container that waits for its cgroups. */
const WAITS = "CreateContainerConfigError";

const hasWork = (actions: PodActions): boolean =>
  actions.killPod ||
  actions.createSandbox ||
  actions.initToStart.length + actions.toStart.length + actions.toKill.length + actions.toRemove.length > 0;

/** Why nothing may start in a pod's cgroups; null: the cgroups are as decided. */
function faultOf(view: CgroupView | null, place: PodCgroups | undefined): string | null {
  if (view === null || place === undefined) return "the pod's cgroups are not decided yet";
  return place.fault ?? view.cpusetFault;
}

function wholePodErrors(
  starts: readonly string[],
  error: string | null,
  faults: Readonly<Record<string, unknown>>,
): Readonly<Record<string, { readonly reason: string; readonly message: string }>> {
  if (error === null) return {};
  return Object.fromEntries(
    starts.filter((name) => !(name in faults)).map((name) => [name, { reason: "ContainerCreating", message: error }]),
  );
}
