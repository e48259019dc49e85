import { writeCpuState } from "../cpus/checkpoint.ts";
import type { CpuState } from "../cpus/state.ts";
import { writeCheckpoint } from "../devices/checkpoint.ts";
import { memoryStateFile } from "../memory/start.ts";
import type { ManagedNode, Managers } from "./node.ts";

/** The CPU manager's file as the kubelet would write it now. */
export const nextFiles = (
  policyName: string,
  state: CpuState,
  podLevel: boolean,
): { readonly cpu_manager_state: string } => ({
  cpu_manager_state: writeCpuState(policyName, state, podLevel),
});

/** The kubelet's state files as it would write them now, to post back as `assignments`. */
export function nextState(
  node: ManagedNode,
  after: Managers,
): { readonly assignments: Readonly<Record<string, string>> } {
  const { podLevel } = node.settings;
  const files: Record<string, string> = {
    ...nextFiles(node.cpuPolicy.name, after.cpus.state(), podLevel),
    memory_manager_state: memoryStateFile(node.memory.policy, after.memory.state, podLevel),
  };
  if (node.inventories.size > 0 || node.checkpoint !== undefined) {
    files["kubelet_internal_checkpoint"] = writeCheckpoint(after.devices.checkpoint());
  }
  return { assignments: files };
}
