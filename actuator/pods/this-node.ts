import { existsSync, readdirSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { QuantityList } from "../../api/model/decision.ts";
import type { PodNode } from "./pod-node.ts";
import { parseResolvConf } from "./resolv-conf.ts";

/** Fields of a KubeletConfiguration that pods meet and that no decision reads. */
interface Configured {
  readonly clusterDomain?: unknown;
  readonly clusterDNS?: unknown;
  readonly resolvConf?: unknown;
  readonly seccompDefault?: unknown;
  readonly serializeImagePulls?: unknown;
  readonly maxParallelImagePulls?: unknown;
}
const RESOLV_CONF = "/etc/resolv.conf";
const CPUS = "/sys/devices/system/cpu";

/** Of a configuration as it is given: plain, or as /configz wraps it. */
export const configuredOf = (configuration: unknown): Configured => {
  const outer = (configuration ?? {}) as { readonly kubeletconfig?: object };
  return (outer.kubeletconfig ?? outer) as Configured;
};

/** This machine, as pods on it see it. `rootDirectory`: of the daemon, with the profiles of seccomp. */
export function thisNode(
  configuration: unknown,
  cgroupVersion: 1 | 2,
  allocatable: QuantityList,
  rootDirectory: string,
): PodNode {
  const { clusterDomain, clusterDNS, resolvConf = RESOLV_CONF, seccompDefault } = configuredOf(configuration);
  return {
    hostIPs: hostAddresses(),
    allocatable,
    clusterDomain: typeof clusterDomain === "string" ? clusterDomain : "",
    clusterDNS: Array.isArray(clusterDNS) ? clusterDNS.filter((one) => typeof one === "string") : [],
    resolvConf: resolvConf === "" ? null : readResolvConf(String(resolvConf)),
    cgroupVersion,
    security: {
      seccompDefault: seccompDefault === true,
      seccompDirectory: join(rootDirectory, "seccomp"),
      maskedPaths: thermalPaths(),
    },
  };
}

/** A machine without a network has its loopback. */
export function hostAddresses(): readonly string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const outer = all.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const first = (family: string): string[] =>
    outer
      .filter((a) => a.family === family)
      .map((a) => a.address)
      .slice(0, 1);
  const found = [...first("IPv4"), ...first("IPv6")];
  return found.length === 0 ? ["127.0.0.1"] : found;
}

function readResolvConf(path: string): PodNode["resolvConf"] {
  try {
    return parseResolvConf(readFileSync(path, "utf8")).conf;
  } catch {
    return { servers: [], searches: [], options: [] };
  }
}

let thermal: readonly string[] | undefined;
/** They do not change while the machine runs. */
function thermalPaths(): readonly string[] {
  thermal ??= existsSync(CPUS)
    ? readdirSync(CPUS)
        .filter((name) => /^cpu\d+$/.test(name))
        .map((name) => join(CPUS, name, "thermal_throttle"))
        .filter((path) => existsSync(path))
    : [];
  return thermal;
}
