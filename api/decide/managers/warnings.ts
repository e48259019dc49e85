import type { PodRef } from "../../model/managers.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type CheckpointV2, hashedV2 } from "../cpus/checkpoint.ts";
import { common, cpuText } from "../cpus/sets.ts";
import { startState } from "../cpus/start.ts";
import { sharedCpus } from "../cpus/state.ts";
import { sharedDevices } from "../devices/shared-devices.ts";
import { fnv1a } from "../go/checksum.ts";
import { nextFiles } from "./next-state.ts";
import type { ManagedNode, Managers } from "./node.ts";

/** What the kubelet takes without a word, of a node as it will be; each names the file that it is about. */
export function warningsOf(
  node: ManagedNode,
  before: Managers,
  after: Managers,
  nameOf: (uid: string) => PodRef,
): readonly string[] {
  const name = (uid: string): string => {
    const { namespace, name: pod } = nameOf(uid);
    return pod === "" ? `pod ${uid}` : `${namespace}/${pod}`;
  };
  const warnings = [...fileWarnings(node.snapshot)];
  if (node.checkpointError !== null) {
    const lost = "the kubelet logs it, goes on as if no container held a device, and writes it anew";
    warnings.push(`kubelet_internal_checkpoint: ${node.checkpointError}: ${lost}; keep a copy`);
  }
  for (const { cpus, holders } of sharedCpus(before.cpus.state().assignments)) {
    const who = holders.map(({ uid, container }) => `${name(uid)} (${container})`).join(" and ");
    warnings.push(`cpu_manager_state: CPUs ${cpuText(cpus)} belong to ${who} at once`);
  }
  for (const { resource, id, podUids } of sharedDevices(before.devices.checkpoint().entries)) {
    warnings.push(
      `kubelet_internal_checkpoint: ${resource} ${id} belongs to ${podUids.map(name).join(" and ")} at once`,
    );
  }
  return [...warnings, ...restartWarnings(node, after, name)];
}

/** Reserved CPUs that are given away, and a file with which the kubelet would not start again. */
function restartWarnings({ cpuPolicy, settings }: ManagedNode, { cpus }: Managers, name: (uid: string) => string) {
  if (cpuPolicy.name === "none") return [];
  const warnings: string[] = [];
  const state = cpus.state();
  for (const [uid, containers] of state.assignments) {
    for (const [container, own] of containers) {
      const reserved = common(own, cpuPolicy.reserved);
      if (reserved.size === 0) continue;
      warnings.push(
        `reserved CPUs ${cpuText(reserved)} are given to ${name(uid)} (${container}): the kubelet takes a core for free where as many of its threads are free as cores have on average`,
      );
    }
  }
  const { cpu_manager_state: file } = nextFiles(cpuPolicy.name, state, settings.podLevel);
  const again = startState({ policy: cpuPolicy, file, podLevelManagers: settings.podLevel });
  if (!again.ok) warnings.push(`cpu_manager_state: with the next one the kubelet does not start again: ${again.error}`);
  return warnings;
}

type Loose = Readonly<Record<string, unknown>>;
const parsed = (text: string | undefined): Loose | undefined => {
  try {
    const value = JSON.parse(text ?? "") as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : undefined;
  } catch {
    return undefined;
  }
};

/** Old versions, and checksums that are missing or wrong, whatever the kubelet says of them. */
export function fileWarnings({ assignments = {} }: Snapshot): readonly string[] {
  const warnings: string[] = [];
  for (const file of ["cpu_manager_state", "memory_manager_state"] as const) {
    const state = parsed(assignments[file]);
    if (state !== undefined && (state["checksum"] ?? 0) === 0) {
      warnings.push(`${file}: it has no checksum, and the kubelet takes it as it is`);
    }
  }
  const cpus = parsed(assignments.cpu_manager_state);
  const entries = Object.entries((cpus?.["entries"] ?? {}) as Loose);
  if (entries.some(([, of]) => typeof of === "string")) {
    warnings.push(
      "cpu_manager_state: version 1, which knows containers by their ids; the kubelet writes it anew as version 2",
    );
  } else if (cpus !== undefined && typeof cpus["checksum"] === "number" && cpus["checksum"] !== 0) {
    const actual = fnv1a(hashedV2(fieldsOf(cpus, entries)));
    if (actual !== cpus["checksum"] && cpus["podEntries"] === undefined) {
      warnings.push(`cpu_manager_state: its checksum is ${cpus["checksum"]}, its content gives ${actual}`);
    }
  }
  return warnings;
}

const fieldsOf = (file: Loose, entries: readonly (readonly [string, unknown])[]): CheckpointV2 => ({
  policyName: String(file["policyName"] ?? ""),
  defaultCpuSet: String(file["defaultCpuSet"] ?? ""),
  entries: new Map(
    entries.map(([uid, of]) => [uid, new Map(Object.entries((of ?? {}) as Loose).map(([c, v]) => [c, String(v)]))]),
  ),
});
