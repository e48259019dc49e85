import { hashedText } from "../../api/decide/memory/checkpoint.ts";
import { machineMemory } from "../../api/decide/memory/machine-memory.ts";
import { type MemoryManager, memoryManager } from "../../api/decide/memory/manager.ts";
import { memoryStateFile } from "../../api/decide/memory/start.ts";
import { EMPTY_STATE, type MachineMemory, type MemoryState } from "../../api/decide/memory/state.ts";
import { ANY_NODE, type ResourceHints } from "../../api/decide/topology/hint.ts";
import { idsOf } from "../../api/decide/topology/numa-nodes.ts";
import { type Container, type Pod, pod as podSchema } from "../../api/model/pod.ts";
import { type Suite, suite } from "./suite.ts";

interface NodeInput {
  readonly id: number;
  readonly memoryBytes: number;
  readonly hugepages2Mi: number;
  readonly systemReservedBytes: number;
}
type OpInput =
  | { readonly op: "add"; readonly pod: unknown }
  | { readonly op: "remove"; readonly podUID: string; readonly container: string };
interface Input {
  readonly numaNodes: readonly NodeInput[];
  readonly ops: readonly OpInput[];
}
type Op = Exclude<OpInput, { op: "add" }> | { readonly op: "add"; readonly pod: Pod };
interface Read {
  readonly machine: MachineMemory;
  readonly ops: readonly Op[];
}

function read({ numaNodes, ops }: Input): Read {
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
  return {
    machine: machine.value,
    ops: ops.map((op) => (op.op === "add" ? { ...op, pod: podSchema.parse(op.pod) } : op)),
  };
}

const containersOf = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...spec.containers];
const managerOf = ({ machine }: Read): MemoryManager =>
  memoryManager({ policy: "Static", state: { ...EMPTY_STATE, machineState: machine }, podLevel: false });

/** The kubelet's text where a container gets nothing, which ends its pod's turn. */
function apply(manager: MemoryManager, op: Op): string | undefined {
  if (op.op === "remove") {
    manager.removeContainer(op.podUID, op.container);
    return undefined;
  }
  for (const container of containersOf(op.pod)) {
    const allocated = manager.allocate(op.pod, container, ANY_NODE);
    if (!allocated.ok) return allocated.error.message;
  }
  return undefined;
}

const showMaps = <V>(map: ReadonlyMap<string | number, V>, show: (value: V) => unknown): Record<string, unknown> =>
  Object.fromEntries([...map].map(([key, value]) => [key, show(value)]));
const shown = ({ entries, machineState }: MemoryState) => ({
  assignments: showMaps(entries, (containers) => showMaps(containers, (blocks) => [...blocks])),
  free: showMaps(machineState, ({ memoryMap }) => showMaps(memoryMap, ({ free }) => free)),
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
  read: ({ pod, ...input }: Input & { pod: unknown }) => ({ ...read(input), pod: podSchema.parse(pod) }),
  decide: (input) => {
    const working = managerOf(input);
    for (const op of input.ops) apply(working, op);
    const containers = containersOf(input.pod).map((c) => [c.name, working.containerHints(input.pod, c)] as const);
    return { numa: working.numa, containers, pod: working.podHints(input.pod) };
  },
  show: ({ numa, containers, pod }) => {
    const list = (hints: ResourceHints) =>
      showMaps(hints, (ways) =>
        (ways ?? []).map(({ nodes, preferred }) => ({ numaNodes: idsOf(numa, nodes as number), preferred })),
      );
    return { containerHints: Object.fromEntries(containers.map(([name, h]) => [name, list(h)])), podHints: list(pod) };
  },
});

const stateFile = suite({
  read,
  decide: (input) => {
    const working = managerOf(input);
    for (const op of input.ops) apply(working, op);
    const checkpoint = { policyName: "Static", ...working.state };
    return { file: memoryStateFile("Static", working.state, false), checkpoint };
  },
  show: ({ file, checkpoint }) => ({ file, hashed: hashedText(checkpoint, "v1") }),
});

export const MEMORY_SUITES: Readonly<Record<string, Suite>> = {
  "memory-manager": manager,
  "memory-hints": hints,
  "memory-state-file": stateFile,
};
