import { err, ok, type Result } from "../../model/result.ts";
import type { Checkpoint, FileBlock } from "./checkpoint.ts";
import { compareMachines, machineOf, readMachine } from "./file-machine.ts";
import { copyMachine, type OpenMachine, take } from "./machine-memory.ts";
import {
  type Block,
  type ContainerBlocks,
  type MachineMemory,
  type MemoryFault,
  type MemoryState,
  NIL_POINTER,
  type PodBlocks,
} from "./state.ts";

const start = (what: string): Result<never, MemoryFault> => err({ code: "start", message: `[memorymanager] ${what}` });
const panic = (): Result<never, MemoryFault> => err({ code: "panic", message: NIL_POINTER });

/**
 * The state that the Static policy goes on with: the file's, if its machine is this one with the file's blocks on it.
 * `machine`: this one without any. Errors: as the kubelet starts, or would fall over; or an amount beyond 2^53.
 * kubelet 1.36: staticPolicy.validateState.
 */
export function restoreState(file: Checkpoint, machine: MachineMemory): Result<MemoryState, MemoryFault> {
  const entries = new Map(
    [...(file.entries ?? [])].map(([uid, list]) => [
      uid,
      new Map([...(list ?? [])].map(([container, blocks]) => [container, (blocks ?? []).map(blockOf)])),
    ]),
  );
  const podEntries = new Map([...(file.podEntries ?? [])].map(([uid, list]) => [uid, (list ?? []).map(blockOf)]));
  const kept = readMachine(file.machineState);
  if (kept === undefined) return panic();
  if (kept.size === 0) {
    if (entries.size > 0) return start("machine state can not be empty when it has memory assignments");
    return ok({ machineState: machine, entries, podEntries });
  }
  const expected = copyMachine(machine);
  const fault = assignAll(expected, entries, podEntries);
  if (fault !== undefined) return start(fault);
  const compared = compareMachines(kept, expected);
  if (compared === "nil") return panic();
  if (compared === "different") return start("the expected machine state is different from the real one");
  const machineState = machineOf(kept);
  const blocks = [...podEntries.values(), ...[...entries.values()].flatMap((list) => [...list.values()])].flat();
  if (machineState === undefined || !blocks.every(({ size }) => Number.isSafeInteger(size))) {
    return err({ code: "bound", message: "memory_manager_state has an amount beyond 2^53 bytes" });
  }
  return ok({ machineState, entries, podEntries });
}

/** A size beyond 2^53 is more than any node has, whatever it is exactly. */
const blockOf = ({ numaAffinity, type, size }: FileBlock): Block => ({
  numaAffinity: (numaAffinity ?? []).map(Number),
  type,
  size: Number(size),
});

/**
 * Pods by uid, containers by name. The kubelet goes in the order of Go's maps, which counts where a node has blocks of its own
 * and blocks of a group: hints of other resources can bring that about, and such a kubelet starts again or not by chance.
 */
function assignAll(machine: OpenMachine, entries: ContainerBlocks, podEntries: PodBlocks): string | undefined {
  for (const [uid, containers] of byName(entries)) {
    const whole = podEntries.get(uid) ?? [];
    const lists = whole.length > 0 ? ([["", whole]] as const) : byName(containers);
    for (const [container, blocks] of lists) {
      const fault = blocks.map((block) => assign(machine, block)).find((f) => f !== undefined);
      if (fault !== undefined) return `(pod: ${uid}, container: ${container}) the memory assignment uses ${fault}`;
    }
  }
  return undefined;
}
const byName = <V>(map: ReadonlyMap<string, V>): (readonly [string, V])[] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));

/** kubelet 1.36: updateExpectedMachineState. */
function assign(machine: OpenMachine, { numaAffinity, type, size }: Block): string | undefined {
  for (const id of numaAffinity) {
    const node = machine.get(id);
    if (node === undefined) return "the NUMA that does not exist";
    if (!node.memoryMap.has(type)) return "memory resource that does not exist";
  }
  take(machine, numaAffinity, type, size);
  return undefined;
}
