import { posix } from "node:path";
import type { PodActions } from "../lifecycle/actions.ts";
import { backOffEventMessage, backOffOfStarts } from "../lifecycle/back-off.ts";
import { graceOf } from "../lifecycle/ending.ts";
import { isStopped } from "../lifecycle/finished.ts";
import type { PodContainer } from "../lifecycle/pod.ts";
import { podActions } from "../lifecycle/pod-actions.ts";
import { finishedPhase } from "../lifecycle/pod-status.ts";
import type { CgroupView, PodCgroups } from "./cgroup-view.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";
import type { Synced } from "./worker.ts";

interface Work {
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** The work at pods that is under way: one piece at a time a pod, some pods at once. */
export class Workers {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #working = new Map<string, Work>();
  /** Until when a pod is left alone whose last turn of work failed. */
  readonly #heldUntil = new Map<string, number>();
  #view: CgroupView | null = null;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
  }

  /** Pods at which nobody works now: only of those is a later look at the runtime the whole truth. */
  idle(): (uid: string) => boolean {
    const busy = new Set(this.#working.keys());
    return (uid) => !busy.has(uid);
  }

  /** Gives every pod that needs it its next piece of work. */
  putToWork(untouched: (uid: string) => boolean, view: CgroupView | null): void {
    this.#view = view;
    for (const known of this.#set.living()) {
      if (!untouched(known.uid) || this.#working.has(known.uid)) continue;
      if (known.record.state === "ends") this.#endOne(known);
      else this.#actOn(known);
      if (this.#working.size >= this.#settings.mostAtOnce) return;
    }
  }

  /** Work at a pod ends at its next step: something else is to be done with it. */
  interrupt(uid: string): void {
    this.#working.get(uid)?.stop.abort();
  }
  stop(): void {
    for (const { stop } of this.#working.values()) stop.abort();
  }
  async rest(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(Array.from(this.#working.values(), ({ done }) => done));
  }

  /** Takes away what is left of a pod that is over, and then its record. */
  forget(uid: string, then: () => void): void {
    const known = this.#set.get(uid);
    const seen = this.#set.seen?.get(uid) ?? null;
    if (known === null || (seen === null && known.record.admittedAtMs === null)) {
      this.#deleteRecord(uid, then);
      return;
    }
    this.#begin(uid, async (signal) => {
      const forgotten = await this.#ports.worker.forget(known.pod, seen, signal);
      if (forgotten.isGone) this.#deleteRecord(uid, then);
      for (const { path, why } of forgotten.leftOvers) {
        this.#ports.onProblem({
          from: "pods",
          message: `${known.pod.namespace}/${known.pod.name} leaves ${path}: ${why}`,
        });
      }
    });
  }

  /** Something of the daemon's own that nobody knows any more: it is ended with the grace that the runtime was told. */
  endOrphan(uid: string): void {
    const seen = this.#set.seen?.get(uid);
    if (seen === undefined) return;
    this.#begin(uid, async (signal) => {
      if (isStopped(seen)) await this.#ports.worker.forget(seen, seen, signal);
      else await this.#ports.worker.end({ pod: null, seen, graceSeconds: ORPHAN_GRACE_SECONDS, signal });
    });
  }

  #actOn(known: KnownPod): void {
    const { uid, pod, record, seen } = known;
    const view = this.#view;
    const place = view?.pods.get(uid);
    const nowMs = this.#ports.clock.nowMs();
    const heldMs = (this.#heldUntil.get(uid) ?? 0) - nowMs;
    if (heldMs > 0 && heldMs <= HELD_MS) return;
    // what has come to its end by itself is not begun again because a dead container is gone
    if (finishedPhase(pod, seen, this.#set.statusOf(known, nowMs)) !== null) {
      this.#endOne(known);
      return;
    }
    const hashOf = (container: PodContainer) => this.#ports.hashOf(pod, container);
    const actions = podActions(pod, seen, { nowMs, backOff: record.backOff, hashOf });
    this.#noteHeldBack(known, actions);
    if (!hasWork(actions)) return;
    const fault = faultOf(view, place);
    const starts = [...actions.initToStart, ...actions.toStart].map(({ name }) => name);
    if (fault !== null && (actions.createSandbox || starts.length > 0)) {
      this.#set.noteWork(uid, {
        errors: Object.fromEntries(starts.map((n) => [n, { reason: WAITS, message: fault }])),
      });
      return;
    }
    const backOff = backOffOfStarts(pod, seen, starts, { nowMs, backOff: record.backOff, hashOf });
    if (starts.length > 0) this.#set.records.put(uid, { ...record, backOff });
    this.#begin(uid, async (signal) => {
      const valuesOf = (name: string) => this.#view?.pods.get(uid)?.values.get(name) ?? null;
      const synced = await this.#ports.worker.sync({ pod, seen, actions, valuesOf, signal });
      this.#noteSynced(uid, starts, synced);
    });
  }

  /** A fault stands until its container has started. kubelet 1.36: podWorkers leave a pod alone after a failed sync. */
  #noteSynced(uid: string, starts: readonly string[], { faults, error, started, isCut }: Synced): void {
    const stand = Object.entries(this.#set.worked(uid).errors).filter(([name]) => !started.includes(name));
    const errors = { ...Object.fromEntries(stand), ...wholePodErrors(starts, error, faults), ...faults };
    this.#set.noteWork(uid, { errors });
    if (isCut || (error === null && Object.keys(faults).length === 0)) this.#heldUntil.delete(uid);
    else this.#heldUntil.set(uid, this.#ports.clock.nowMs() + HELD_MS);
  }

  #endOne(known: KnownPod): void {
    const { uid, pod, record, seen } = known;
    if (seen === null || isStopped(seen)) return;
    const graceSeconds = graceOf(pod, record.end);
    this.#begin(uid, async (signal) => {
      const { error } = await this.#ports.worker.end({ pod, seen, graceSeconds, signal });
      if (error !== null) this.#ports.onProblem({ from: "runtime", message: error });
    });
  }

  /** The kubelet says it at each of its looks; here once an instance. */
  #noteHeldBack({ uid, pod }: KnownPod, { heldBack }: PodActions): void {
    const before = new Set(this.#set.worked(uid).heldBack.map(({ name, untilMs }) => `${name} ${untilMs}`));
    const events = new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
    for (const { name, untilMs } of heldBack) {
      if (!before.has(`${name} ${untilMs}`)) events.warning("BackOff", backOffEventMessage(pod, name), name);
    }
    this.#set.noteWork(uid, { heldBack });
  }

  #begin(uid: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#working.has(uid)) return;
    const stop = new AbortController();
    const done = work(stop.signal)
      .catch((e: unknown) => this.#ports.onProblem({ from: "pods", message: `unexpected: ${(e as Error).message}` }))
      .finally(() => {
        this.#working.delete(uid);
        this.#ports.onWorked();
      });
    this.#working.set(uid, { stop, done });
  }

  #deleteRecord(uid: string, then: () => void): void {
    const deleted = this.#set.records.delete(uid);
    if (!deleted.ok) {
      this.#ports.onProblem({ from: "pods", message: deleted.error });
      return;
    }
    this.#set.forget(uid);
    then();
  }
}

/** Of a container that waits for its cgroups. */
const WAITS = "CreateContainerConfigError";
const HELD_MS = 10_000;
const ORPHAN_GRACE_SECONDS = 30;

const hasWork = (actions: PodActions): boolean =>
  actions.killPod ||
  actions.createSandbox ||
  actions.initToStart.length + actions.toStart.length + actions.toKill.length + actions.toRemove.length > 0;

/** Why nothing may start in a pod's cgroups; null: they are as decided. */
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

/** As the runtime takes it: absolute, or the slice's name of the systemd driver. */
export const cgroupParentOf = (view: CgroupView, uid: string, root: string): string => {
  const path = view.pods.get(uid)?.path ?? "";
  return view.driver === "systemd" ? posix.basename(path) : posix.join(root, path);
};
