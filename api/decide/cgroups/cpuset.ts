import {
  type CpuManagerState,
  type MemoryManagerState,
  readCpuManagerState,
  readMemoryManagerState,
} from "../../model/assignments.ts";
import { formatCpuSet } from "../../model/cpu-set.ts";
import type { Refusal } from "../../model/decision.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import { own } from "../../model/own.ts";
import { err, ok, type Result } from "../../model/result.ts";
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

/** `needs` gets the state file of a manager that is on and that was not posted. Errors: a state file that cannot be read. */
export function cpuSetsOf(snapshot: Snapshot, needs: string[]): Result<CpuSets, Refusal> {
  const { cpu_manager_state: cpuFile, memory_manager_state: memoryFile } = snapshot.assignments ?? {};
  const cpuState = cpuFile === undefined ? NO_FILE : readCpuManagerState(cpuFile);
  if (!cpuState.ok) return unreadable(cpuState.error);
  const memoryState = memoryFile === undefined ? NO_FILE : readMemoryManagerState(memoryFile);
  if (!memoryState.ok) return unreadable(memoryState.error);
  return ok(setsOf(snapshot, cpuState.value, memoryState.value, needs));
}
const NO_FILE = ok(undefined);
const unreadable = ({ path, message }: InputIssue): Result<never, Refusal> =>
  err({
    code: "invalid_state",
    message: `${path}: ${message}; decide \`cpus\` or \`memory\` to see what the kubelet makes of it, or leave it out`,
    needs: [path],
  });

function setsOf(
  snapshot: Snapshot,
  cpuState: CpuManagerState | undefined,
  memoryState: MemoryManagerState | undefined,
  needs: string[],
): CpuSets {
  const config = configurationOf(snapshot);
  const isStatic =
    config.cpuManagerPolicy === "static" ||
    (config.cpuManagerPolicy === undefined && cpuState?.policyName === "static");
  const isStaticMemory =
    config.memoryManagerPolicy === "Static" ||
    (config.memoryManagerPolicy === undefined && memoryState?.policyName === "Static");
  if (isStatic && cpuState === undefined) needs.push("assignments.cpu_manager_state");
  if (isStaticMemory && memoryState === undefined) needs.push("assignments.memory_manager_state");
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
