import {
  type Amounts,
  appPod,
  type PodParts,
  SimulatedPodsNode,
  type SimulatedPodsNodeOptions,
} from "./simulated-node.ts";

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;
const CONFIGURATION = {
  evictionHard: { "memory.available": "1Gi", "nodefs.available": "1Gi" },
  evictionPressureTransitionPeriod: "30s",
};

interface Usage {
  readonly memory?: number;
  /** Bytes of the emptyDir `data`. */
  readonly volume?: number;
}

/** A node whose measured usage the test defines. */
export class Measured {
  memory = 8 * Gi;
  disk = 8 * Gi;
  readonly usages: Record<string, Usage> = {};
  readonly reclaimed: string[][] = [];
  onReclaim: () => void = () => {};
  readonly world: SimulatedPodsNode;

  constructor(
    pods: readonly object[],
    configuration: object = CONFIGURATION,
    client?: SimulatedPodsNodeOptions["client"],
    readPods?: SimulatedPodsNodeOptions["readPods"],
  ) {
    this.world = new SimulatedPodsNode({
      configuration,
      ...(client === undefined ? {} : { client }),
      ...(readPods === undefined ? {} : { readPods }),
      stats: async () => this.#stats(),
      reclaim: async (functions) => {
        this.reclaimed.push([...functions]);
        this.onReclaim();
      },
    });
    this.world.pods = pods;
    // like a program that does not handle SIGTERM
    this.world.runtime.programOf = () => ({ runsMs: null, exitCode: 143, stopsMs: 0 });
  }

  get evicted(): readonly string[] {
    return this.world.events.filter(({ reason }) => reason === "Evicted").map(({ pod }) => pod.name);
  }
  state(uid: string): string {
    return this.world.pod(uid).record.state;
  }

  #stats() {
    const time = new Date(this.world.time.nowMs()).toISOString();
    const fs = { time, availableBytes: this.disk, capacityBytes: 16 * Gi, usedBytes: 16 * Gi - this.disk };
    const pods = this.world.manager.set.living().map(({ uid, pod }) => {
      const { memory = Mi, volume } = this.usages[uid] ?? {};
      return {
        podRef: { name: pod.name, namespace: pod.namespace, uid },
        startTime: time,
        containers: [{ name: "app", startTime: time, memory: { time, workingSetBytes: memory } }],
        memory: { time, workingSetBytes: memory },
        volume: volume === undefined ? [] : [{ name: "data", time, usedBytes: volume }],
        "ephemeral-storage": { time, usedBytes: volume ?? 0 },
      };
    });
    const memory = { time, availableBytes: this.memory, workingSetBytes: 32 * Gi - this.memory };
    const runtime = { imageFs: fs, containerFs: fs };
    return { node: { nodeName: "sim", memory, fs, runtime, fileSystems: "one", systemContainers: [] }, pods };
  }
}

export const burstable = (uid: string, requests: Amounts, parts: PodParts = {}): object =>
  appPod(uid, requests, { limits: {}, ...parts });
/** The node six seconds after its start. */
export async function running(
  pods: readonly object[],
  configuration?: object,
  client?: SimulatedPodsNodeOptions["client"],
): Promise<Measured> {
  const measured = new Measured(pods, configuration, client);
  await measured.world.run(6);
  return measured;
}
export const three = [
  burstable("within", { memory: "1Gi" }),
  burstable("above", { memory: "100Mi" }),
  burstable("most", { memory: "100Mi" }),
];
export const USAGES = { within: { memory: 900 * Mi }, above: { memory: 300 * Mi }, most: { memory: 600 * Mi } };
