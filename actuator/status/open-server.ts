import type { ActuatorConfig } from "../config.ts";
import { type Counters, noCounters } from "./counters.ts";
import { parseListen } from "./listen.ts";
import type { NodeStatus } from "./node-status.ts";
import type { StatusServer } from "./server.ts";

export interface OpenServer {
  readonly counters: Counters;
  /** Null: nobody is told. */
  readonly server: StatusServer | null;
}

/** Answers what `status` tells at an address; `off` is nowhere. That it cannot be listened on is a problem, and no error. */
export async function openServer(
  listen: string,
  { nodeName }: Pick<ActuatorConfig, "nodeName">,
  status: () => NodeStatus,
  onProblem: (message: string) => void,
): Promise<OpenServer> {
  const address = parseListen(listen);
  if (!address.ok || address.value === null) return { counters: noCounters, server: null };
  const [{ daemonMetrics }, { startStatusServer }] = await Promise.all([import("./metrics.ts"), import("./server.ts")]);
  const metrics = daemonMetrics();
  const server = await startStatusServer({ listen: address.value, status, metrics, ownNames: [nodeName] });
  if (!server.ok) onProblem(server.error);
  return { counters: metrics.counters, server: server.ok ? server.value : null };
}
