import type { HeldBack } from "../lifecycle/actions.ts";
import { isStopped } from "../lifecycle/finished.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import { podStatus } from "../lifecycle/pod-status.ts";
import type { PodRecord } from "../lifecycle/record.ts";
import { OWNER, type RuntimeContainer, type RuntimePod, type RuntimePods } from "../lifecycle/runtime-pod.ts";
import { runnablePod } from "../lifecycle/spec/runnable-pod.ts";
import type { StartError } from "../lifecycle/status/containers.ts";
import type { ContainerStatus, PodStatus } from "../lifecycle/status/status.ts";
import type { PodsInForce } from "../ports.ts";
import { classOf } from "./decoded-pod.ts";
import { nameOf } from "./desired-pods.ts";
import { NOT_PROBED, type PodProbes } from "./pod-probes.ts";
import type { PodRecords } from "./records.ts";

/** Adds what the machine knows of a container, and the runtime does not: its last words. */
export type CompleteContainer = (pod: RuntimePod, container: RuntimeContainer) => RuntimeContainer;

/** A pod with all that is known of it now. */
export interface KnownPod {
  readonly uid: string;
  readonly pod: RunnablePod;
  readonly record: PodRecord;
  /** Null: the runtime holds nothing of it. */
  readonly seen: RuntimePod | null;
}
/** What a pod's last turn of work came to. */
export interface Worked {
  readonly errors: Readonly<Record<string, StartError>>;
  readonly heldBack: readonly HeldBack[];
  readonly starting: ReadonlySet<string>;
}
/** A status, with all that it was made of. */
interface Told extends Pick<KnownPod, "record" | "seen"> {
  readonly worked: Worked;
  /** Of what its probes say. */
  readonly probed: number;
  readonly status: PodStatus;
  /** Made again of itself, it was the same. */
  readonly isSettled: boolean;
}
const NOTHING_WORKED: Worked = { errors: {}, heldBack: [], starting: new Set() };

/** The node's pods: the records on the disk, what the runtime holds, and what the last turns of work came to. */
export class PodSet {
  readonly records: PodRecords;
  readonly #owner: string;
  readonly #hostIPs: readonly string[];
  readonly #pods = new WeakMap<object, RunnablePod>();
  readonly #worked = new Map<string, Worked>();
  readonly #told = new Map<string, Told>();
  readonly #complete: CompleteContainer;
  readonly #probes: PodProbes;
  #raw: RuntimePods | null = null;
  #seen: RuntimePods | null = null;

  constructor(
    records: PodRecords,
    owner: string,
    hostIPs: readonly string[],
    complete: CompleteContainer,
    probes: PodProbes = NOT_PROBED,
  ) {
    this.records = records;
    this.#probes = probes;
    this.#complete = complete;
    this.#owner = owner;
    this.#hostIPs = hostIPs;
  }

  /** INVARIANT: of what a runtime holds, only the daemon's own is ever looked at. */
  see(all: RuntimePods): void {
    if (all === this.#raw) return;
    this.#raw = all;
    const own = [...all].map(([uid, pod]) => [uid, this.#ownOf(pod)] as const);
    this.#seen = new Map(own.filter((entry): entry is readonly [string, RuntimePod] => entry[1] !== null));
  }
  /** What the runtime holds under any name; null: it was never heard. INVARIANT: nothing of it is ever worked at. */
  get held(): RuntimePods | null {
    return this.#raw;
  }
  /** Null: it was never heard. */
  get seen(): RuntimePods | null {
    return this.#seen;
  }

  /** Uids of pods that run under the daemon's name and of which it has no record: what they hold is not counted. */
  strangers(): readonly string[] {
    return [...(this.#seen ?? [])].flatMap(([uid, seen]) =>
      this.records.get(uid) === undefined && !isStopped(seen) ? [uid] : [],
    );
  }

  *all(): Generator<KnownPod> {
    for (const [uid, record] of this.records.entries()) {
      const pod = this.podOf(record);
      if (pod !== null) yield { uid, pod, record, seen: this.#seen?.get(uid) ?? null };
    }
  }
  get(uid: string): KnownPod | null {
    const record = this.records.get(uid);
    const pod = record === undefined ? null : this.podOf(record);
    return record === undefined || pod === null ? null : { uid, pod, record, seen: this.#seen?.get(uid) ?? null };
  }
  /** By `NAMESPACE/NAME`; of two, the one that lives, else the first. */
  inForce(): PodsInForce {
    const names = new Map<string, { uid: string; file: string | undefined }>();
    for (const [uid, { pod, file, state }] of this.records.entries())
      if (state === "lives" || !names.has(nameOf(pod))) names.set(nameOf(pod), { uid, file });
    return names;
  }
  /** Those that hold room on the node. */
  living(): readonly KnownPod[] {
    return [...this.all()].filter(({ record }) => record.state === "lives" || record.state === "ends");
  }

  /** Null: a record of another version of this daemon, whose pod it cannot run. */
  podOf(record: PodRecord): RunnablePod | null {
    const known = this.#pods.get(record.pod);
    if (known !== undefined) return known;
    const read = runnablePod(record.pod);
    if (!read.ok) return null;
    this.#pods.set(record.pod, read.value);
    return read.value;
  }

  worked(uid: string): Worked {
    return this.#worked.get(uid) ?? NOTHING_WORKED;
  }
  noteWork(uid: string, worked: Partial<Worked>): void {
    this.#worked.set(uid, { ...this.worked(uid), ...worked });
  }
  forget(uid: string): void {
    this.#worked.delete(uid);
    this.#told.delete(uid);
  }

  /** Of the status that was told last; the very same one while nothing that it is made of changes. */
  statusOf(known: KnownPod, nowMs: number): PodStatus {
    const { uid, pod, record, seen } = known;
    const told = this.#told.get(uid);
    const worked = this.worked(uid);
    const probed = this.#probes.versionOf(uid);
    const isOfThese = told?.record === record && told.seen === seen && told.worked === worked && told.probed === probed;
    if (told?.isSettled && isOfThese) return told.status;
    const previous = told?.status ?? (record.status as PodStatus | undefined) ?? null;
    const made = podStatus(pod, record, seen, {
      inForce: record.resize?.actuation?.former ?? {},
      nowMs,
      hostIPs: this.#hostIPs,
      qosClass: classOf(pod),
      previous,
      says: this.#probes.saysOf(uid),
      ...worked,
    });
    // what follows from itself follows from itself again: only a change of state has the time in it
    const isSettled = previous !== null && JSON.stringify(made) === JSON.stringify(previous);
    const status = isSettled ? previous : made;
    this.#told.set(uid, { record, seen, worked, probed, status, isSettled });
    return status;
  }

  /** As a snapshot tells them: with what is allocated to them, and their status; `forms` by uid: in another form. */
  objects(
    pods: readonly KnownPod[],
    nowMs: number,
    forms: ReadonlyMap<string, object> = new Map(),
  ): readonly unknown[] {
    return pods.map((known) => {
      const status = this.statusOf(known, nowMs);
      const form = forms.get(known.uid) ?? known.record.pod;
      return { ...form, status: form === known.record.pod ? status : withoutResources(status) };
    });
  }

  #ownOf(pod: RuntimePod): RuntimePod | null {
    const isOwn = ({ labels }: { readonly labels: Readonly<Record<string, string>> }) => labels[OWNER] === this.#owner;
    const [sandboxes, containers] = [pod.sandboxes.filter(isOwn), pod.containers.filter(isOwn)];
    if (sandboxes.length + containers.length === 0) return null;
    return { ...pod, sandboxes, containers: containers.map((container) => this.#complete(pod, container)) };
  }
}

/** NAMESPACE/NAME of a pod that has a record, else its uid. */
export function nameIn({ records }: PodSet, uid: string): string {
  const record = records.get(uid);
  return record === undefined ? uid : nameOf(record.pod);
}

/** So that nobody takes what is allocated for what the form asks for. */
function withoutResources(status: PodStatus): PodStatus {
  const bare = ({ allocatedResources: _, resources: __, ...rest }: ContainerStatus): ContainerStatus => rest;
  const { initContainerStatuses: init, containerStatuses } = status;
  return {
    ...status,
    ...(init !== undefined && { initContainerStatuses: init.map(bare) }),
    containerStatuses: containerStatuses.map(bare),
  };
}
