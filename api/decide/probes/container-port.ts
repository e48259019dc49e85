import type { ProbePort } from "../../model/probe.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { parseWhole } from "../go/strconv.ts";

export interface NamedPort {
  readonly name: string;
  readonly containerPort: number;
}

/**
 * A port by its number, by a name of the container's ports, or by a number that was written as text.
 * Error: the kubelet's words. kubelet 1.36: probe.ResolveContainerPort.
 */
export function containerPort(port: ProbePort, ports: readonly NamedPort[]): Result<number, string> {
  if (typeof port === "number") return inRange(BigInt(port));
  const named = ports.find(({ name }) => name === port);
  if (named !== undefined) return inRange(BigInt(named.containerPort));
  const number = parseWhole(port);
  return number.ok ? inRange(number.value) : number;
}
const inRange = (port: bigint): Result<number, string> =>
  port > 0n && port < 65_536n ? ok(Number(port)) : err(`invalid port number: ${port}`);
