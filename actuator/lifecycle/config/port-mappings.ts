import type { SandboxConfig } from "../../containerd/messages.ts";
import type { ContainerPort, RunnablePod } from "../pod.ts";
import { isIPv6 } from "../spec/ip.ts";

type PortMappings = NonNullable<SandboxConfig["portMappings"]>;

/** Of the regular containers, each name of a port once a container. kubelet 1.36: MakePortMappings. */
export const portMappingsOf = (pod: RunnablePod): PortMappings =>
  pod.spec.containers.flatMap(({ ports }) => {
    const names = new Set<string>();
    return ports
      .filter((port) => {
        const name = nameOf(port);
        const isFirst = !names.has(name);
        names.add(name);
        return isFirst;
      })
      .map(({ protocol, containerPort, hostPort, hostIP }) => ({ protocol, containerPort, hostPort, hostIp: hostIP }));
  });

function nameOf({ name, protocol, hostIP, containerPort, hostPort }: ContainerPort): string {
  if (name !== "") return name;
  const family = hostIP === "" ? "any" : isIPv6(hostIP) ? "v6" : "v4";
  return `${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`;
}
