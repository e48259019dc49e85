import type { ContainerPort } from "../pod.ts";
import type { At } from "./at.ts";
import { portName } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const MOST = 65_535;

/** On the host's network a port is the host's too. kubernetes 1.36: validateContainerPorts, defaultHostNetworkPorts. */
export function portsOf(list: At, hostNetwork: boolean): readonly ContainerPort[] {
  const names = new Set<string>();
  return list.items().map((at) => {
    checkFields(at, RULES.ContainerPort);
    const name = at.field("name");
    if (!name.isEmpty) {
      const says = portName(name.text());
      name.invalids(says);
      if (says.length === 0 && names.has(name.text())) name.duplicate();
      names.add(name.text());
    }
    const containerPort = portAt(at.field("containerPort"), true);
    const hostPort = portAt(at.field("hostPort"), false);
    if (hostNetwork && hostPort !== 0 && hostPort !== containerPort) {
      at.field("hostPort").invalid("must match `containerPort` when `hostNetwork` is true");
    }
    return {
      name: name.text(),
      containerPort,
      hostPort: hostNetwork ? containerPort : hostPort,
      hostIP: at.field("hostIP").text(),
      protocol: at.field("protocol").choice(["SCTP", "TCP", "UDP"], "TCP"),
    };
  });
}
function portAt(at: At, isRequired: boolean): number {
  const port = at.whole() ?? 0;
  if (port !== 0) at.between(1, MOST);
  else if (isRequired && (at.isAbsent || at.value === 0)) at.required();
  return port;
}

/** One port of the host for one container; init containers run one after the other. kubernetes 1.36: AccumulateUniqueHostPorts. */
export function checkHostPorts(
  containers: readonly { readonly at: At; readonly ports: readonly ContainerPort[] }[],
): void {
  const taken = new Set<string>();
  for (const { at, ports } of containers) {
    for (const [i, port] of ports.entries()) {
      if (port.hostPort === 0) continue;
      const key = `${port.protocol}/${port.hostIP}/${port.hostPort}`;
      if (taken.has(key)) at.field("ports").items()[i]?.field("hostPort").duplicate(key);
      taken.add(key);
    }
  }
}
