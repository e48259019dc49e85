import { resolve } from "node:path";
import { type Missing, machineFiles } from "./files.ts";

/** Name -> where it lies below the kubelet's directory. */
const STATE_FILES = {
  cpu_manager_state: "cpu_manager_state",
  memory_manager_state: "memory_manager_state",
  kubelet_internal_checkpoint: "device-plugins/kubelet_internal_checkpoint",
  allocated_pods_state: "allocated_pods_state",
};

export interface StateFiles {
  /** Text by file name, as `snapshot.assignments` takes it; `undefined` where there is none at all. */
  readonly assignments: Readonly<Record<string, string>> | undefined;
  /** Files that are there and cannot be read. */
  readonly missing: readonly Missing[];
}

/** The state files that a kubelet keeps in its directory. Reads only, never throws; most machines have none. */
export function readStateFiles(directory: string, root = "/"): StateFiles {
  const files = machineFiles(root);
  const found = Object.entries(STATE_FILES).map(
    ([name, path]) => [name, files.optionalText(resolve(directory, path))] as const,
  );
  const present = found.filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
  return { assignments: present.length === 0 ? undefined : Object.fromEntries(present), missing: files.missing };
}
