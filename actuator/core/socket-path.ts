import { type BigIntStats, lstatSync } from "node:fs";
import { isAbsolute } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { NEWEST } from "../../api/profiles/index.ts";

/** Where containerd listens unless it is told otherwise. */
export const USUAL_ENDPOINT = NEWEST.defaults.containerRuntimeEndpoint;

const SCHEME = "unix://";
/** The longest path that fits into a sockaddr_un with its closing zero. */
const LONGEST = 107;

/** The socket's path of `unix:///run/containerd/containerd.sock`, or of that path alone. The error is a sentence. */
export function socketPathOf(endpoint: string): Result<string, string> {
  const path = endpoint.startsWith(SCHEME) ? endpoint.slice(SCHEME.length) : endpoint;
  const bad = (why: string): Result<never, string> => err(`runtime endpoint \`${endpoint}\`: ${why}`);
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return bad("only unix sockets are spoken to: unix:///path/of/the.sock");
  if (!path.startsWith("/")) return bad("must be a path from `/`, such as unix:///run/containerd/containerd.sock");
  if (/\p{Cc}/u.test(path)) return bad("must not hold control characters");
  const bytes = Buffer.byteLength(path);
  return bytes > LONGEST ? bad(`a socket's path has at most ${LONGEST} bytes, this has ${bytes}`) : ok(path);
}

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

/** The identity that tells a socket from another one at the same path; undefined: none is there. */
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
