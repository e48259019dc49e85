import { isIP, isIPv6 } from "node:net";
import { err, ok, type Result } from "../../api/model/result.ts";

export const DEFAULT_STATUS_LISTEN = "127.0.0.1:10260";

export interface ListenAddress {
  /** An address, not a name. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/**
 * `127.0.0.1:10260`, `[::1]:10260`, a port alone (on loopback), or `off` (null). Beyond loopback nobody listens unless the
 * address says so. Errors: in one line, with what to write instead.
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

/** True for a loopback address in any form, and for `localhost`. */
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
