import { DEFAULT_STATUS_LISTEN, parseListen } from "../core/addresses.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { InterruptibleSleep, Notices } from "../core/notices.ts";
import { type Counters, noCounters } from "../status/counters.ts";
import type { NodeStatus } from "../status/node-status.ts";
import type { HistoryQuery, StatusServer } from "../status/server.ts";

interface OpenMetrics {
  readonly counters: Counters;
  /** Serves `status` and the metrics. An address that cannot be listened on is reported as a problem, not thrown. */
  serve(status: () => NodeStatus, onProblem: (message: string) => void): Promise<Pick<StatusServer, "close">>;
}
const NOBODY: OpenMetrics = { counters: noCounters, serve: async () => ({ close: async () => {} }) };

/** The daemon's counters, from its start on, served at the address in its settings if there is one. */
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
    import("../status/metrics.ts"),
    import("../status/server.ts"),
    import("../probes/engine/history.ts"),
  ]);
  const probeHistory = (asked: HistoryQuery) => readProbeHistory(stateDir, asked);
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

/** The hooks that a daemon's starter passes to its syncs. */
export interface SyncHooks {
  readonly pace: InterruptibleSleep;
  readonly notices: Notices;
  readonly metrics: OpenMetrics;
}
