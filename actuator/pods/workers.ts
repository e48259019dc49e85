import { posix } from "node:path";
import type { PodActions } from "../lifecycle/actions.ts";
import { backOffEventMessage, backOffOfStarts } from "../lifecycle/back-off.ts";
import { graceOf } from "../lifecycle/ending.ts";
import { isStopped } from "../lifecycle/finished.ts";
import type { PodContainer } from "../lifecycle/pod.ts";
import { podActions } from "../lifecycle/pod-actions.ts";
import { finishedPhase } from "../lifecycle/pod-status.ts";
import { resizeRestarts } from "../lifecycle/resize-restarts.ts";
import type { PodStatus } from "../lifecycle/status/status.ts";
import type { CgroupView } from "./cgroup-view.ts";
import { DeviceWaits } from "./device-waits.ts";
import { UNDER_WAY } from "./devices/calls.ts";
import type { DeviceFault } from "./devices/port.ts";
import { Errands } from "./errands.ts";
import { Holds } from "./holds.ts";
import { Leavers } from "./leavers.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { PodEvents } from "./pod-events.ts";
import { NOT_PROBED } from "./pod-probes.ts";
import type { KnownPod, PodSet, Worked } from "./pod-set.ts";
import { faultOf, hasWork, wholePodErrors } from "./work.ts";
import type { Synced } from "./worker.ts";

/** With a pod's record: all that tells what it needs, while it needs nothing that time alone brings. */
interface Quiet extends Pick<KnownPod, "seen"> {
  readonly worked: Worked;
  readonly probed: number;
  readonly status: PodStatus;
}
const isSame = (quiet: Quiet | undefined, { seen, worked, probed, status }: Quiet): boolean =>
  quiet?.seen === seen && quiet.worked === worked && quiet.probed === probed && quiet.status === status;

/** The work at pods that is under way: one piece at a time a pod, some pods at once. */
export class Workers {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #errands: Errands;
  readonly leavers: Leavers;
  readonly #holds: Holds;
  readonly #deviceWaits: DeviceWaits;
  /** By the record of a pod that needed nothing: what that was seen in. */
  readonly #quiet = new WeakMap<object, Quiet>();
  #view: CgroupView | null = null;
  /** A container that a resize has stopped may start: its cgroups are ready. */
  mayRestart: (known: KnownPod) => boolean = () => true;
  /** A pod of which nothing runs did not get its devices. */
  onRefused: (uid: string, refusal: DeviceFault) => void = () => {};

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.#errands = new Errands(ports);
    this.#holds = new Holds(ports);
    this.#deviceWaits = new DeviceWaits(ports, set);
    this.leavers = new Leavers(ports, set, this.#errands);
  }

  idle(): (uid: string) => boolean {
    return this.#errands.idle();
  }

  /** Gives every pod that needs it its next piece of work. */
  putToWork(untouched: (uid: string) => boolean, view: CgroupView | null): void {
    this.#view = view;
    this.#deviceWaits.noteSlowCalls();
    this.leavers.clearEnded(untouched, this.#settings.mostAtOnce);
    for (const known of this.#set.living()) {
      if (!untouched(known.uid) || this.#errands.has(known.uid)) continue;
      if (known.record.state === "ends") this.#endOne(known);
      else this.#actOn(known);
      if (this.#errands.size >= this.#settings.mostAtOnce) return;
    }
  }

  interrupt(uid: string): void {
    this.#errands.interrupt(uid);
  }
  stop(): void {
    this.#errands.stop();
  }
  rest(): Promise<void> {
    return this.#errands.rest();
  }

  #actOn(known: KnownPod): void {
    const { uid, pod, record, seen } = known;
    const view = this.#view;
    const place = view?.pods.get(uid);
    const nowMs = this.#ports.clock.nowMs();
    if (this.#holds.isHeld(uid)) return;
    // what has come to its end by itself is not begun again because a dead container is gone
    const { resultOf, versionOf } = this.#ports.probes ?? NOT_PROBED;
    const probed = versionOf(uid);
    const now: Quiet = { seen, worked: this.#set.worked(uid), probed, status: this.#set.statusOf(known, nowMs) };
    if (isSame(this.#quiet.get(record), now)) return;
    this.#quiet.delete(record);
    const resized = resizeRestarts(record, seen);
    if (resized.size === 0 && finishedPhase(pod, seen, now.status) !== null) {
      this.#endOne(known);
      return;
    }
    const hashOf = (container: PodContainer) => this.#ports.hashOf(pod, container);
    const backOffs = { nowMs, backOff: record.backOff, hashOf };
    const wanted = podActions(pod, seen, { ...backOffs, resizeRestarts: resized, stoppedForResize: resized, resultOf });
    const actions = resized.size === 0 ? wanted : this.#withoutEarlyStarts(known, wanted, resized);
    this.#noteHeldBack(known, actions);
    if (!hasWork(actions)) {
      // a back-off ends by itself
      if (actions.heldBack.length === 0 && resized.size === 0) this.#quiet.set(record, now);
      return;
    }
    const fault = faultOf(view, place);
    const starts = [...actions.initToStart, ...actions.toStart].map(({ name }) => name);
    const failed = starts.filter((name) => !resized.has(name));
    if (fault !== null && (actions.createSandbox || starts.length > 0)) {
      this.#set.noteWork(uid, {
        errors: Object.fromEntries(starts.map((n) => [n, { reason: WAITS, message: fault }])),
      });
      return;
    }
    const backOff = backOffOfStarts(pod, seen, failed, backOffs);
    if (starts.length > 0) this.#set.records.put(uid, { ...record, backOff });
    this.#deviceWaits.begin(uid, starts);
    this.#errands.begin(uid, async (signal) => {
      const valuesOf = (name: string) => this.#view?.pods.get(uid)?.values.get(name) ?? null;
      const synced = await this.#ports.worker.sync({ pod, seen, actions, valuesOf, signal });
      if (synced.refusal !== null && (seen === null || isStopped(seen))) this.onRefused(uid, synced.refusal);
      else this.#noteSynced(uid, starts, synced);
      this.#deviceWaits.end(uid, record.backOff, synced.faults);
      const isAgain = (name: string): boolean => seen?.containers.some((one) => one.name === name) === true;
      this.#ports.counters?.restarted(synced.started.filter(isAgain).length);
      // what is over and stopped already is not brought further by being stopped once more
      const isVain = actions.killPod && !actions.createSandbox && isStopped(seen);
      return synced.undecided.length === 0 && !isVain;
    });
  }

  /** What a resize stops is started once its cgroups are as they are to be, and never in the turn that stops it. */
  #withoutEarlyStarts(known: KnownPod, actions: PodActions, resized: ReadonlySet<string>): PodActions {
    const isStopped = !actions.toKill.some(({ name }) => resized.has(name));
    if (isStopped && this.mayRestart(known)) return actions;
    const isFree = ({ name }: { readonly name: string }): boolean => !resized.has(name);
    return {
      ...actions,
      initToStart: actions.initToStart.filter(isFree),
      toStart: actions.toStart.filter(isFree),
    };
  }

  /** A fault stands until its container has started. kubelet 1.36: podWorkers leave a pod alone after a failed sync. */
  #noteSynced(uid: string, starts: readonly string[], { faults, error, started, isCut }: Synced): void {
    const stand = Object.entries(this.#set.worked(uid).errors).filter(
      ([name, { reason }]) => !started.includes(name) && !UNDER_WAY.has(reason),
    );
    const errors = { ...Object.fromEntries(stand), ...wholePodErrors(starts, error, faults), ...faults };
    this.#set.noteWork(uid, { errors });
    if (isCut || (error === null && Object.keys(faults).length === 0)) this.#holds.free(uid);
    else
      this.#holds.note(
        uid,
        Object.values(faults).map(({ reason }) => reason),
      );
  }

  #endOne(known: KnownPod): void {
    const { uid, pod, record, seen } = known;
    if (seen === null || isStopped(seen)) return;
    const graceSeconds = graceOf(pod, record.end);
    this.#errands.begin(uid, async (signal) => {
      const { error } = await this.#ports.worker.end({ pod, seen, graceSeconds, signal });
      if (error !== null) this.#ports.onProblem({ from: "runtime", message: error });
      return error === null;
    });
  }

  /** The kubelet says it at each of its looks; here once an instance. */
  #noteHeldBack({ uid, pod }: KnownPod, { heldBack }: PodActions): void {
    const { heldBack: known } = this.#set.worked(uid);
    if (known.length === 0 && heldBack.length === 0) return;
    const before = new Set(known.map(({ name, untilMs }) => `${name} ${untilMs}`));
    const events = new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
    for (const { name, untilMs } of heldBack) {
      if (!before.has(`${name} ${untilMs}`)) events.warning("BackOff", backOffEventMessage(pod, name), name);
    }
    this.#set.noteWork(uid, { heldBack });
  }
}

/** Of a container that waits for its cgroups. */
const WAITS = "CreateContainerConfigError";

/** As the runtime takes it: absolute, or the slice's name of the systemd driver. */
export const cgroupParentOf = (view: CgroupView, uid: string, root: string): string => {
  const path = view.pods.get(uid)?.path ?? "";
  return view.driver === "systemd" ? posix.basename(path) : posix.join(root, path);
};
