import { EMPTY_STATE, type MemoryState, machineMemory } from "../../api/decide/memory/machine-memory.ts";
import { type MemoryManager, memoryManager } from "../../api/decide/memory/manager.ts";
import { memoryStateFile, startMemory } from "../../api/decide/memory/start.ts";
import { ANY_NODE } from "../../api/decide/topology/hint.ts";
import { resourceList } from "../../api/model/fields.ts";
import type { Container, Pod } from "../../api/model/pod.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { container } from "../kit/containers.ts";
import { decodedPod, namedPod } from "../kit/pods.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}
const Gi = 2 ** 30;
const NODES = Array.from({ length: 8 }, (_, id) => ({
  id,
  memoryBytes: 64 * Gi,
  hugepages: { "2Mi": 1024, "1Gi": 0 },
}));

function emptyMachine(): MemoryState {
  const machine = machineMemory(NODES, new Map([[0, new Map([["memory", Gi]])]]));
  if (!machine.ok) throw new Error(machine.error.message);
  return { ...EMPTY_STATE, machineState: machine.value };
}
const memoryPod = (uid: string, memory: string): Pod => {
  const asked = { cpu: "1", memory, "hugepages-2Mi": "64Mi" };
  return decodedPod(namedPod(uid, [container("c", asked, asked)]));
};
const managerOf = (state: MemoryState): MemoryManager =>
  memoryManager({ policy: "Static", state, podLevel: false, behaviour: NEWEST.behaviour });
function allocate(manager: MemoryManager, pod: Pod): void {
  const done = manager.allocate(pod, pod.spec.containers[0] as Container, ANY_NODE);
  if (!done.ok) throw new Error(done.error.message);
}
/** 200 containers of 1 GiB each, as many as fit beside the huge pages. */
function busyMachine(): MemoryState {
  const manager = managerOf(emptyMachine());
  for (let i = 0; i < 200; i++) allocate(manager, memoryPod(`u${i}`, "1Gi"));
  return manager.state;
}

function admitCase(name: string, state: MemoryState, pod: Pod): BenchCase {
  const container = pod.spec.containers[0] as Container;
  return {
    name,
    run: () => {
      const manager = managerOf(state);
      manager.containerHints(pod, container);
      allocate(manager, pod);
    },
  };
}
function restartCase(state: MemoryState): BenchCase {
  const reserve = resourceList.parse({ memory: "1Gi" });
  const form = { profile: NEWEST, podLevel: false };
  const setting = {
    policy: "Static",
    numaNodes: NODES,
    reservation: new Map(Object.entries(reserve)),
    reservedMemory: [{ numaNode: 0, limits: reserve }],
    ...form,
    file: memoryStateFile("Static", state, form),
  };
  return {
    name: "memory_manager_state of 200 containers, read and checked",
    run: () => {
      const started = startMemory(setting);
      if (!started.ok) throw new Error(started.error.message);
    },
  };
}

/**
 * One run creates a memory manager of 8 NUMA nodes with huge pages, computes the topology hints for one container, and
 * allocates its memory.
 */
export const MEMORY_CASES: readonly BenchCase[] = [
  admitCase("memory of one node, empty machine", emptyMachine(), memoryPod("asks", "1Gi")),
  admitCase("memory of two nodes, empty machine", emptyMachine(), memoryPod("asks", "100Gi")),
  admitCase("memory of one node, 200 containers there", busyMachine(), memoryPod("asks", "1Gi")),
  restartCase(busyMachine()),
];
