import { containerPort } from "../../api/decide/probes/container-port.ts";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import type { ProbeHandler, ProbeOutcome } from "../../api/model/probe.ts";
import { bounded, type Opened } from "./bounded.ts";
import { dial } from "./dial.ts";
import { systemNames } from "./names.ts";
import type { ProbeTarget } from "./target.ts";

type Tcp = Extract<ProbeHandler, { tcp: unknown }>["tcp"];

/**
 * Whether a connection opens; it is closed at once, in an orderly way (no server sees a reset).
 * kubelet 1.36: pkg/probe/tcp, DoTCPProbe.
 */
export async function tcpProbe(asked: Tcp, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  const port = containerPort(asked.port, target.ports);
  if (!port.ok) return { error: port.error };
  const host = asked.host === "" ? target.podIP : asked.host;
  const open = async (opened: Opened): Promise<ProbeOutcome> => {
    const socket = await dial(host, port.value, opened);
    if (!socket.ok && !socket.error.wasOpen) return { result: "failure", output: socket.error.words };
    return { result: "success", output: "" };
  };
  const where = (): string => (systemNames.isAsking(host) ? `: lookup ${host}` : ` ${hostPort(host, port.value)}`);
  return bounded(
    timeoutMs,
    open,
    () => ({ result: "failure", output: `dial tcp${where()}: i/o timeout` }),
    (error) => ({ error: (error as Error).message }),
  );
}
