import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";

const ip = (...args: readonly string[]): string =>
  execFileSync("ip", args, { encoding: "utf8", env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });

/** A random address from the range for network benchmarks (RFC 2544). */
const someAddress = (): string => `198.18.${randomInt(256)}.${randomInt(1, 255)}`;
/**
 * The label contains the process id that an address belongs to; the kernel requires the interface's name as its prefix.
 */
const LABEL = "lo:nw";

/**
 * Adds to the loopback interface an address that only this process uses, because a kubelet refuses a node address in
 * 127.0.0.0/8. Removes the addresses of killed processes first.
 */
export function takeAddress(): string {
  for (const line of ip("-o", "-4", "address", "show", "dev", "lo").split("\n")) {
    const [, address, pid] = /inet (\S+) .* lo:nw([0-9a-z]+)\b/.exec(line) ?? [];
    if (address !== undefined && !existsSync(`/proc/${parseInt(pid ?? "", 36)}`)) releaseAddress(address);
  }
  const address = someAddress();
  ip("address", "add", `${address}/32`, "dev", "lo", "label", `${LABEL}${process.pid.toString(36)}`);
  return address;
}
export function releaseAddress(address: string): void {
  ip("address", "del", address.includes("/") ? address : `${address}/32`, "dev", "lo");
}
