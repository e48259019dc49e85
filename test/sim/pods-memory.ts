import { isCritical } from "../../actuator/lifecycle/decoded-pod.ts";
import type { KnownPod } from "../../actuator/pods/records/pod-set.ts";
import type { PodsRuntime } from "./pods-runtime.ts";
import { sizesOf } from "./pods-sizes.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** The node's available memory while no container uses more than the others. */
const FREE = 8 * GIB;
const THRESHOLD = GIB;
/** The memory of a container that uses more. */
const EATEN = FREE - THRESHOLD / 2;

/** Seven allocatable CPUs, and a hard eviction threshold for memory. */
export const CONFIGURATION = {
  cpuManagerPolicy: "static",
  kubeReserved: { cpu: "1", memory: "1Gi" },
  evictionHard: { "memory.available": "1Gi" },
  evictionPressureTransitionPeriod: "30s",
  failCgroupV1: false,
};

/** A pod that may be evicted, as of the last measurement. */
interface Measured {
  readonly uid: string;
  readonly priority: number;
  readonly overRequest: number;
}

/** The memory measurements of a simulated node. */
export class PodsMemory {
  /** Ids of containers that use nearly all available memory. */
  readonly eaters = new Set<string>();
  readonly #runtime: PodsRuntime;
  /** The results of the last measurement. */
  #isShort = false;
  #measured: readonly Measured[] = [];

  constructor(runtime: PodsRuntime) {
    this.#runtime = runtime;
  }

  /** Measures; returns the `stats` of a snapshot. */
  look(living: readonly KnownPod[], nowMs: number): Readonly<Record<string, unknown>> {
    const time = new Date(nowMs).toISOString();
    const running = this.#runtime.ownContainers.filter(({ state }) => state === "running");
    const available = running.reduce((free, { id }) => free - (this.eaters.has(id) ? EATEN : 0), FREE);
    this.#isShort = available < THRESHOLD;
    this.#measured = [];
    const pods = living.map((known) => {
      const { pod, uid, record } = known;
      const containers = running
        .filter(({ sandbox }) => sandbox.metadata.uid === uid)
        .map(({ id, config }) => ({
          name: config.metadata.name,
          memory: { time, workingSetBytes: this.eaters.has(id) ? EATEN : MIB },
        }));
      const workingSetBytes = containers.reduce((sum, { memory }) => sum + memory.workingSetBytes, 0);
      const overRequest = workingSetBytes - sizesOf(record.pod).memoryRequest;
      const isActive = record.state === "active" && !isCritical(pod) && !pod.isStatic;
      if (isActive) this.#measured = [...this.#measured, { uid, priority: pod.spec.priority ?? 0, overRequest }];
      return {
        podRef: { name: pod.name, namespace: pod.namespace, uid },
        containers,
        memory: { time, workingSetBytes },
      };
    });
    const memory = { time, availableBytes: Math.max(0, available), workingSetBytes: 32 * GIB - available };
    const disk = { time, availableBytes: 100 * GIB, capacityBytes: 200 * GIB, inodes: 1e6, inodesFree: 9e5 };
    return { node: { memory, fs: disk, runtime: { imageFs: disk, containerFs: disk }, systemContainers: [] }, pods };
  }

  /** Why the last measurements do not justify this victim; null: they do. kubelet 1.36: rankMemoryPressure. */
  whyNoVictim(uid: string): string | null {
    const victim = this.#measured.find((one) => one.uid === uid);
    if (!this.#isShort) return "nothing is short";
    if (victim === undefined) return "it may not be evicted";
    const better = this.#measured.find((one) => compare(one, victim) < 0);
    return better === undefined ? null : `${better.uid} comes first`;
  }
}

const compare = (a: Measured, b: Measured): number =>
  Number(b.overRequest > 0) - Number(a.overRequest > 0) || a.priority - b.priority || b.overRequest - a.overRequest;
