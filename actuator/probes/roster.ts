import { PROBE_TYPES, type ProbeSpec, type ProbeType } from "../../api/model/probe.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { ProbedContainer, ProbedPod } from "./probed.ts";

interface KnownPod {
  pod: ProbedPod;
  /** By type and container. */
  readonly workers: Map<string, LiveWorker>;
  readonly containers: Map<string, ProbedContainer>;
}
export interface RosterPorts {
  readonly make: (pod: ProbedPod, container: ProbedContainer, type: ProbeType, probe: ProbeSpec) => LiveWorker;
  /** Added now; what was told of its container then is in it. */
  readonly added: (worker: LiveWorker) => void;
  /** kubelet 1.36: StopLivenessAndStartup, RemovePod. */
  readonly stop: (worker: LiveWorker) => void;
  /** It was not running when it was looked at last. */
  readonly runs: (pod: ProbedPod, container: ProbedContainer) => void;
}
const keyOf = (container: string, type: ProbeType): string => `${type}/${container}`;

/** The pods that are told, with a worker for each probe of theirs. kubelet 1.36: prober.manager. */
export class ProbeRoster {
  readonly #ports: RosterPorts;
  readonly #pods = new Map<string, KnownPod>();

  constructor(ports: RosterPorts) {
    this.#ports = ports;
  }

  /** Those that have not ended. */
  *workers(): Generator<LiveWorker> {
    for (const { workers } of this.#pods.values())
      for (const worker of workers.values()) if (!worker.isEnded) yield worker;
  }
  pod(uid: string): ProbedPod | undefined {
    return this.#pods.get(uid)?.pod;
  }
  container(podUid: string, name: string): ProbedContainer | undefined {
    return this.#pods.get(podUid)?.containers.get(name);
  }
  /** Undefined: there is none, or it has ended. */
  worker(podUid: string, container: string, type: ProbeType): LiveWorker | undefined {
    const worker = this.#pods.get(podUid)?.workers.get(keyOf(container, type));
    return worker?.isEnded === true ? undefined : worker;
  }

  look(pods: readonly ProbedPod[]): void {
    const told = new Set(pods.map(({ uid }) => uid));
    for (const [uid, { workers }] of this.#pods) {
      if (told.has(uid)) continue;
      this.#pods.delete(uid);
      for (const worker of workers.values()) this.#ports.stop(worker);
    }
    for (const pod of pods) this.#lookAt(pod);
  }

  #lookAt(pod: ProbedPod): void {
    const known: KnownPod = this.#pods.get(pod.uid) ?? { pod, workers: new Map(), containers: new Map() };
    const isDeletedNow = pod.deletionAtMs !== null && known.pod.deletionAtMs === null;
    known.pod = pod;
    this.#pods.set(pod.uid, known);
    const started: ProbedContainer[] = [];
    for (const container of pod.containers) {
      const before = known.containers.get(container.name);
      known.containers.set(container.name, container);
      for (const type of PROBE_TYPES) this.#lookAtProbe(known, container, type, isDeletedNow);
      const isSame = before?.id === container.id && before?.state === "running";
      if (before !== undefined && container.state === "running" && !isSame) started.push(container);
    }
    for (const container of started) this.#ports.runs(pod, container);
  }

  #lookAtProbe({ pod, workers }: KnownPod, container: ProbedContainer, type: ProbeType, isDeletedNow: boolean): void {
    const probe = container.probes[type];
    if (probe === null) return;
    const key = keyOf(container.name, type);
    const worker = workers.get(key);
    if (worker === undefined || this.#isAnew(worker, pod, container)) {
      const made = this.#ports.make(pod, container, type, probe);
      workers.set(key, made);
      this.#ports.added(made);
      return;
    }
    worker.pod = pod;
    worker.container = container;
    // the kubelet leaves those of sidecars be
    if (isDeletedNow && type !== "readiness" && !container.isSidecar) this.#ports.stop(worker);
  }

  /** A container that was not to be started again was. */
  #isAnew(worker: LiveWorker, pod: ProbedPod, { id }: ProbedContainer): boolean {
    return worker.isEnded && id !== null && id !== worker.state?.containerId && pod.deletionAtMs === null;
  }
}
