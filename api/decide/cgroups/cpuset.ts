import { formatCpuSet } from "../../model/cpu-set.ts";
import { own } from "../../model/own.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { configurationOf } from "../config.ts";

/** Who runs on which CPUs and NUMA nodes, as the kubelet's state files have it. */
export interface CpuSets {
  readonly cpusOf: (
    uid: string,
    container: string,
  ) => { readonly cpus: string; readonly exclusive: boolean } | undefined;
  readonly memsOf: (uid: string, container: string) => string | undefined;
  readonly hasExclusive: (uid: string) => boolean;
  /** All CPUs of the machine where no CPU manager keeps them; the kubepods cgroup then gets the whole list. */
  readonly allCpus: string | undefined;
}

const none = (): undefined => undefined;

/** `needs` gets the state file of a manager that is on and that was not posted. */
export function cpuSetsOf(snapshot: Snapshot, needs: string[]): CpuSets {
  const config = configurationOf(snapshot);
  const cpuState = snapshot.assignments?.cpu_manager_state;
  const memoryState = snapshot.assignments?.memory_manager_state;
  const isStatic =
    config.cpuManagerPolicy === "static" ||
    (config.cpuManagerPolicy === undefined && cpuState?.policyName === "static");
  const isStaticMemory =
    config.memoryManagerPolicy === "Static" ||
    (config.memoryManagerPolicy === undefined && memoryState?.policyName === "Static");
  if (isStatic && (cpuState ?? null) === null) needs.push("assignments.cpu_manager_state");
  if (isStaticMemory && (memoryState ?? null) === null) needs.push("assignments.memory_manager_state");
  const entries = isStatic ? cpuState?.entries : undefined;
  const shared = (isStatic ? cpuState?.defaultCpuSet : undefined) || undefined; // an empty pool is never written
  const blocks = isStaticMemory ? memoryState?.entries : undefined;
  return {
    cpusOf: !isStatic
      ? none
      : (uid, container) => {
          const exclusive = own(own(entries, uid), container);
          // an empty entry is neither exclusive nor ever written
          if (exclusive === "") return undefined;
          if (exclusive !== undefined) return { cpus: exclusive, exclusive: true };
          return shared === undefined ? undefined : { cpus: shared, exclusive: false };
        },
    memsOf: (uid, container) => {
      const held = own(own(blocks, uid), container);
      if (held === undefined || held.length === 0) return undefined;
      return formatCpuSet([...new Set(held.flatMap((block) => block.numaAffinity))].sort((a, b) => a - b));
    },
    hasExclusive: (uid) => Object.values(own(entries, uid) ?? {}).some((cpus) => cpus !== ""),
    allCpus: isStatic ? undefined : allCpusOf(snapshot),
  };
}

function allCpusOf(snapshot: Snapshot): string | undefined {
  const cpus = snapshot.machine?.cpus;
  if (cpus === null || cpus === undefined || cpus.length === 0) return undefined;
  return formatCpuSet(cpus.map((c) => c.cpu).sort((a, b) => a - b));
}
