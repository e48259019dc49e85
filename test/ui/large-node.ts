import { libraryMachine } from "../../api/cli/inputs/machine-library.ts";
import { writeCpuState } from "../../api/decide/cpus/checkpoint.ts";
import { writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { EMPTY_STATE, machineMemory } from "../../api/decide/memory/machine-memory.ts";
import { memoryManager } from "../../api/decide/memory/manager.ts";
import { memoryStateFile } from "../../api/decide/memory/start.ts";
import { ANY_NODE } from "../../api/decide/topology/hint.ts";
import { type Container, pod as podSchema } from "../../api/model/pod.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { manyImages, timeAt, webContainer, webSandbox } from "../contract/gc-snapshots.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";

export const PODS = 512;
export const DEVICES = 4096;
export const IMAGES = 1000;
/** The number of pods with an exclusive CPU, memory of one NUMA node and a device. */
export const HOLDERS = 240;
export const GPU = "example.com/gpu";
const Gi = 2 ** 30;
const RESERVED = { cpu: "1", memory: "1Gi" };
const uidOf = (i: number): string => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`;
const nameOf = (i: number): string => `pod-${String(i).padStart(3, "0")}`;

function podAt(i: number) {
  const whole = { cpu: "1", memory: "512Mi" };
  const own = { cpu: `${i}m`, memory: `${i}Mi` };
  const limits = { ...whole, [GPU]: "1" };
  const app = i < HOLDERS ? container("app", limits, limits) : container("app", own);
  return pod(nameOf(i), {
    metadata: { namespace: "shop", uid: uidOf(i) },
    spec: { containers: [app] },
    status: { phase: "Running" },
  });
}

/** The state files of the CPU, memory and device managers, as a kubelet with these pods writes them. */
function assignmentsOf({ numaNodes = [] }: ReturnType<typeof machineOf>) {
  const holders = Array.from({ length: HOLDERS }, (_, i) => i);
  const form = { profile: NEWEST, podLevel: false };
  const held = {
    defaultCpus: new Set(Array.from({ length: 256 - HOLDERS }, (_, i) => i)),
    assignments: new Map(holders.map((i) => [uidOf(i), new Map([["app", new Set([256 - HOLDERS + i])]])])),
    podCpus: new Map(),
  };
  const machine = machineMemory(
    numaNodes.map((node) => ({ ...node, memoryBytes: node.memoryBytes ?? 0 })),
    new Map([[0, new Map([["memory", 2 * Gi]])]]),
  );
  if (!machine.ok) throw new Error(machine.error.message);
  const state = { ...EMPTY_STATE, machineState: machine.value };
  const manager = memoryManager({ policy: "Static", state, podLevel: false, behaviour: NEWEST.behaviour });
  for (const i of holders) {
    const holder = podSchema.parse(podAt(i));
    const done = manager.allocate(holder, holder.spec.containers[0] as Container, ANY_NODE);
    if (!done.ok) throw new Error(done.error.message);
  }
  const entries = holders.map((i) => ({
    podUid: uidOf(i),
    containerName: "app",
    resourceName: GPU,
    deviceIds: new Map([[0, [`gpu-${i}`]]]),
    allocResp: null,
  }));
  return {
    cpu_manager_state: writeCpuState("static", held, form),
    memory_manager_state: memoryStateFile("Static", manager.state, form),
    kubelet_internal_checkpoint: writeCheckpoint({ entries, registered: new Map() }),
  };
}

function machineOf() {
  const found = libraryMachine("epyc-2s-nps1");
  if (found === undefined) throw new Error("the library lacks it");
  return found.machine;
}

const devices = Array.from({ length: DEVICES }, (_, i) => ({
  resource: GPU,
  id: `gpu-${i}`,
  health: i % 500 === 7 ? "Unhealthy" : "Healthy",
  numaNodes: [i < DEVICES / 2 ? 0 : 1],
}));

/** The node's stats in the format of the kubelet's /stats/summary, with this much available memory. */
function statsOf(time: string, availableBytes: number) {
  const pods = Array.from({ length: PODS }, (_, i) => ({
    podRef: { name: nameOf(i), namespace: "shop", uid: uidOf(i) },
    containers: [{ name: "app", memory: { time, workingSetBytes: (1 + (i % 97)) * 2 ** 20 } }],
    memory: { time, workingSetBytes: (1 + (i % 97)) * 2 ** 20 },
    "ephemeral-storage": { usedBytes: (PODS - i) * 2 ** 20, inodesUsed: i },
  }));
  const disk = { time, availableBytes: 20 * Gi, capacityBytes: 1000 * Gi, inodes: 1e7, inodesFree: 9e6 };
  const memory = { time, availableBytes, workingSetBytes: 700 * Gi };
  return { node: { memory, fs: disk, runtime: { imageFs: disk, containerFs: disk } }, pods };
}

/** A very large node: 512 pods, 4,096 devices, 1,000 images and 256 CPUs, `seconds` after the start. */
export function largeNode(name: string, seconds = 0, availableBytes = 100 * Gi) {
  const machine = machineOf();
  const time = timeAt(seconds);
  return {
    observedAt: time,
    node: { metadata: { name }, status: { capacity: { cpu: "256", memory: "1000Gi", pods: `${PODS}` } } },
    kubeletConfiguration: {
      maxPods: PODS,
      cpuManagerPolicy: "static",
      memoryManagerPolicy: "Static",
      kubeReserved: RESERVED,
      reservedMemory: [{ numaNode: 0, limits: { memory: "2Gi" } }],
      evictionHard: { "memory.available": "1Gi", "nodefs.available": "1%" },
      imageMinimumGCAge: "1m",
    },
    pods: Array.from({ length: PODS }, (_, i) => podAt(i)),
    stats: statsOf(time, availableBytes),
    runtime: {
      images: manyImages(IMAGES),
      containers: [webContainer("app", "CONTAINER_RUNNING")],
      sandboxes: [webSandbox],
    },
    machine,
    cgroup: { version: 2, driver: "systemd" },
    devices,
    devicePlugins: [{ resource: GPU }],
    assignments: assignmentsOf(machine),
  };
}
