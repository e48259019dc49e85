import { parentOf } from "../plan/step.ts";

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
  const lookUp = (names: Readonly<Record<string, string>>, where: string | null): void => {
    for (const [name, of] of Object.entries(names)) {
      const text = where === null ? null : read(where, of);
      if (text !== null) found[name] = text;
    }
  };
  lookUp(explanation.own, path);
  lookUp(explanation.parent, parentOf(path));
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

const CGROUP_FS_CODES = [
  "outside_root",
  "bad_name",
  "bad_value",
  "not_found",
  "exists",
  "busy",
  "denied",
  "refused",
  "unsupported",
  "failed",
] as const;
export type CgroupFsCode = (typeof CGROUP_FS_CODES)[number];

/**
 * Why a cgroup file or directory could not be used: its path, the operation, the kernel's error and the current value.
 */
export interface CgroupFsError {
  readonly code: CgroupFsCode;
  readonly message: string;
  readonly path: string;
  readonly file: string | null;
  readonly value: string | null;
  /** The errno, such as `EBUSY`; null: there was no system call. */
  readonly errno: string | null;
  /** Values that explain the refusal, by file name. */
  readonly found: Readonly<Record<string, string>>;
}

const CODE_OF: Readonly<Record<string, CgroupFsCode>> = {
  ENOENT: "not_found",
  ENODEV: "not_found",
  ENOTDIR: "not_found",
  EEXIST: "exists",
  EBUSY: "busy",
  ENOTEMPTY: "busy",
  EACCES: "denied",
  EPERM: "denied",
  EROFS: "denied",
  EINVAL: "refused",
  ERANGE: "refused",
  ENOSPC: "refused",
  EOPNOTSUPP: "refused",
  ENOTSUP: "refused",
  ELOOP: "outside_root",
};

export interface Attempt {
  readonly verb: "read" | "write" | "create" | "remove" | "list";
  readonly path: string;
  readonly file?: string;
  readonly value?: string;
}

/** An error that the kernel answered; anything that is no errno is a fault of ours and thrown on. */
export function kernelError(attempt: Attempt, cause: unknown): CgroupFsError {
  const errno = errnoOf(cause);
  if (errno === null) throw cause;
  return describe(attempt, CODE_OF[errno] ?? "failed", errno, {});
}

/** An error that was found without asking the kernel. */
export function ownError(attempt: Attempt, code: CgroupFsCode, why: string): CgroupFsError {
  const { path, file = null, value = null } = attempt;
  return { code, message: `${subject(attempt)}: ${why}`, path, file, value, errno: null, found: {} };
}

/** The same error with the values that explain it and, if there is any, advice. */
export function explained(
  error: CgroupFsError,
  found: Readonly<Record<string, string>>,
  advice: string,
): CgroupFsError {
  const had = Object.entries(found).map(([name, value]) => `${name} ${value}`);
  const message = `${error.message}${had.length > 0 ? ` (${had.join(", ")})` : ""}${advice === "" ? "" : `; ${advice}`}`;
  return { ...error, message, found };
}

function describe(attempt: Attempt, code: CgroupFsCode, errno: string, found: Record<string, string>): CgroupFsError {
  const { path, file = null, value = null } = attempt;
  const tried = value === null ? "" : ` tried \`${value}\`,`;
  return { code, message: `${subject(attempt)}:${tried} got ${errno}`, path, file, value, errno, found };
}

const subject = ({ verb, path, file }: Attempt): string => `${verb} ${path}${file === undefined ? "" : ` ${file}`}`;

function errnoOf(cause: unknown): string | null {
  if (!(cause instanceof Error) || !("code" in cause) || typeof cause.code !== "string") return null;
  return /^E[A-Z0-9]+$/.test(cause.code) ? cause.code : null;
}
