import type { Quantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { quote } from "../go/strconv.ts";
import { writeCheckpoint } from "./checkpoint.ts";
import { readCheckpoint } from "./checkpoint-read.ts";
import { machineMemory, type NumaNodeMemory } from "./machine-memory.ts";
import { type ReservedMemory, systemReservedOf } from "./reserved-memory.ts";
import { restoreState } from "./restore.ts";
import { EMPTY_STATE, type MachineMemory, type MemoryFault, type MemoryState } from "./state.ts";

export interface MemoryStart {
  /** memoryManagerPolicy; the configuration's default is `None`. */
  readonly policy: string;
  readonly numaNodes: readonly NumaNodeMemory[];
  /** Of `memoryReservation`. */
  readonly reservation: ReadonlyMap<string, Quantity>;
  readonly reservedMemory: ReservedMemory;
  /** The gate PodLevelResourceManagers is on. */
  readonly podLevel: boolean;
  /** The text of memory_manager_state; undefined: there is no such file, and the kubelet makes one. An empty one is a fault. */
  readonly file: string | undefined;
  /** Where the file is, which the kubelet says in its error. */
  readonly path?: string;
}
export interface StartedMemory {
  readonly policy: "None" | "Static";
  readonly state: MemoryState;
}
const DEFAULT_PATH = "/var/lib/kubelet/memory_manager_state";
const start = (message: string): Result<never, MemoryFault> => err({ code: "start", message });

/** What the memory manager starts from, on Linux. Errors: why it does not. kubelet 1.36: memorymanager.NewManager, Start. */
export function startMemory(setting: MemoryStart): Result<StartedMemory, MemoryFault> {
  const { policy, numaNodes, file, podLevel } = setting;
  if (policy === "BestEffort") return start(`policy "BestEffort" is not available for platform "linux"`);
  if (policy !== "None" && policy !== "Static") return start(`unknown policy: ${quote(policy)}`);
  const fresh = policy === "None" ? ok(EMPTY_STATE.machineState) : freshMachine(numaNodes, setting);
  if (!fresh.ok) return fresh;
  if (file === undefined) return ok({ policy, state: { ...EMPTY_STATE, machineState: fresh.value } });
  const kept = readCheckpoint(file, podLevel);
  if (!kept.ok) return notRestored(kept.error, setting);
  const { policyName } = kept.value;
  if (policyName !== policy) {
    const names = `configured policy ${quote(policy)} differs from state checkpoint policy ${quote(policyName)}`;
    return notRestored(`[memorymanager] ${names}`, setting);
  }
  // the policy None looks at nothing, and gives nothing
  if (policy === "None") return ok({ policy, state: EMPTY_STATE });
  const restored = restoreState(kept.value, fresh.value);
  return restored.ok ? ok({ policy, state: restored.value }) : restored;
}

function freshMachine(
  numaNodes: readonly NumaNodeMemory[],
  { reservation, reservedMemory }: MemoryStart,
): Result<MachineMemory, MemoryFault> {
  const ids = numaNodes.map(({ id }) => id);
  const reserved = systemReservedOf(ids, reservation, reservedMemory);
  return reserved.ok ? machineMemory(numaNodes, reserved.value) : start(reserved.error);
}

const notRestored = (why: string, { path = DEFAULT_PATH }: MemoryStart): Result<never, MemoryFault> =>
  start(
    `could not restore state from checkpoint: ${why}, please drain this node and delete the memory manager checkpoint file ${quote(path)} before restarting Kubelet`,
  );

/** The text of memory_manager_state. `podLevel`: the gate PodLevelResourceManagers is on, which writes another version. */
export const memoryStateFile = (policy: "None" | "Static", state: MemoryState, podLevel: boolean): string =>
  writeCheckpoint(policy, state, podLevel ? "v2" : "v1");
