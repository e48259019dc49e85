import { type BigIntStats, lstatSync } from "node:fs";
import { isAbsolute } from "node:path";

/** The bytes of an address that the kernel takes, without the closing zero. */
export const LONGEST_SOCKET_PATH = 107;

/** Why no socket can be there; control characters and ends of lines are no part of a name. */
export function socketPathFault(path: string): string | undefined {
  const bytes = Buffer.byteLength(path);
  if (bytes > LONGEST_SOCKET_PATH) {
    return `${path}: a socket's path has at most ${LONGEST_SOCKET_PATH} bytes, this has ${bytes}`;
  }
  return isAbsolute(path) && !/[\p{Cc}\u2028\u2029\ufffd]/u.test(path)
    ? undefined
    : `${JSON.stringify(path)}: a socket's path begins with \`/\` and can be read`;
}
export const isSocketPath = (path: string): boolean => socketPathFault(path) === undefined;

/** What tells a socket from another one at the same path; undefined: none is there. */
export function socketIdentity(path: string): string | undefined {
  try {
    const stat = lstatSync(path, { bigint: true });
    return stat.isSocket() ? fileIdentity(stat) : undefined;
  } catch {
    return undefined;
  }
}
/** Numbers of inodes come again, times do not. */
export const fileIdentity = ({ dev, ino, birthtimeNs }: BigIntStats): string => `${dev}:${ino}:${birthtimeNs}`;
