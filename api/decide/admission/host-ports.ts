import { isSidecar, type Pod } from "../../model/pod.ts";

/** A port of the host that a pod binds. */
export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}
const ANY_IP = "0.0.0.0";

/** Of containers that run as long as the pod. kubernetes 1.36: GetHostPorts. */
export function hostPorts({ spec }: Pod): readonly HostPort[] {
  const containers = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers];
  return containers.flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP, protocol }) =>
      hostPort > 0 ? [{ ip: hostIP || ANY_IP, protocol: protocol || "TCP", port: hostPort }] : [],
    ),
  );
}

/** The same port and protocol, on one address or where either is on all. kubernetes 1.36: HostPortInfo.CheckConflict. */
export const conflicts = (a: HostPort, b: HostPort): boolean =>
  a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === ANY_IP || b.ip === ANY_IP);
