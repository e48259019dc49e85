import { type BigIntStats, lstatSync } from "node:fs";
import { isIP, isIPv6 } from "node:net";
import { isAbsolute } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import { NEWEST } from "../../api/profiles/index.ts";

export const DEFAULT_STATUS_LISTEN = "127.0.0.1:10260";

export interface ListenAddress {
  /** An address, not a name. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/**
 * Parses `127.0.0.1:10260`, `[::1]:10260`, a port alone (on loopback), or `off` (null). Other addresses than loopback
 * must be given explicitly. Errors: one line that says what to write instead.
 */
export function parseListen(text: string): Result<ListenAddress | null, string> {
  if (text === "off") return ok(null);
  const match = /^(?:(?:\[(?<v6>[^\]]*)\]|(?<name>[^:]*))(?<colon>:))?(?<port>\d{1,5})$/.exec(text);
  const { v6, name, colon, port = "" } = match?.groups ?? {};
  if (match === null) return err(`expected ADDRESS:PORT such as ${DEFAULT_STATUS_LISTEN}, or off`);
  if (Number(port) > 65_535) return err(`${port} is no port: expected 0 to 65535`);
  if (colon === undefined) return ok({ host: "127.0.0.1", port: Number(port) });
  if (name === "")
    return err(`name the address: 127.0.0.1:${port}, or 0.0.0.0:${port} for every address of the machine`);
  const host = name === "localhost" ? "127.0.0.1" : (v6 ?? name ?? "");
  if (v6 === undefined ? isIP(host) !== 4 : !isIPv6(host))
    return err(`\`${host}\` is no address: expected one such as 127.0.0.1 or [::1]`);
  return ok({ host, port: Number(port) });
}

/** Whether a host is a loopback address in any form, or `localhost`. */
export const isLoopback = (host: string): boolean =>
  /^(?:localhost|(?:::ffff:)?127(?:\.\d{1,3}){3}|(?:0*:){2,7}0*1|::ffff:7f[\da-f]{2}:[\da-f]{1,4})$/i.test(host);

export const hostText = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

/**
 * True: a Host header names this machine, by an address, by `localhost`, or by one of its names. A page of another site that
 * was pointed at this address (DNS rebinding) sends that site's name.
 */
export function isOwnHost(header: string, ownNames: readonly string[]): boolean {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]+?)\.?)(?::\d{1,5})?$/.exec(header.toLowerCase());
  if (match === null) return false;
  const { v6, name = "" } = match.groups ?? {};
  if (v6 !== undefined) return isIPv6(v6);
  return isIP(name) !== 0 || name === "localhost" || ownNames.some((own) => own.toLowerCase() === name);
}

/** containerd's default endpoint. */
export const DEFAULT_ENDPOINT = NEWEST.defaults.containerRuntimeEndpoint;

const SCHEME = "unix://";
/** The bytes of a sockaddr_un's path, without the closing zero. */
export const LONGEST_SOCKET_PATH = 107;

/** The socket's path of `unix:///run/containerd/containerd.sock`, or of that path alone. The error is a sentence. */
export function socketPathOf(endpoint: string): Result<string, string> {
  const path = endpoint.startsWith(SCHEME) ? endpoint.slice(SCHEME.length) : endpoint;
  const bad = (why: string): Result<never, string> => err(`runtime endpoint \`${endpoint}\`: ${why}`);
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return bad("only unix sockets are supported: unix:///path/of/the.sock");
  if (!path.startsWith("/")) return bad("must be a path from `/`, such as unix:///run/containerd/containerd.sock");
  if (/\p{Cc}/u.test(path)) return bad("must not hold control characters");
  const bytes = Buffer.byteLength(path);
  return bytes > LONGEST_SOCKET_PATH ? bad(tooLong(bytes)) : ok(path);
}

const tooLong = (bytes: number): string =>
  `a socket's path has at most ${LONGEST_SOCKET_PATH} bytes, this has ${bytes}`;

/** Why no socket can be there; control characters and ends of lines are no part of a name. */
export function socketPathFault(path: string): string | undefined {
  const bytes = Buffer.byteLength(path);
  if (bytes > LONGEST_SOCKET_PATH) return `${path}: ${tooLong(bytes)}`;
  return isAbsolute(path) && !/[\p{Cc}\u2028\u2029\ufffd]/u.test(path)
    ? undefined
    : `${JSON.stringify(path)}: a socket's path begins with \`/\` and can be read`;
}
export const isSocketPath = (path: string): boolean => socketPathFault(path) === undefined;

/** The identity of a socket, to recognise another one at the same path; undefined: there is none. */
export function socketIdentity(path: string): string | undefined {
  try {
    const stat = lstatSync(path, { bigint: true });
    return stat.isSocket() ? fileIdentity(stat) : undefined;
  } catch {
    return undefined;
  }
}
/** Inode numbers are reused, birth times are not. */
export const fileIdentity = ({ dev, ino, birthtimeNs }: BigIntStats): string => `${dev}:${ino}:${birthtimeNs}`;
