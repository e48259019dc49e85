import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { quote } from "../go/strconv.ts";
import type { CpuAssignments, CpuState } from "./checkpoint.ts";
import type { CpuPolicy, StaticPolicy } from "./policy.ts";
import { type ReadCheckpoint, type ReadOptions, readCheckpoint } from "./read-checkpoint.ts";
import { type CpuSet, common, cpuListReader, cpuText, minus, NO_CPUS, parseCpus, sameCpus } from "./sets.ts";

export interface StartInput extends ReadOptions {
  readonly policy: CpuPolicy;
  /** The text of cpu_manager_state; undefined: the file does not exist, which differs from an empty file. */
  readonly file: string | undefined;
  /** The kubelet's root directory, which its error messages contain. */
  readonly rootDir?: string;
}
const ROOT_DIR = "/var/lib/kubelet";

/**
 * The state with which a kubelet starts, or why it does not start, in its words. A missing file, or one with an empty
 * pool and no assignments, gives a fresh state. If there are several faults, the kubelet reports a random one; this
 * reports the first by pod uid and container. kubelet 1.36: cpumanager.Start.
 */
export function startState({ policy, file, rootDir = ROOT_DIR, ...options }: StartInput): Result<CpuState, string> {
  if (file === undefined) return ok(freshState(policy));
  const restored = restore(file, policy.name, options);
  if (restored.ok) return policy.name === "none" ? restored : validated(policy, restored.value);
  const path = `${rootDir.replace(/\/+$/, "")}/cpu_manager_state`;
  return err(
    `could not restore state from checkpoint: ${restored.error}, please drain this node and delete the CPU manager checkpoint file ${quote(path)} before restarting Kubelet`,
  );
}

/** The state of a kubelet that starts without a file; policy `none` has no pool. */
export const freshState = (policy: CpuPolicy): CpuState => ({
  defaultCpus: policy.name === "none" ? NO_CPUS : managedCpus(policy),
  assignments: new Map(),
  podCpus: new Map(),
});
/** The CPUs that the policy manages; with strict-cpu-reservation, without the reserved ones. */
const managedCpus = ({ topology, options, reserved }: StaticPolicy): CpuSet =>
  options.strictReservation ? minus(topology.all, reserved) : topology.all;

/** kubelet 1.36: restoreState. */
function restore(text: string, policyName: string, options: ReadOptions): Result<CpuState, string> {
  const checkpoint = readCheckpoint(text, options);
  if (!checkpoint.ok) return checkpoint;
  const { profile, podLevel, exclusiveResize } = options;
  const { policyName: found, defaultCpuSet, podEntries } = checkpoint.value;
  if (found !== policyName) {
    return err(`configured policy ${quote(policyName)} differs from state checkpoint policy ${quote(found)}`);
  }
  const defaultCpus = parseCpus(defaultCpuSet);
  if (!defaultCpus.ok) return err(`${profile.words.badDefaultCpuSet(quote(defaultCpuSet))}: ${defaultCpus.error}`);
  const assignments = assignmentsOf(checkpoint.value);
  if (!assignments.ok) return assignments;
  const fault = exclusiveResize === true ? baselineFault(checkpoint.value) : undefined;
  if (fault !== undefined) return err(fault);
  const podCpus = new Map(Array.from(podLevel ? (podEntries ?? []) : [], ([uid, cpus]) => [uid, new Set(cpus)]));
  return ok({ defaultCpus: defaultCpus.value, assignments: assignments.value, podCpus });
}
function assignmentsOf({ entries }: ReadCheckpoint): Result<CpuAssignments, string> {
  const assignments = new Map<string, Map<string, CpuSet>>();
  const read = cpuListReader();
  for (const [uid, containers] of entries === null ? [] : [...entries].sort(byKey)) {
    const held = new Map<string, CpuSet>();
    for (const [name, text] of containers === null ? [] : [...containers].sort(byKey)) {
      const cpus = read(text);
      if (!cpus.ok) {
        return err(
          `could not parse cpuset ${quote(text)} for container ${quote(name)} in pod ${quote(uid)}: ${cpus.error}`,
        );
      }
      held.set(name, cpus.value);
    }
    assignments.set(uid, held);
  }
  return ok(assignments);
}
/** The fault of the baselines, which are read only to check their form: see `writeCpuState`. */
function baselineFault({ baselines }: ReadCheckpoint): string | undefined {
  const read = cpuListReader();
  for (const [uid, containers] of baselines ? [...baselines].sort(byKey) : []) {
    for (const [name, { baseline }] of containers ? [...containers].sort(byKey) : []) {
      const cpus = read(baseline);
      if (cpus.ok) continue;
      const whose = `for container ${quote(name)} in pod ${quote(uid)}`;
      return `could not parse Baseline cpuset ${quote(baseline)} ${whose}: ${cpus.error}`;
    }
  }
  return undefined;
}

/** Checks that the state fits this machine and this reserve. kubelet 1.36: validateState. */
function validated(policy: StaticPolicy, state: CpuState): Result<CpuState, string> {
  const { defaultCpus, assignments, podCpus } = state;
  const managed = managedCpus(policy);
  if (defaultCpus.size === 0) {
    return assignments.size > 0 ? err("default cpuset cannot be empty") : ok({ ...state, defaultCpus: managed });
  }
  const pool = quote(cpuText(defaultCpus));
  const misplaced = misplacedReserve(policy, defaultCpus);
  if (misplaced !== undefined) return err(`${misplaced} are present in defaultCpuSet: ${pool}`);
  const known = new Set(defaultCpus);
  for (const [uid, containers] of [...assignments].sort(byKey)) {
    for (const [name, cpus] of [...containers].sort(byKey)) {
      if (common(defaultCpus, cpus).size > 0) {
        return err(
          `pod: ${uid}, container: ${name} cpuset: ${quote(cpuText(cpus))} overlaps with default cpuset ${pool}`,
        );
      }
      for (const cpu of cpus) known.add(cpu);
    }
  }
  for (const cpus of podCpus.values()) for (const cpu of cpus) known.add(cpu);
  if (sameCpus(known, managed)) return ok(state);
  return err(
    `current set of available CPUs ${quote(cpuText(managed))} doesn't match with CPUs in state ${quote(cpuText(known))}`,
  );
}
function misplacedReserve({ options, reserved }: StaticPolicy, pool: CpuSet): string | undefined {
  const inside = common(reserved, pool);
  if (options.strictReservation) {
    return inside.size === 0 ? undefined : `some of strictly reserved cpus: ${quote(cpuText(inside))}`;
  }
  return sameCpus(inside, reserved) ? undefined : `not all reserved cpus: ${quote(cpuText(reserved))}`;
}
