import { parentOf } from "../plan/tree.ts";
import { type CgroupFsError, explained } from "./errors.ts";

/** Reads a file of a cgroup, or null. */
type Read = (path: string, file: string) => string | null;

interface Explanation {
  /** Name in the message -> file of the same cgroup. */
  readonly own: Readonly<Record<string, string>>;
  /** Name in the message -> file of the parent. */
  readonly parent: Readonly<Record<string, string>>;
  readonly advice: string;
}

const MEMORY_V1: Explanation = {
  own: {
    limit: "memory.limit_in_bytes",
    memsw: "memory.memsw.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    peak: "memory.max_usage_in_bytes",
  },
  parent: {},
  advice: "the limit cannot go below what is in use, nor above memory plus swap",
};

const MEMORY_V2: Explanation = {
  own: { limit: "memory.max", usage: "memory.current", peak: "memory.peak" },
  parent: {},
  advice: "the limit cannot go below what is in use",
};

const BANDWIDTH: Explanation = {
  own: { quota: "cpu.cfs_quota_us", period: "cpu.cfs_period_us" },
  parent: { "parent quota": "cpu.cfs_quota_us", "parent period": "cpu.cfs_period_us" },
  advice: "a quota is at least 1000 us, lies within the parent's and covers the children's",
};

const cpusetOf = (file: string): Explanation => ({
  own: { had: file },
  parent: { parent: file },
  advice: "the set must lie within the parent's, cover the children's and not be empty while processes are inside",
});

/** Adds to a refused write what the kernel had: limit, usage and peak, or the parent's values that forbid it. */
export function explainWrite(error: CgroupFsError, read: Read): CgroupFsError {
  const { file, errno, path } = error;
  if (file === null || errno === null || error.code === "not_found") return error;
  const explanation = explanationOf(file);
  if (explanation === null) return withOwn(error, read);
  const found: Record<string, string> = {};
  const look = (names: Readonly<Record<string, string>>, where: string | null): void => {
    for (const [name, of] of Object.entries(names)) {
      const text = where === null ? null : read(where, of);
      if (text !== null) found[name] = text;
    }
  };
  look(explanation.own, path);
  look(explanation.parent, parentOf(path));
  return explained(error, found, explanation.advice);
}

function explanationOf(file: string): Explanation | null {
  if (file === "memory.limit_in_bytes" || file === "memory.memsw.limit_in_bytes") return MEMORY_V1;
  if (file === "memory.max") return MEMORY_V2;
  if (file.startsWith("cpu.cfs_")) return BANDWIDTH;
  if (file === "cpuset.cpus" || file === "cpuset.mems") return cpusetOf(file);
  return null;
}

function withOwn(error: CgroupFsError, read: Read): CgroupFsError {
  const had = error.file === null ? null : read(error.path, error.file);
  return had === null ? error : explained(error, { had }, "");
}
