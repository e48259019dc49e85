import { ok, type Result } from "../../../api/base/result.ts";
import type { PreferredAllocationRequest } from "../../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../../api/model/devices.ts";
import type { DecisionAnswer, DecisionClient, Problem } from "../../core/interfaces.ts";
import { FOREIGN_SANDBOX } from "../../lifecycle/foreign-sandbox.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { DEVICE_CHECKPOINT } from "../devices/checkpoint-entries.ts";
import { deviceRequirements } from "../devices/device-requirements.ts";
import type { ManagerFiles } from "../devices/manager-files.ts";
import type { DeviceFault, NodeDevices } from "../devices/port.ts";
import type { PodClock } from "../pod-clock.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";
import type { AdmissionBackoff, CapacityGeneration } from "./admission-backoff.ts";
import {
  type Admitted,
  admit,
  FORMER_VERSION,
  formerVersionOf,
  inAdmissionOrder,
  OTHER_KUBELET,
  preemptPods,
  WAITS_FOR_VICTIMS,
} from "./admission-queue.ts";
import { DeviceReallocator, persistNext } from "./device-reallocator.ts";
import { DEVICES_HELD, type ForeignSandboxes, type KubeletDevices, whyDevicesHeld } from "./foreign-sandboxes.ts";
import type { HostPorts } from "./host-ports.ts";
import type { NodeSnapshotter } from "./node-snapshotter.ts";
import type { OtherKubelet } from "./other-kubelet.ts";

/** The reason of a pod whose plugins are being asked for their preferred devices. */
const ASKS_PLUGIN = "AskingDevicePlugin";
/** The fault of a pod whose plugins are being asked for their preferred devices. */
const asksPlugins = (resources: readonly string[]): DeviceFault => ({
  reason: ASKS_PLUGIN,
  message: `waits for the device plugin of ${resources.join(", ")} to answer GetPreferredAllocation`,
});
const asksForEarlier = (resource: string): DeviceFault => ({
  reason: "WaitingForEarlierPod",
  message: `waits until the device plugin of ${resource} has answered GetPreferredAllocation for a pod that came before`,
});
const notServed = (resource: string): DeviceFault & { readonly isReported: boolean } => ({
  reason: "DevicePluginsOff",
  message: `${resource}: device plugins are not served by this daemon: set \`devicePlugins: serve\`, or remove it`,
  isReported: true,
});

/** What pods that request devices need before their admission is tried. */
class DeviceAdmission {
  readonly #devices: NodeDevices | undefined;
  readonly #client: DecisionClient;

  constructor(devices: NodeDevices | undefined, client: DecisionClient) {
    this.#devices = devices;
    this.#client = client;
  }

  /** Why the pod is not tried; null: it may be tried. `isReported`: it is reported as a refusal. */
  whyPending(pod: RunnablePod): (DeviceFault & { readonly isReported: boolean }) | null {
    const requirements = deviceRequirements(pod);
    if (requirements.size === 0) return null;
    if (this.#devices !== undefined) return this.#devices.whyPending(pod);
    const [resource = ""] = resourcesOf(pod);
    return notServed(resource);
  }

  /** Asks plugins for their preferences, after which the pod is tried again; null: no question is open. */
  async askPreferred(pod: RunnablePod, snapshot: unknown): Promise<Result<DeviceFault | null, Problem>> {
    if (this.#devices === undefined || !this.#devices.isChosenByPlugin(pod)) return ok(null);
    const answer = await this.#client.decide("devices", snapshot, { pod: pod.object });
    if (!answer.ok) return answer;
    const { unanswered } = answer.value.decision as DevicesDecision;
    const isAsked =
      unanswered.length > 0 && this.#devices.askPreferred(pod.uid, unanswered as readonly PreferredAllocationRequest[]);
    return ok(isAsked ? asksPlugins([...new Set(unanswered.map(({ resource }) => resource))].sort()) : null);
  }
  /** Why the pod must wait for earlier pods whose plugins are being asked; null: it need not wait. */
  whyBehind(pod: RunnablePod, asking: readonly RunnablePod[]): DeviceFault | null {
    const taken = new Set(asking.flatMap(resourcesOf));
    const shared = resourcesOf(pod).find((resource) => taken.has(resource));
    return shared === undefined ? null : asksForEarlier(shared);
  }

  /** Whether the plugins' preferences for the pod could not be read. */
  hasFailed(podUid: string): boolean {
    return this.#devices?.hasFailed(podUid) ?? false;
  }

  /** Called when the pod is admitted or gone. */
  forget(podUid: string): void {
    this.#devices?.forget(podUid);
  }
}

const resourcesOf = (pod: RunnablePod): readonly string[] =>
  [...deviceRequirements(pod).values()].flatMap((amounts) => [...amounts.keys()]);

interface Parts {
  readonly set: PodSet;
  readonly lifecycle: PodLifecycle;
  readonly snapshotter: NodeSnapshotter;
  readonly capacity: CapacityGeneration;
  readonly backOff: AdmissionBackoff;
  readonly hostPorts: HostPorts;
  readonly foreign: ForeignSandboxes;
}
interface Deps {
  readonly clock: PodClock;
  readonly eventsOf: PodEventRecorder;
  readonly client: DecisionClient;
  readonly files: ManagerFiles;
  /** The devices; absent: no device plugins are served. */
  readonly devices?: NodeDevices;
  /** The devices that pods hold according to a kubelet's files. Absent: none. */
  readonly kubeletsDevices?: () => Result<readonly KubeletDevices[], string>;
  readonly otherKubelet?: Pick<OtherKubelet, "view">;
}
type ReleaseDeps = Pick<Deps, "client" | "files" | "devices">;

/** Releases CPUs, memory and devices of pods that have ended before other pods are tried. */
class StaleReleaser {
  readonly #deps: ReleaseDeps;
  readonly #parts: Pick<Parts, "set" | "snapshotter" | "capacity">;
  #doneAt = -1;

  constructor(deps: ReleaseDeps, parts: Pick<Parts, "set" | "snapshotter" | "capacity">) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /** Runs once per capacity generation, which increases when a pod has ended. Returns the problems. */
  async run(sequence: number): Promise<Problem[]> {
    const { files, client } = this.#deps;
    const { set, snapshotter, capacity } = this.#parts;
    const { generation } = capacity;
    const { assignments } = files.read();
    if (this.#doneAt === generation || assignments === undefined) return [];
    const snapshot = await snapshotter.snapshot(set.living(), sequence);
    if (!snapshot.ok) return [snapshot.error];
    // the history records releases of devices in decisions of that kind
    const holdsDevices = assignments[DEVICE_CHECKPOINT]?.includes('"PodUID"') ?? false;
    const answer = await client.decide(holdsDevices ? "devices" : "cpus", snapshot.value);
    if (!answer.ok) return [answer.error];
    const kept = persistNext(this.#deps, answer.value.next);
    if (!kept.ok) return [{ from: "state-files", message: kept.error }];
    if (holdsDevices && kept.value) await client.commit(answer.value);
    this.#doneAt = generation;
    return [];
  }
}

/** Admits pods, one at a time, and retries refused ones, which the kubelet would fail for good. */
export class PodAdmitter {
  readonly #deps: Deps;
  readonly #parts: Parts;
  readonly #stale: StaleReleaser;
  readonly #devices: DeviceAdmission;
  readonly #repair: DeviceReallocator;
  #isClosed = false;

  constructor(deps: Deps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#stale = new StaleReleaser(deps, parts);
    this.#devices = new DeviceAdmission(deps.devices, deps.client);
    this.#repair = new DeviceReallocator(deps, parts.set, parts.snapshotter, parts.backOff);
  }

  /** Stops admission, since the daemon is shutting down. */
  close(): void {
    this.#isClosed = true;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Tries each waiting pod that was not tried since capacity increased. */
  async admitWaiting(sequence: number): Promise<readonly Problem[]> {
    const { set, snapshotter, backOff } = this.#parts;
    if (set.runtimePods === null) return [];
    this.#repair.reportVanished();
    if (this.isClosed || snapshotter.allocatable() === null) return [];
    const other = this.#deps.otherKubelet?.view ?? null;
    if (other !== null) {
      // the sync reports it in full
      for (const { uid } of this.#pending()) this.#postpone(uid, { reason: OTHER_KUBELET, message: other.brief });
      return [];
    }
    const blocked = this.whyBlocked();
    if (blocked !== null) return [blocked];
    const problems: Problem[] = await this.#stale.run(sequence);
    backOff.prune((uid) => set.records.get(uid) !== undefined);
    problems.push(...(await this.#repair.run(sequence)));
    const asking: RunnablePod[] = [];
    for (const known of this.#pending()) {
      const behind = this.#devices.whyBehind(known.pod, asking);
      if (behind !== null) {
        // the reason of an earlier refusal stays
        if (known.record.refusal === null) this.#postpone(known.uid, behind);
        continue;
      }
      if (this.#isHeld(known)) continue;
      const isDue = backOff.isDue(known);
      const fault = isDue ? await this.#try(known, sequence) : null;
      if (fault !== null) problems.push(fault);
      const reason = set.records.get(known.uid)?.refusal?.reason;
      // room that is freed for a critical pod is not assigned to another one
      if (reason === WAITS_FOR_VICTIMS) break;
      if (reason === ASKS_PLUGIN) asking.push(known.pod);
    }
    return problems;
  }

  #pending(): readonly KnownPod[] {
    return inAdmissionOrder([...this.#parts.set.all()].filter(({ record }) => record.state === "pending"));
  }

  /**
   * Why no pod is admitted; null: pods may be. INVARIANT: while unknown objects run, nothing that they may hold is
   * assigned; and no pod is admitted that another kubelet would stop.
   */
  whyBlocked(): Problem | null {
    const other = this.#deps.otherKubelet?.view;
    if (other) return { from: "pods", message: other.message };
    const strangers = this.#parts.set.podsWithoutRecord();
    const message = `no pod is admitted while pods run whose records are lost: ${strangers.join(", ")}`;
    return strangers.length === 0 ? null : { from: "pods", message };
  }

  /** True if the pod is not tried in this sync; the reason is in its record. */
  #isHeld(known: KnownPod): boolean {
    const held = this.#whyHeld(known);
    if (held === null) return false;
    const { isRefusal, ...why } = held;
    if (!isRefusal) this.#postpone(known.uid, why);
    else if (this.#parts.backOff.isDue(known)) {
      this.#reject(known.uid, why);
      this.#parts.backOff.update(known.uid);
    }
    return true;
  }

  /** Why the pod is not tried; null: it may be tried. */
  #whyHeld(known: KnownPod): (DeviceFault & { readonly isRefusal: boolean }) | null {
    const { set, foreign } = this.#parts;
    const held = foreign.whyHeld(known.uid);
    if (held !== null) return { reason: FOREIGN_SANDBOX, message: held, isRefusal: false };
    const former = formerVersionOf(known, set.living());
    if (former !== null)
      return {
        reason: FORMER_VERSION,
        message: `waits for the end of its former version, ${former.uid}`,
        isRefusal: false,
      };
    const { kubeletsDevices = () => ok([]) } = this.#deps;
    const message = whyDevicesHeld(known.pod, set.foreign, kubeletsDevices);
    if (message !== null) return { reason: DEVICES_HELD, message, isRefusal: false };
    const waits = this.#devices.whyPending(known.pod);
    if (waits === null) return null;
    const { isReported, ...why } = waits;
    return { ...why, isRefusal: isReported };
  }

  /** Tries the pod's admission; returns what prevented it. */
  async #try(known: KnownPod, sequence: number): Promise<Problem | null> {
    const { set, snapshotter, backOff } = this.#parts;
    const snapshot = await snapshotter.snapshot(set.living(), sequence, known.uid);
    if (!snapshot.ok) return snapshot.error;
    const asks = await this.#devices.askPreferred(known.pod, snapshot.value);
    if (!asks.ok) return asks.error;
    backOff.update(known.uid);
    if (asks.value !== null) {
      this.#postpone(known.uid, asks.value);
      return null;
    }
    const asked = await admit(this.#deps.client, snapshot.value, known.pod);
    if (!asked.ok) return asked.error;
    return this.#admitDecided(known, asked.value);
  }

  async #admitDecided(known: KnownPod, asked: Admitted): Promise<Problem | null> {
    const { lifecycle, backOff, hostPorts } = this.#parts;
    if (asked.kind === "refused") {
      const message = this.#deps.files.explained(asked.message);
      const isPlugins = this.#devices.hasFailed(known.uid);
      this.#reject(known.uid, { reason: asked.reason, message }, isPlugins ? backOff.failed(known) : undefined);
      await this.report(asked.answer, known, "admit", "skipped", message);
      return null;
    }
    if (asked.kind === "after") {
      const names = preemptPods(lifecycle, asked.victims, asked.answer.id, this.#deps.clock.nowMs());
      const message = `waits until ${names} ended`;
      this.#postpone(known.uid, { reason: WAITS_FOR_VICTIMS, message });
      await this.report(asked.answer, known, "admit", "skipped", message);
      return null;
    }
    const fault = this.#admit(known.uid, asked.answer.next);
    if (fault === null) hostPorts.reportMapped(known);
    const message = fault?.message ?? "";
    await this.report(asked.answer, known, "admit", fault === null ? "applied" : "skipped", message);
    return fault;
  }

  /** Returns why the admission could not be persisted; null: it is. */
  #admit(uid: string, next: unknown): Problem | null {
    const kept = persistNext(this.#deps, next);
    if (!kept.ok) return { from: "state-files", message: kept.error };
    this.#devices.forget(uid);
    const fault = this.#parts.lifecycle.handle(uid, { kind: "Admitted", nowMs: this.#deps.clock.nowMs() });
    return fault === null ? null : { from: "pods", message: fault };
  }

  /**
   * Handles an admitted pod that did not get its devices and of which nothing runs: it releases everything, and is
   * tried again like a refused pod.
   */
  allocationFailed(uid: string, { reason, message }: DeviceFault): void {
    const { set, lifecycle, backOff } = this.#parts;
    const known = set.get(uid);
    if (known?.record.state !== "active") return;
    const nowMs = this.#deps.clock.nowMs();
    lifecycle.handle(uid, { kind: "AllocationFailed", reason, message, nowMs, tries: backOff.failed(known) });
    // capacity that the pod itself releases is no reason to try it again
    backOff.update(uid);
  }

  #postpone(uid: string, { reason, message }: DeviceFault): void {
    this.#parts.lifecycle.handle(uid, { kind: "Deferred", reason, message, nowMs: this.#deps.clock.nowMs() });
  }
  /**
   * Refuses the pod. `tries`: how often it was refused in a row, despite admissions in between; absent: see its
   * record.
   */
  #reject(uid: string, { reason, message }: DeviceFault, tries?: number): void {
    const nowMs = this.#deps.clock.nowMs();
    this.#parts.lifecycle.handle(uid, { kind: "Rejected", reason, message, nowMs, tries });
  }

  async report(
    answer: DecisionAnswer,
    { pod }: KnownPod,
    op: "admit" | "resize",
    status: "applied" | "skipped",
    message: string,
  ): Promise<void> {
    const at = new Date(this.#deps.clock.nowMs()).toISOString();
    const step = { op, pod: `${pod.namespace}/${pod.name}`, uid: pod.uid, status, message };
    await this.#deps.client.report({ at, dryRun: false, complete: true, results: [step] }, answer);
  }
}
