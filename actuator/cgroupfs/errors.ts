export const CGROUP_FS_CODES = [
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

/** Why a cgroup file or directory could not be used: which one, what was tried, what the kernel said and had. */
export interface CgroupFsError {
  readonly code: CgroupFsCode;
  readonly message: string;
  readonly path: string;
  readonly file: string | null;
  readonly value: string | null;
  /** `EBUSY`; null when the kernel was not asked. */
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

/** An error found before the kernel was asked. */
export function ownError(attempt: Attempt, code: CgroupFsCode, why: string): CgroupFsError {
  const { path, file = null, value = null } = attempt;
  return { code, message: `${subject(attempt)}: ${why}`, path, file, value, errno: null, found: {} };
}

/** The same error with the values that explain it and, where there is one, advice. */
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
