import { perObject } from "../../../api/base/cache.ts";
import { OWNER, type RuntimeContainer, type RuntimePod, type RuntimePods } from "../../containerd/cri.ts";
import type { ActivePods } from "../../core/interfaces.ts";
import {
  type ContainerBackOff,
  NO_POD_RESULTS,
  NO_RESULTS,
  type PodProbeResults,
  type ProbeResults,
} from "../../lifecycle/actions.ts";
import { classOf } from "../../lifecycle/decoded-pod.ts";
import { type ForeignSandbox, foreignSandboxes } from "../../lifecycle/foreign-sandbox.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { isStopped } from "../../lifecycle/pod-state.ts";
import { podStatus } from "../../lifecycle/pod-status.ts";
import type { PodRecord } from "../../lifecycle/record.ts";
import { runnablePod } from "../../lifecycle/spec/pod-spec.ts";
import type { StartError } from "../../lifecycle/status/containers.ts";
import type { ContainerHealth, ContainerStatus, PodStatus } from "../../lifecycle/status/status.ts";
import { nameOf } from "./desired-pods.ts";
import type { ReadonlyPodRecords } from "./records.ts";

/** The probes' results, as the pod manager sees them. */
export interface PodProbes {
  readonly resultOf: ProbeResults;
  resultsOf(podUid: string): PodProbeResults;
  /** Increases with each change of a result of the pod's containers. */
  versionOf(podUid: string): number;
  /** Called once per sync with the pods on the node. `statusOf` is called for pods that have probes. */
  sync(pods: readonly KnownPod[], statusOf: (known: KnownPod) => PodStatus): void;
}
export const NOT_PROBED: PodProbes = {
  resultOf: NO_RESULTS,
  resultsOf: () => NO_POD_RESULTS,
  versionOf: () => 0,
  sync() {},
};

/** The health of a pod's devices, from plugins and claims. */
export interface PodHealth {
  health(pod: RunnablePod): ContainerHealth | undefined;
}

/** Adds what the machine knows of a container and the runtime does not: its termination message. */
export type CompleteContainer = (pod: RuntimePod, container: RuntimeContainer) => RuntimeContainer;

/** A pod with everything that is known of it now. */
export interface KnownPod {
  readonly uid: string;
  readonly pod: RunnablePod;
  readonly record: PodRecord;
  /** The pod in the runtime; null: the runtime has nothing of it. */
  readonly runtimePod: RuntimePod | null;
}
/** The outcome of a pod's last sync. */
export interface SyncOutcome {
  readonly errors: Readonly<Record<string, StartError>>;
  readonly heldBack: readonly ContainerBackOff[];
  readonly starting: ReadonlySet<string>;
}
/** A computed status with its inputs. */
interface CachedStatus extends Pick<KnownPod, "record" | "runtimePod"> {
  readonly synced: SyncOutcome;
  /** The version of its probe results. */
  readonly probed: number;
  /** The device health as JSON. */
  readonly health: string | undefined;
  readonly status: PodStatus;
  /** True: computed again from itself, the status did not change. */
  readonly isSettled: boolean;
}
const NO_SYNC_OUTCOME: SyncOutcome = { errors: {}, heldBack: [], starting: new Set() };

/** `owner`: the label value of the daemon's own sandboxes and containers. */
interface NodeNames {
  readonly owner: string;
  readonly hostIPs: readonly string[];
  readonly nodeName: string;
}

/** The node's pods: the records on disk, the pods in the runtime, and the outcomes of the last syncs. */
export class PodSet {
  readonly records: ReadonlyPodRecords;
  readonly #node: NodeNames;
  readonly #read = perObject((object: object) => runnablePod(object, null, { draDrivers: true }));
  readonly #syncOutcomes = new Map<string, SyncOutcome>();
  readonly #statuses = new Map<string, CachedStatus>();
  readonly #complete: CompleteContainer;
  readonly #probes: PodProbes;
  readonly #health: PodHealth | undefined;
  #raw: RuntimePods | null = null;
  #runtimePods: RuntimePods | null = null;
  #foreign: readonly ForeignSandbox[] = [];

  constructor(
    records: ReadonlyPodRecords,
    node: NodeNames,
    complete: CompleteContainer,
    probes: PodProbes = NOT_PROBED,
    health?: PodHealth,
  ) {
    this.records = records;
    this.#probes = probes;
    this.#health = health;
    this.#complete = complete;
    this.#node = node;
  }

  /** Updates from a runtime list. INVARIANT: only objects of this daemon are used. */
  update(all: RuntimePods): void {
    if (all === this.#raw) return;
    this.#raw = all;
    const own = [...all].map(([uid, pod]) => [uid, this.#ownOf(pod)] as const);
    this.#runtimePods = new Map(own.filter((entry): entry is readonly [string, RuntimePod] => entry[1] !== null));
    this.#foreign = foreignSandboxes(all, this.#node.owner);
  }
  /** Running sandboxes of other owners. INVARIANT: they are never changed. */
  get foreign(): readonly ForeignSandbox[] {
    return this.#foreign;
  }
  /** The runtime's pods of any owner; null: it never answered. INVARIANT: they are never changed. */
  get allRuntimePods(): RuntimePods | null {
    return this.#raw;
  }
  /** This daemon's pods in the runtime; null: it never answered. */
  get runtimePods(): RuntimePods | null {
    return this.#runtimePods;
  }

  /** Uids of this daemon's pods in the runtime that have no record: their resources are not counted. */
  podsWithoutRecord(): readonly string[] {
    return [...(this.#runtimePods ?? [])].flatMap(([uid, runtimePod]) =>
      this.records.get(uid) === undefined && !isStopped(runtimePod) ? [uid] : [],
    );
  }

  *all(): Generator<KnownPod> {
    for (const [uid, record] of this.records.entries()) {
      const pod = this.podOf(record);
      if (pod !== null) yield { uid, pod, record, runtimePod: this.#runtimePods?.get(uid) ?? null };
    }
  }
  get(uid: string): KnownPod | null {
    const record = this.records.get(uid);
    const pod = record === undefined ? null : this.podOf(record);
    return record === undefined || pod === null
      ? null
      : { uid, pod, record, runtimePod: this.#runtimePods?.get(uid) ?? null };
  }
  /** The pods by `NAMESPACE/NAME`; of two, the living one, else the first. */
  inForce(): ActivePods {
    const names = new Map<string, { uid: string; file: string | undefined }>();
    for (const [uid, { pod, file, state }] of this.records.entries())
      if (state === "active" || !names.has(nameOf(pod))) names.set(nameOf(pod), { uid, file });
    return names;
  }
  /** Pods that use resources on the node. */
  living(): readonly KnownPod[] {
    return [...this.all()].filter(({ record }) => record.state === "active" || record.state === "terminating");
  }

  /** The pod of a record; null: another version of the daemon wrote it, and this one cannot run the pod. */
  podOf(record: PodRecord): RunnablePod | null {
    const read = this.#read(record.pod);
    return read.ok ? read.value : null;
  }

  syncOutcome(uid: string): SyncOutcome {
    return this.#syncOutcomes.get(uid) ?? NO_SYNC_OUTCOME;
  }
  updateSyncOutcome(uid: string, outcome: Partial<SyncOutcome>): void {
    this.#syncOutcomes.set(uid, { ...this.syncOutcome(uid), ...outcome });
  }
  forget(uid: string): void {
    this.#syncOutcomes.delete(uid);
    this.#statuses.delete(uid);
  }

  /** Returns a pod's status: the same object while its inputs do not change. */
  statusOf(known: KnownPod, nowMs: number): PodStatus {
    const { uid, pod, record, runtimePod } = known;
    const cached = this.#statuses.get(uid);
    const synced = this.syncOutcome(uid);
    const probed = this.#probes.versionOf(uid);
    const its = this.#health?.health(pod);
    const health = its && JSON.stringify(its);
    const isOfThese =
      cached?.record === record &&
      cached.runtimePod === runtimePod &&
      cached.synced === synced &&
      cached.probed === probed &&
      cached.health === health;
    if (cached?.isSettled && isOfThese) return cached.status;
    const previous = cached?.status ?? (record.status as PodStatus | undefined) ?? null;
    const made = podStatus(pod, record, runtimePod, {
      inForce: record.resize?.actuation?.former ?? {},
      nowMs,
      hostIPs: this.#node.hostIPs,
      qosClass: classOf(pod),
      previous,
      probeResults: this.#probes.resultsOf(uid),
      health: its,
      ...synced,
    });
    // a status that equals the last one is not computed again: its times change only with the state
    const isSettled = previous !== null && JSON.stringify(made) === JSON.stringify(previous);
    const status = isSettled ? previous : made;
    this.#statuses.set(uid, { record, runtimePod, synced, probed, health, status, isSettled });
    return status;
  }

  /**
   * Pods for a snapshot: with their allocated resources, their status, and this node's current name, even if the node had another
   * name when the pod was admitted; `forms`: other forms to use, by uid.
   */
  objects(
    pods: readonly KnownPod[],
    nowMs: number,
    forms: ReadonlyMap<string, object> = new Map(),
  ): readonly unknown[] {
    return pods.map((known) => {
      const status = this.statusOf(known, nowMs);
      const form = forms.get(known.uid) ?? known.record.pod;
      const ownStatus = form === known.record.pod ? status : withoutResources(status);
      return { ...form, spec: this.#specHere(form), status: ownStatus };
    });
  }

  /** Returns the same object if it has this node's name, or none. */
  #specHere({ spec }: { readonly spec?: unknown }): unknown {
    const { nodeName = "" } = spec as { readonly nodeName?: string };
    return nodeName === "" || nodeName === this.#node.nodeName
      ? spec
      : { ...(spec as object), nodeName: this.#node.nodeName };
  }

  #ownOf(pod: RuntimePod): RuntimePod | null {
    const isOwn = ({ labels }: { readonly labels: Readonly<Record<string, string>> }) =>
      labels[OWNER] === this.#node.owner;
    const [sandboxes, containers] = [pod.sandboxes.filter(isOwn), pod.containers.filter(isOwn)];
    if (sandboxes.length + containers.length === 0) return null;
    return { ...pod, sandboxes, containers: containers.map((container) => this.#complete(pod, container)) };
  }
}

/** Numbers objects: the same object always gets the same number. */
export class ObjectNumbers {
  readonly #numbers = new WeakMap<object, number>();
  #next = 1;

  of(object: object | null | undefined): number {
    if (object === null || object === undefined) return 0;
    const known = this.#numbers.get(object);
    if (known !== undefined) return known;
    this.#numbers.set(object, this.#next);
    return this.#next++;
  }
}

/** NAMESPACE/NAME of a pod that has a record, else its uid. */
export function nameIn({ records }: PodSet, uid: string): string {
  const record = records.get(uid);
  return record === undefined ? uid : nameOf(record.pod);
}

/** The status without resources, so that allocated resources are not taken for requested ones. */
function withoutResources(status: PodStatus): PodStatus {
  const bare = ({ allocatedResources: _, resources: __, ...rest }: ContainerStatus): ContainerStatus => rest;
  const { initContainerStatuses: init, containerStatuses } = status;
  return {
    ...status,
    ...(init !== undefined && { initContainerStatuses: init.map(bare) }),
    containerStatuses: containerStatuses.map(bare),
  };
}
