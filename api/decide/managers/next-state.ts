import { writeCpuState } from "../cpus/checkpoint.ts";
import { writeCheckpoint } from "../devices/checkpoint.ts";
import { memoryStateFile } from "../memory/start.ts";
import type { Answered } from "./desk.ts";

/** The kubelet's state files as it would write them now, to post back as `assignments`; those of managers that are off stay away. */
export function nextState({ node, after }: Answered): { readonly assignments: Readonly<Record<string, string>> } {
  const files: Record<string, string> = {};
  files["cpu_manager_state"] = writeCpuState(node.cpuPolicy.name, after.cpus.state(), node.settings.podLevel);
  files["memory_manager_state"] = memoryStateFile(node.memory.policy, after.memory.state, node.settings.podLevel);
  if (node.inventories.size > 0 || node.checkpoint !== undefined) {
    files["kubelet_internal_checkpoint"] = writeCheckpoint(after.devices.checkpoint());
  }
  return { assignments: files };
}
