import { activeSandboxOf } from "../instances.ts";
import type { RunnablePod } from "../pod.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import type { PodStatus } from "./status.ts";

type Addresses = Pick<PodStatus, "hostIP" | "hostIPs" | "podIP" | "podIPs">;

const isV6 = (ip: string): boolean => ip.includes(":");

/**
 * `hostIPs`: the node's, the preferred family first, two at most. A pod has one address of each family, in the node's
 * order; on the host's network it has the node's. kubelet 1.36: sortPodIPs, generateAPIPodStatus.
 */
export function addressesOf(pod: RunnablePod, seen: RuntimePod, hostIPs: readonly string[]): Addresses {
  const host = hostIPs.slice(0, 2);
  const own = activeSandboxOf(seen)?.ips ?? [];
  const isV6First = host[0] !== undefined && isV6(host[0]);
  const sorted = [own.find((ip) => isV6(ip) === isV6First), own.find((ip) => isV6(ip) !== isV6First)];
  const ips = pod.spec.hostNetwork ? host : sorted.filter((ip) => ip !== undefined);
  const listOf = (list: readonly string[]): readonly { ip: string }[] => list.map((ip) => ({ ip }));
  return {
    ...(host[0] !== undefined && { hostIP: host[0], hostIPs: listOf(host) }),
    ...(ips[0] !== undefined && { podIP: ips[0], podIPs: listOf(ips) }),
  };
}
