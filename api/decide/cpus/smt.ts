import type { AllocateError } from "../topology/hint.ts";
import type { StaticPolicy } from "./policy.ts";
import { type CpuSet, minus } from "./sets.ts";

/**
 * Why full-pcpus-only refuses so many CPUs; undefined where it does not. Cores that hold a reserved CPU do not count as
 * free. kubelet 1.36: enforceSMTAlignment.
 */
export function smtFault({ options, topology, reservedCores }: StaticPolicy, pool: CpuSet, count: number) {
  if (!options.fullPcpusOnly) return undefined;
  const perCore = topology.cpusPerCore;
  if (count % perCore !== 0) return fault(`requested ${count} cpus not multiple cpus per core = ${perCore}`);
  const free = minus(pool, reservedCores).size;
  if (count <= free) return undefined;
  return fault(
    `not enough free physical CPUs: available physical CPUs = ${free}, requested CPUs = ${count}, CPUs per core = ${perCore}`,
  );
}
const fault = (what: string): AllocateError => ({
  message: `SMT Alignment Error: ${what}`,
  reason: "SMTAlignmentError",
});
