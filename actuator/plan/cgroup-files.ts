import { KERNEL_CFS_PERIOD } from "../../api/model/units.ts";

/** Kinds of files, by how their texts compare: larger, smaller, or merely different. */
const FILE_KINDS = ["share", "quota", "period", "cpu_max", "amount", "cpuset", "text"] as const;
type FileKind = (typeof FILE_KINDS)[number];

/** cgroup v1's cpuset files, in the order in which a new cgroup needs them. */
export const CPUSET_FILES = ["cpuset.mems", "cpuset.cpus"] as const;

/** A file that the actuator may set, and nothing else: the list is also what the door to the files lets through. */
export interface FileRule {
  readonly file: string;
  readonly controller: string;
  readonly kind: FileKind;
  /** The kernel's value in a new cgroup. */
  readonly fresh: string;
  /** `amount`: the kernel rounds down to a whole number of these; `page` is the machine's page. */
  readonly unit: "page" | "one" | bigint;
}

const rule = (file: string, kind: FileKind, fresh: string, unit: FileRule["unit"] = "one"): FileRule => ({
  file,
  controller: file.slice(0, file.indexOf(".")),
  kind,
  fresh,
  unit,
});

/** The files of v1 in the order in which they are widened; memsw must never be below the memory limit. */
const V1: readonly FileRule[] = [
  rule("cpuset.mems", "cpuset", ""),
  rule("cpuset.cpus", "cpuset", ""),
  rule("cpu.shares", "share", "1024"),
  rule("cpu.cfs_period_us", "period", String(KERNEL_CFS_PERIOD)),
  rule("cpu.cfs_quota_us", "quota", "-1"),
  rule("memory.memsw.limit_in_bytes", "amount", "-1", "page"),
  rule("memory.limit_in_bytes", "amount", "-1", "page"),
  rule("pids.max", "amount", "max"),
];

const V2: readonly FileRule[] = [
  rule("cpuset.mems", "cpuset", ""),
  rule("cpuset.cpus", "cpuset", ""),
  rule("cpu.weight", "share", "100"),
  rule("cpu.max", "cpu_max", `max ${KERNEL_CFS_PERIOD}`),
  rule("memory.min", "amount", "0", "page"),
  rule("memory.low", "amount", "0", "page"),
  rule("memory.high", "amount", "max", "page"),
  rule("memory.swap.max", "amount", "max", "page"),
  rule("memory.max", "amount", "max", "page"),
  rule("memory.oom.group", "text", "0"),
  rule("pids.max", "amount", "max"),
];

const HUGETLB_V1 = /^hugetlb\.(\d{1,6})(KB|MB|GB)\.(rsvd\.)?limit_in_bytes$/;
const HUGETLB_V2 = /^hugetlb\.(\d{1,6})(KB|MB|GB)\.(rsvd\.)?max$/;
const UNIT = { KB: 1024n, MB: 1024n ** 2n, GB: 1024n ** 3n } as const;

/** All files of a version with fixed names; huge page files have their size in the name and are found by `ruleOf`. */
export const fixedRules = (version: 1 | 2): readonly FileRule[] => (version === 1 ? V1 : V2);
/** The controllers of all these files. */
export const settableControllers: readonly string[] = [
  ...[...new Set([...V1, ...V2].map(({ controller }) => controller))].sort(),
  "hugetlb",
];

const BY_NAME = { 1: new Map(V1.map((r) => [r.file, r])), 2: new Map(V2.map((r) => [r.file, r])) } as const;

/** The rule of a file's bare name, or null when it is not one that the actuator may set. */
export function ruleOf(version: 1 | 2, file: string): FileRule | null {
  return BY_NAME[version].get(file) ?? hugetlbRule(version, file);
}

function hugetlbRule(version: 1 | 2, file: string): FileRule | null {
  const found = (version === 1 ? HUGETLB_V1 : HUGETLB_V2).exec(file);
  if (found === null) return null;
  const unit = UNIT[found[2] as keyof typeof UNIT];
  return rule(file, "amount", version === 1 ? "-1" : "max", BigInt(found[1] ?? "0") * unit);
}

/** The controller of a file is the part before its first dot. */
export const controllerOf = (file: string): string => file.slice(0, file.indexOf("."));

/** The limit that a file belongs to: the files of one limit change together or not at all. */
export function limitOf(file: string): string {
  if (file === "cpu.cfs_quota_us" || file === "cpu.cfs_period_us") return "cpu.bandwidth";
  return file;
}
