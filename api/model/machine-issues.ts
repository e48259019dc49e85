import { parseCpuSet } from "./cpu-set.ts";
import type { InputIssue } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import type { Machine } from "./machine.ts";

/** What the schema of one field cannot see: a topology that no machine has. `at`: the path of the machine. */
export function machineIssues(machine: Machine, at: string): readonly InputIssue[] {
  const issues = [...cpuIssues(machine, at), ...numaIssues(machine, at), ...distanceIssues(machine, at)];
  return issues.slice(0, LIMITS.issues);
}

type Cpu = NonNullable<Machine["cpus"]>[number];

function cpuIssues({ cpus = [], offlineCpus }: Machine, at: string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<number, number>();
  const cores = new Map<string, Cpu>();
  for (const [i, cpu] of cpus.entries()) {
    const first = seen.get(cpu.cpu);
    if (first === undefined) seen.set(cpu.cpu, i);
    else issues.push({ path: `${at}.cpus[${i}].cpu`, message: `CPU ${cpu.cpu} is also ${at}.cpus[${first}]` });
    const core = `${cpu.socket}/${cpu.core}`;
    const sibling = cores.get(core);
    if (sibling === undefined) cores.set(core, cpu);
    else if (sibling.numa !== cpu.numa) {
      const message = `core ${cpu.core} is on NUMA node ${sibling.numa} (CPU ${sibling.cpu}) and on ${cpu.numa}`;
      issues.push({ path: `${at}.cpus[${i}].numa`, message });
    } else if (sibling.uncoreCache !== cpu.uncoreCache) {
      const message = `core ${cpu.core} has two uncore caches, ${sibling.uncoreCache ?? "none"} (CPU ${sibling.cpu}) and ${cpu.uncoreCache ?? "none"}`;
      issues.push({ path: `${at}.cpus[${i}].uncoreCache`, message });
    }
  }
  const offline = parseCpuSet(offlineCpus ?? "");
  const both = offline?.find((cpu) => seen.has(cpu));
  if (offline === undefined) issues.push({ path: `${at}.offlineCpus`, message: "must be a CPU list such as 0-3,8" });
  if (both !== undefined) {
    issues.push({ path: `${at}.offlineCpus`, message: `CPU ${both} is also ${at}.cpus[${seen.get(both)}]` });
  }
  return [...issues, ...holes(seen, new Set(offline ?? []), at)];
}

/** CPUs are numbered from 0; one that is left out is offline or forgotten, and only the sender knows which. */
function holes(seen: ReadonlyMap<number, number>, offline: ReadonlySet<number>, at: string): readonly InputIssue[] {
  const last = Math.max(-1, ...seen.keys());
  for (let cpu = 0; cpu < last; cpu++) {
    if (seen.has(cpu) || offline.has(cpu)) continue;
    return [
      {
        path: `${at}.cpus`,
        message: `CPU ${cpu} is missing below CPU ${last}; list it, or name it in ${at}.offlineCpus if it is offline`,
      },
    ];
  }
  return [];
}

function numaIssues({ cpus = [], numaNodes }: Machine, at: string): readonly InputIssue[] {
  if (numaNodes === undefined) return [];
  const issues: InputIssue[] = [];
  const seen = new Map<number, number>();
  for (const [i, { id }] of numaNodes.entries()) {
    const first = seen.get(id);
    if (first === undefined) seen.set(id, i);
    else
      issues.push({ path: `${at}.numaNodes[${i}].id`, message: `NUMA node ${id} is also ${at}.numaNodes[${first}]` });
  }
  for (const [i, { cpu, numa }] of cpus.entries()) {
    if (seen.has(numa)) continue;
    issues.push({
      path: `${at}.cpus[${i}].numa`,
      message: `CPU ${cpu} is on NUMA node ${numa}, which ${at}.numaNodes does not list`,
    });
    if (issues.length >= LIMITS.issues) break;
  }
  return issues;
}

function distanceIssues({ cpus = [], numaNodes, distances }: Machine, at: string): readonly InputIssue[] {
  if (distances === undefined) return [];
  const nodes = numaNodes?.length ?? new Set(cpus.map((cpu) => cpu.numa)).size;
  const issues: InputIssue[] = [];
  if (nodes > 0 && distances.length !== nodes) {
    issues.push({ path: `${at}.distances`, message: `has ${distances.length} rows for ${nodes} NUMA nodes` });
  }
  for (const [i, row] of distances.entries()) {
    if (row.length === distances.length) continue;
    issues.push({ path: `${at}.distances[${i}]`, message: `has ${row.length} entries in ${distances.length} rows` });
  }
  return issues;
}
