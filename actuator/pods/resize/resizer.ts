import type { Result } from "../../../api/base/result.ts";
import { restartsOf } from "../../../api/decide/resize/actuation.ts";
import { type PendingResize as Queued, queueOf } from "../../../api/decide/resize/queue.ts";
import { type ResizeNode, whyInfeasible } from "../../../api/decide/resize/refusals.ts";
import { whyInvalid } from "../../../api/decide/resize/validation.ts";
import type { QuantityList } from "../../../api/model/allocatable.ts";
import { parseQuantity } from "../../../api/model/quantity.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { Hierarchy } from "../../cgroupfs/hierarchy.ts";
import type { DecisionClient, Problem } from "../../core/interfaces.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import { latestOf } from "../../lifecycle/instances.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { sameSpec } from "../../lifecycle/pod-source-diff.ts";
import type { Actuation, PendingResize, PodRecord } from "../../lifecycle/record.ts";
import { configurationOf } from "../../pass/snapshot.ts";
import type { CapacityGeneration } from "../admission/admission-backoff.ts";
import { type Admitted, admit, preemptPods, WAITS_FOR_VICTIMS } from "../admission/admission-queue.ts";
import { persistNext } from "../admission/device-reallocator.ts";
import type { NodeSnapshotter } from "../admission/node-snapshotter.ts";
import type { PodAdmitter } from "../admission/pod-admitter.ts";
import type { ManagerFiles } from "../devices/manager-files.ts";
import type { NodeDevices } from "../devices/port.ts";
import type { PodClock } from "../pod-clock.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import { resourcesIn, split, withResources } from "./forms.ts";
import type { ResizeEvents } from "./resize-events.ts";

interface LastAttempt {
  readonly object: object;
  readonly generation: number;
  readonly atMs: number;
}
interface Deps {
  readonly clock: PodClock;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly hierarchy: Pick<Hierarchy, "version">;
  readonly client: DecisionClient;
  readonly files: ManagerFiles;
  readonly devices?: NodeDevices;
}
interface Settings {
  readonly profile: Profile;
  readonly retryMs: number;
}
interface Parts {
  readonly set: PodSet;
  readonly lifecycle: PodLifecycle;
  readonly admitter: PodAdmitter;
  readonly snapshotter: NodeSnapshotter;
  readonly capacity: CapacityGeneration;
  readonly events: ResizeEvents;
}

/**
 * Admits changes of pods' resource requests as it admits new pods, or records why not. kubelet 1.36: the allocation
 * manager.
 */
export class Resizer {
  readonly #deps: Deps;
  readonly #settings: Settings;
  readonly #parts: Parts;
  /** The requested pods by uid. */
  readonly #requested = new Map<string, RunnablePod>();
  readonly #tried = new Map<string, LastAttempt>();

  constructor(deps: Deps, settings: Settings, parts: Parts) {
    this.#deps = deps;
    this.#settings = settings;
    this.#parts = parts;
  }

  /** Starts a new comparison: forgets the requested resizes. */
  begin(): void {
    this.#requested.clear();
    for (const uid of this.#tried.keys()) if (this.#parts.set.records.get(uid) === undefined) this.#tried.delete(uid);
  }

  /**
   * Handles a changed active pod: image, labels and other fields change at once, changed resources wait for admission.
   * Returns why the change could not be persisted; null: it is.
   */
  change({ uid, record }: KnownPod, pod: RunnablePod): string | null {
    const { atOnce, isResize } = split(pod.object, record.pod);
    if (isResize) this.#requested.set(uid, pod);
    if (sameSpec(atOnce, record.pod)) return null;
    return this.#parts.lifecycle.handle(uid, { kind: "SpecUpdated", pod: atOnce });
  }

  /** Tries each resize that was not tried yet, or not since capacity increased. */
  async askWaiting(sequence: number): Promise<readonly Problem[]> {
    const problems: Problem[] = this.#withdraw();
    const { set, admitter } = this.#parts;
    if (set.runtimePods === null || admitter.isClosed || admitter.whyBlocked() !== null) return problems;
    for (const resize of sortedResizes(this.#waiting())) {
      if (!this.#isDue(resize)) continue;
      const fault = await this.#admit(resize, sequence);
      if (fault !== null) problems.push(fault);
    }
    return problems;
  }

  #waiting(): readonly RequestedResize[] {
    return [...this.#requested].flatMap(([uid, pod]) => {
      const known = this.#parts.set.get(uid);
      return known?.record.state === "active" ? [{ known, pod }] : [];
    });
  }

  /** Drops resizes that are no longer requested. kubelet 1.36: ClearPodResizePendingCondition. */
  #withdraw(): Problem[] {
    const problems: Problem[] = [];
    for (const { uid, record } of this.#parts.set.living()) {
      if (this.#requested.has(uid) || record.resize === null || record.resize.reason === "InProgress") continue;
      this.#tried.delete(uid);
      const fault = this.#update(uid, onlyActuation(record));
      if (fault !== null) problems.push({ from: "pods", message: fault });
    }
    return problems;
  }

  /** Whether a resize is due. An infeasible one is retried only if the node's configuration may have changed. */
  #isDue({ known: { uid, record }, pod }: RequestedResize): boolean {
    const tried = this.#tried.get(uid);
    if (tried === undefined || tried.object !== pod.object) return true;
    if (tried.generation !== this.#parts.capacity.generation && record.resize?.reason !== "Infeasible") return true;
    const age = this.#deps.clock.nowMs() - tried.atMs;
    return age >= this.#settings.retryMs || age < 0;
  }

  async #admit(resize: RequestedResize, sequence: number): Promise<Problem | null> {
    const { known, pod } = resize;
    const { set, snapshotter, admitter, capacity } = this.#parts;
    const allocatable = snapshotter.allocatable();
    const [now, then] = [decodedPod(known.record.pod), decodedPod(pod.object)];
    const configuration = await this.#deps.readConfiguration();
    if (!configuration.ok) return configuration.error;
    if (allocatable === null || now === null || then === null) return null;
    const atMs = this.#deps.clock.nowMs();
    this.#tried.set(known.uid, { object: pod.object, generation: capacity.generation, atMs });
    const node = nodeOf(configuration.value, this.#settings.profile, allocatable, this.#deps.hierarchy.version);
    // a manifest passes no API server, so what an API server would reject is refused here
    const never = whyInvalid(then, now, node) ?? whyInfeasible(then, now, node);
    if (never !== null) return this.#refuse(resize, "Infeasible", "Infeasible", never.message);
    const snapshot = await snapshotter.snapshot(set.living(), sequence);
    if (!snapshot.ok) return snapshot.error;
    // without the status, which describes the present resources
    const { status: _status, ...object } = pod.object;
    const asked = await admit(this.#deps.client, snapshot.value, { ...pod, object });
    if (!asked.ok) return asked.error;
    const [fault, message] = this.#allocate(resize, asked.value);
    await admitter.report(asked.value.answer, known, "resize", message === "" ? "applied" : "skipped", message);
    return fault;
  }

  /** Returns the problem, and why the resize was not admitted; empty: it was. */
  #allocate(resize: RequestedResize, asked: Admitted): readonly [Problem | null, string] {
    if (asked.kind === "refused") {
      const { reason, message } = asked;
      return [this.#refuse(resize, "Deferred", reason, message), message || reason];
    }
    if (asked.kind === "after") {
      const { victims, answer } = asked;
      const names = preemptPods(this.#parts.lifecycle, victims, answer.id, this.#deps.clock.nowMs());
      const message = `waits until ${names} ended`;
      return [this.#refuse(resize, "Deferred", WAITS_FOR_VICTIMS, message), message];
    }
    const kept = persistNext(this.#deps, asked.answer.next);
    const fault: Problem | null = kept.ok ? this.#accept(resize) : { from: "state-files", message: kept.error };
    return [fault, fault?.message ?? ""];
  }

  #refuse(
    { known, pod }: RequestedResize,
    kind: "Deferred" | "Infeasible",
    reason: string,
    message: string,
  ): Problem | null {
    const { uid, record } = known;
    const before = record.resize;
    if (before?.reason === kind && before.message === message) return null;
    const isSame = before?.reason === kind;
    const sinceMs = isSame ? before.sinceMs : this.#deps.clock.nowMs();
    const actuation = before?.actuation === undefined ? {} : { actuation: before.actuation };
    const fault = this.#update(uid, { reason: kind, message, sinceMs, ...actuation });
    // the same refusal with other numbers in its message gets no new event
    if (!isSame) this.#parts.events.pending(pod, kind, reason, message);
    return fault === null ? null : { from: "pods", message: fault };
  }

  /** INVARIANT: the accepted resources, and the containers to stop for them, are on disk before anything is done. */
  #accept({ known, pod }: RequestedResize): Problem | null {
    const { uid, record, runtimePod } = known;
    const former = record.resize?.actuation?.former ?? resourcesIn(record.pod);
    const running = (name: string): string | null => {
      const latest = runtimePod === null ? undefined : latestOf(runtimePod, name);
      return latest?.state === "running" ? latest.id : null;
    };
    const restarts = this.#restartsFor(pod.object, former, running);
    const actuation: Actuation = { former, restarts, error: "" };
    const sinceMs = this.#deps.clock.nowMs();
    const resize = { reason: "InProgress", message: "", sinceMs, actuation } as const;
    const fault = this.#update(uid, resize, pod.object);
    if (fault !== null) return { from: "pods", message: fault };
    this.#parts.events.started(pod);
    return null;
  }

  #restartsFor(
    object: RunnablePod["object"],
    former: Actuation["former"],
    runningOf: (container: string) => string | null,
  ): Actuation["restarts"] {
    const [inForce, desired] = [decodedPod(withResources(object, former)), decodedPod(object)];
    if (inForce === null || desired === null) return {};
    const config = configurationOf({}, this.#settings.profile);
    const restarts = restartsOf(inForce, desired, { config, isRunning: (name) => runningOf(name) !== null });
    return Object.fromEntries(restarts.map(({ container }) => [container, runningOf(container) as string]));
  }

  #update(uid: string, resize: PendingResize | null, pod?: RunnablePod["object"]): string | null {
    return this.#parts.lifecycle.handle(uid, { kind: "ResizeUpdated", resize, ...(pod !== undefined && { pod }) });
  }
}

const onlyActuation = ({ resize }: PodRecord): PodRecord["resize"] =>
  resize?.actuation === undefined
    ? null
    : { reason: "InProgress", message: resize.actuation.error, sinceMs: resize.sinceMs, actuation: resize.actuation };

/** The facts about this node that matter to a resize. */
export function nodeOf(
  configuration: unknown,
  profile: Profile,
  allocatable: QuantityList,
  cgroupVersion: 1 | 2,
): ResizeNode {
  const read = Object.entries(allocatable).map(([name, text]) => [name, parseQuantity(text)] as const);
  const room = new Map(read.flatMap(([name, q]) => (q.ok ? [[name, q.value] as const] : [])));
  return {
    config: configurationOf(configuration, profile),
    cgroupVersion,
    absolute: room,
    allocatable: room,
    node: undefined,
  };
}

/** A pod that requests other resources than are allocated to it. */
interface RequestedResize {
  readonly known: KnownPod;
  readonly pod: RunnablePod;
}

/** Sorts resizes in the order in which they are tried, without unreadable ones. */
export function sortedResizes(resizes: readonly RequestedResize[]): readonly RequestedResize[] {
  const read = resizes.flatMap((one): readonly (Queued & { readonly one: RequestedResize })[] => {
    const { known, pod } = one;
    const [allocated, desired] = [decodedPod(known.record.pod), decodedPod(pod.object)];
    if (allocated === null || desired === null) return [];
    const { resize } = known.record;
    const sinceMs = resize === null || resize.reason === "InProgress" ? null : resize.sinceMs;
    return [{ one, desired, allocated, sinceMs }];
  });
  return queueOf(read).map(({ one }) => one);
}
