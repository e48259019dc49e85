import { hashedText } from "../../api/decide/memory/checkpoint.ts";
import {
  EMPTY_STATE,
  type MachineMemory,
  type MemoryState,
  machineMemory,
} from "../../api/decide/memory/machine-memory.ts";
import { type MemoryManager, memoryManager } from "../../api/decide/memory/manager.ts";
import { memoryStateFile } from "../../api/decide/memory/start.ts";
import {
  ANY_NODE,
  idsOf,
  type NumaNodes,
  type ResourceHints,
  type TopologyHint,
} from "../../api/decide/topology/hint.ts";
import { type Container, containersOf, type Pod } from "../../api/model/pod.ts";
import type { Behaviour, Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import { type Suite, suite } from "./suite.ts";

interface NodeInput {
  readonly id: number;
  readonly memoryBytes: number;
  readonly hugepages2Mi: number;
  readonly systemReservedBytes: number;
}
type OpInput =
  | { readonly op: "add"; readonly pod: unknown; readonly pick?: number }
  | { readonly op: "remove"; readonly podUID: string; readonly container: string };
interface Input {
  readonly numaNodes: readonly NodeInput[];
  readonly ops: readonly OpInput[];
}
type Op = Exclude<OpInput, { op: "add" }> | { readonly op: "add"; readonly pod: Pod; readonly pick?: number };
interface Read {
  readonly behaviour: Behaviour;
  readonly machine: MachineMemory;
  readonly ops: readonly Op[];
}

function read({ numaNodes, ops }: Input, { behaviour }: Profile): Read {
  return {
    behaviour,
    machine: readMachine(numaNodes),
    ops: ops.map((op) => (op.op === "add" ? { ...op, pod: decodedPod(op.pod) } : op)),
  };
}
export function readMachine(numaNodes: readonly NodeInput[]): MachineMemory {
  const nodes = numaNodes.map(({ id, memoryBytes, hugepages2Mi }) => ({
    id,
    memoryBytes,
    ...(hugepages2Mi > 0 && { hugepages: { "2Mi": hugepages2Mi } }),
  }));
  const machine = machineMemory(
    nodes,
    new Map(numaNodes.map((node) => [node.id, new Map([["memory", node.systemReservedBytes]])])),
  );
  if (!machine.ok) throw new Error(machine.error.message);
  return machine.value;
}

export const managerOf = ({ machine, behaviour }: Pick<Read, "machine" | "behaviour">): MemoryManager =>
  memoryManager({ policy: "Static", state: { ...EMPTY_STATE, machineState: machine }, podLevel: false, behaviour });

/** Allocates memory to a pod's containers in turn; returns the kubelet's message for the first failure. */
function apply(manager: MemoryManager, op: Op, affinity: Affinity = () => ANY_NODE): string | undefined {
  if (op.op === "remove") {
    manager.removeContainer(op.podUID, op.container);
    return undefined;
  }
  for (const container of containersOf(op.pod)) {
    const allocated = manager.allocate(op.pod, container, affinity(container, op));
    if (!allocated.ok) return allocated.error.message;
  }
  return undefined;
}
type Affinity = (container: Container, op: Extract<Op, { op: "add" }>) => TopologyHint;

const showMaps = <V>(map: ReadonlyMap<string | number, V>, show: (value: V) => unknown): Record<string, unknown> =>
  Object.fromEntries([...map].map(([key, value]) => [key, show(value)]));
/** Maps pod uid and container to its memory blocks. */
export const shownBlocks = ({ entries }: MemoryState): Record<string, unknown> =>
  showMaps(entries, (containers) => showMaps(containers, (blocks) => [...blocks]));
const shown = (state: MemoryState) => ({
  assignments: shownBlocks(state),
  free: showMaps(state.machineState, ({ memoryMap }) => showMaps(memoryMap, ({ free }) => free)),
});

const manager = suite({
  read,
  decide: (input) => {
    const working = managerOf(input);
    return input.ops.map((op) => ({ error: apply(working, op), ...shown(working.state) }));
  },
  show: (steps) => ({ steps }),
});

const hints = suite({
  read: ({ pod, ...input }: Input & { pod: unknown }, profile) => ({ ...read(input, profile), pod: decodedPod(pod) }),
  decide: (input) => {
    const working = managerOf(input);
    for (const op of input.ops) apply(working, op);
    const containers = containersOf(input.pod).map((c) => [c.name, working.containerHints(input.pod, c)] as const);
    return { numa: working.numa, containers, pod: working.podHints(input.pod) };
  },
  show: ({ numa, containers, pod }) => ({
    containerHints: Object.fromEntries(containers.map(([name, h]) => [name, shownHints(numa, h)])),
    podHints: shownHints(numa, pod),
  }),
});
const shownHints = (numa: NumaNodes, hints: ResourceHints) =>
  showMaps(hints, (ways) =>
    (ways ?? []).map(({ nodes, preferred }) => ({ numaNodes: idsOf(numa, nodes as number), preferred })),
  );

const stateFile = suite({
  read,
  decide: (input, profile) => {
    const working = managerOf(input);
    for (const op of input.ops) apply(working, op);
    const checkpoint = { policyName: "Static", ...working.state };
    return { file: memoryStateFile("Static", working.state, { profile, podLevel: false }), checkpoint };
  },
  show: ({ file, checkpoint }) => ({ file, hashed: hashedText(checkpoint, "v1") }),
});

/** Requests each container's hints in turn and allocates its memory with one of them, or with `pick` 0 on any node. */
function affinityStep(manager: MemoryManager, op: Op): Record<string, unknown> {
  const { numa, state } = manager;
  const hints: unknown[] = [];
  const podHints = op.op === "add" ? shownHints(numa, manager.podHints(op.pod)) : undefined;
  const error = apply(manager, op, (container, { pod, pick = 0 }) => {
    const found = manager.containerHints(pod, container);
    hints.push(shownHints(numa, found));
    const ways = pick === 0 ? [] : (found.get("memory") ?? []);
    return ways[(pick - 1) % ways.length] ?? { nodes: null, preferred: true };
  });
  const free = showMaps(state.machineState, ({ cells, memoryMap }) => ({
    ...showMaps(memoryMap, (table) => table.free),
    cells: cells.length,
  }));
  return { assignments: shownBlocks(state), free, ...(podHints && { podHints, hints }), ...(error && { error }) };
}
interface AffinityStep {
  readonly hints?: readonly unknown[];
  readonly podHints?: unknown;
}
const underAffinity = suite({
  read,
  decide: (input) => {
    const working = managerOf(input);
    return input.ops.map((op) => affinityStep(working, op));
  },
  show: (steps) => ({ steps }),
  // the topology manager treats missing hints and an empty list of hints as equal
  expected: ({ steps }: { steps: readonly AffinityStep[] }) => ({
    steps: steps.map(({ hints, podHints, ...step }) =>
      hints === undefined ? step : { ...step, podHints: podHints ?? {}, hints: hints.map((h) => h ?? {}) },
    ),
  }),
});

export const MEMORY_SUITES: Readonly<Record<string, Suite>> = {
  "memory-manager": manager,
  "memory-hints": hints,
  "memory-state-file": stateFile,
  "x-mem-affinity": underAffinity,
};
