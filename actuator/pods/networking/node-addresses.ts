import { existsSync, readdirSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import type { QuantityList } from "../../../api/model/allocatable.ts";
import { effectiveDocument } from "../../../api/profiles/effective.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import type { ActuatorConfig } from "../../core/config.ts";
import type { NodeSecurity } from "../../lifecycle/config/container-config.ts";
import { type NodeDns, parseResolvConf } from "./dns.ts";

const CPUS = "/sys/devices/system/cpu";

/** The node as its pods see it. Seccomp profiles are beside `podsDirectory`. */
export function thisNode(
  configuration: unknown,
  cgroupVersion: 1 | 2,
  allocatable: QuantityList,
  { podsDirectory, kubeletVersion }: Pick<ActuatorConfig, "podsDirectory" | "kubeletVersion">,
): PodNode {
  const { clusterDomain, clusterDNS, resolvConf, seccompDefault } = effectiveDocument(
    profileOf(kubeletVersion),
    configuration,
  );
  return {
    hostIPs: hostAddresses(),
    allocatable,
    clusterDomain: typeof clusterDomain === "string" ? clusterDomain : "",
    clusterDNS: Array.isArray(clusterDNS) ? clusterDNS.filter((one) => typeof one === "string") : [],
    resolvConf: resolvConf === "" ? null : readResolvConf(resolvConf),
    cgroupVersion,
    security: {
      seccompDefault,
      seccompDirectory: join(dirname(podsDirectory), "seccomp"),
      maskedPaths: thermalPaths(),
    },
  };
}

/** The machine's first address of each family; without a network, its loopback address. */
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
/** The machine's thermal throttle paths, read once: they do not change while the machine runs. */
function thermalPaths(): readonly string[] {
  thermal ??= existsSync(CPUS)
    ? readdirSync(CPUS)
        .filter((name) => /^cpu\d+$/.test(name))
        .map((name) => join(CPUS, name, "thermal_throttle"))
        .filter((path) => existsSync(path))
    : [];
  return thermal;
}

/** The facts about a node that its pods need. */
export interface PodNode {
  /** The node's own addresses, the preferred family first. */
  readonly hostIPs: readonly string[];
  readonly allocatable: QuantityList;
  /** KubeletConfiguration; empty: there is no cluster. */
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  /** The host's DNS settings, read from `resolvConf`; null: `resolvConf` is empty. */
  readonly resolvConf: NodeDns["host"];
  readonly cgroupVersion: 1 | 2;
  readonly security: NodeSecurity;
}
