import { keep, refuse, type SimCgroup, type SimRules, type Verdict } from "./sim-kernel.ts";
import { contains, NO_LIMIT, parseInteger, parseList, parsePages, printList } from "./sim-numbers.ts";

export interface SimMachine {
  readonly cpus: string;
  readonly mems: string;
}

const FILES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cpu: { "cpu.shares": "1024", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1" },
  cpuset: { "cpuset.cpus": "", "cpuset.mems": "" },
  memory: {
    "memory.limit_in_bytes": NO_LIMIT.toString(),
    "memory.memsw.limit_in_bytes": NO_LIMIT.toString(),
    "memory.usage_in_bytes": "0",
    "memory.max_usage_in_bytes": "0",
  },
  pids: { "pids.max": "max" },
  cpuacct: { "cpuacct.usage": "0" },
};

/** The mountinfo of a cgroup v1 machine whose hierarchies are mounted below a root. */
export const mountinfoV1 = (mountRoot: string): string =>
  Object.keys(FILES)
    .map((name, i) => `${32 + i} 31 0:${29 + i} / ${mountRoot}/${name} rw,relatime - cgroup cgroup rw,${name}`)
    .join("\n");

export const v1Files = (mount: string): Readonly<Record<string, string>> => FILES[mount] ?? {};

export function v1Rules(machine: SimMachine): SimRules {
  return {
    version: 1,
    mounts: Object.keys(FILES),
    fill(cgroup, mount) {
      cgroup.files.set("cgroup.procs", "");
      for (const [file, text] of Object.entries(FILES[mount] ?? {})) cgroup.files.set(file, text);
      if (mount !== "cpuset" || cgroup.parent !== null) return;
      cgroup.files.set("cpuset.cpus", machine.cpus);
      cgroup.files.set("cpuset.mems", machine.mems);
    },
    write: (cgroup, file, value) => writeV1(cgroup, file, value, machine),
  };
}

function writeV1(cgroup: SimCgroup, file: string, value: string, machine: SimMachine): Verdict {
  switch (file) {
    case "cpu.shares": {
      const n = parseInteger(value);
      if (n === null || n < 0n) return refuse("EINVAL");
      return keep(String(n < 2n ? 2n : n > 262_144n ? 262_144n : n));
    }
    case "cpu.cfs_quota_us":
    case "cpu.cfs_period_us":
      return writeBandwidth(cgroup, file, value);
    case "cpuset.cpus":
      return writeCpuset(cgroup, file, value, machine.cpus);
    case "cpuset.mems":
      return writeCpuset(cgroup, file, value, machine.mems);
    case "memory.limit_in_bytes":
    case "memory.memsw.limit_in_bytes":
      return writeMemory(cgroup, file, value);
    case "pids.max":
      return writePids(value);
    default:
      return refuse("EINVAL");
  }
}

export function writePids(value: string): Verdict {
  if (value === "max") return keep("max");
  const n = parseInteger(value);
  return n === null || n < 0n || n > 4_194_304n ? refuse("EINVAL") : keep(n.toString());
}

function writeBandwidth(cgroup: SimCgroup, file: string, value: string): Verdict {
  const n = parseInteger(value);
  if (n === null) return refuse("EINVAL");
  if (file === "cpu.cfs_period_us" && (n < 1000n || n > 1_000_000n)) return refuse("EINVAL");
  if (file === "cpu.cfs_quota_us" && n >= 0n && n < 1000n) return refuse("EINVAL");
  const text = file === "cpu.cfs_quota_us" && n < 0n ? "-1" : n.toString();
  const old = cgroup.files.get(file) ?? "";
  cgroup.files.set(file, text);
  const fits = isSchedulable(topOf(cgroup), null);
  cgroup.files.set(file, old);
  return fits ? keep(text) : refuse("EINVAL");
}

const topOf = (cgroup: SimCgroup): SimCgroup => (cgroup.parent === null ? cgroup : topOf(cgroup.parent));

/**
 * tg_cfs_schedulable_down: a child's share of time, in 2^-20 of a CPU, must not exceed that of its nearest limited
 * ancestor.
 */
function isSchedulable(cgroup: SimCgroup, above: bigint | null): boolean {
  const quota = BigInt(cgroup.files.get("cpu.cfs_quota_us") ?? "-1");
  const period = BigInt(cgroup.files.get("cpu.cfs_period_us") ?? "100000");
  const own = quota < 0n ? above : (quota << 20n) / period;
  if (own !== null && above !== null && own > above) return false;
  return [...cgroup.children.values()].every((child) => isSchedulable(child, own));
}

/**
 * validate_change: the children must fit into the cgroup (EBUSY), the cgroup must fit into its parent (EACCES), and a
 * cgroup in use must not become empty.
 */
function writeCpuset(cgroup: SimCgroup, file: string, value: string, all: string): Verdict {
  const wanted = parseList(value);
  if (wanted === null) return refuse("EINVAL");
  const top = parseList(all) ?? new Set();
  if (Math.max(-1, ...wanted) > Math.max(...top)) return refuse("ERANGE");
  if (!contains(top, wanted)) return refuse("EINVAL");
  for (const child of cgroup.children.values()) {
    if (!contains(wanted, parseList(child.files.get(file) ?? "") ?? new Set())) return refuse("EBUSY");
  }
  const parent = parseList(cgroup.parent?.files.get(file) ?? all) ?? new Set();
  if (!contains(parent, wanted)) return refuse("EACCES");
  if (wanted.size === 0 && cgroup.processes.size > 0) return refuse("ENOSPC");
  return keep(printList(wanted));
}

function writeMemory(cgroup: SimCgroup, file: string, value: string): Verdict {
  const limit = parsePages(value, "-1");
  if (limit === null) return refuse("EINVAL");
  const now = (name: string): bigint => BigInt(cgroup.files.get(name) ?? "0");
  const isLimit = file === "memory.limit_in_bytes";
  if (isLimit && limit > now("memory.memsw.limit_in_bytes")) return refuse("EINVAL");
  if (!isLimit && limit < now("memory.limit_in_bytes")) return refuse("EINVAL");
  if (limit < cgroup.usage) return refuse("EBUSY");
  return keep(limit.toString());
}
