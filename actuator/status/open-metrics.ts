import type { ActuatorConfig } from "../config.ts";
import type { HistoryAsked } from "../probes/history.ts";
import { type Counters, noCounters } from "./counters.ts";
import { DEFAULT_STATUS_LISTEN, parseListen } from "./listen.ts";
import type { NodeStatus } from "./node-status.ts";
import type { StatusServer } from "./server.ts";

export interface OpenMetrics {
  readonly counters: Counters;
  /** Answers what `status` tells, with what was counted. That the address cannot be listened on is a problem, and no error. */
  serve(status: () => NodeStatus, onProblem: (message: string) => void): Promise<Pick<StatusServer, "close">>;
}
const NOBODY: OpenMetrics = { counters: noCounters, serve: async () => ({ close: async () => {} }) };

/** What is counted from the daemon's first step on, and told at the address of its settings; where that is none, nowhere. */
export async function openMetrics({
  nodeName,
  stateDir,
  pods,
  statusListen = pods === "off" ? "off" : DEFAULT_STATUS_LISTEN,
}: Pick<ActuatorConfig, "nodeName" | "stateDir" | "pods" | "statusListen">): Promise<OpenMetrics> {
  const address = parseListen(statusListen);
  if (!address.ok || address.value === null) return NOBODY;
  const listen = address.value;
  const [{ daemonMetrics }, { startStatusServer }, { readProbeHistory }] = await Promise.all([
    import("./metrics.ts"),
    import("./server.ts"),
    import("../probes/history.ts"),
  ]);
  const probeHistory = (asked: HistoryAsked) => readProbeHistory(stateDir, asked);
  const metrics = daemonMetrics();
  return {
    counters: metrics.counters,
    serve: async (status, onProblem) => {
      const server = await startStatusServer({ listen, status, probeHistory, metrics, ownNames: [nodeName] });
      if (server.ok) return server.value;
      onProblem(server.error);
      return NOBODY.serve(status, onProblem);
    },
  };
}
