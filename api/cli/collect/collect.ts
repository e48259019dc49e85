import { parseListen } from "../../../actuator/core/addresses.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type Cluster, openCluster } from "../../cluster/cluster.ts";
import { clusterFaultText } from "../../cluster/fault.ts";
import { apiClient } from "../../collector/api-client.ts";
import { Collector, type CollectorCounts, type FaultPlace } from "../../collector/collector.ts";
import { statusApp } from "../../collector/status.ts";
import { pinoLog } from "../../observe/pino-log.ts";
import { type ListeningServer, listen } from "../../server/listen.ts";
import type { RunningApi } from "../../server.ts";
import { printable } from "../../text/style.ts";
import { startServing } from "../api/serve.ts";
import type { ApiFlags } from "../api-options.ts";
import type { Cli, LogFlags } from "../cli.ts";
import { type ClusterFlags, clusterOptions } from "../cluster-options.ts";
import { missingRights, warnRights } from "../inputs/cluster-node.ts";
import { addressOf } from "../inputs/history-api.ts";
import { tokenOf } from "../inputs/history-source.ts";
import { EXIT, type Fault, fault, type Outcome, redrawnLine, stopSignal } from "../terminal.ts";

export interface CollectFlags extends ApiFlags, ClusterFlags, Pick<LogFlags, "logFormat"> {
  readonly api?: string;
  readonly tokenFile?: string;
  readonly intervalSeconds: number;
  readonly statusListen: string;
}

/** `nodewise collect`: sends a cluster's snapshots and outcomes to an API until a signal. */
export async function collect(given: CollectFlags, cli: Cli): Promise<Outcome> {
  const stop = stopSignal();
  const opened = await openCluster(clusterOptions(given, cli.env));
  if (!opened.ok) return fault(EXIT.badInput, clusterFaultText(opened.error));
  const cluster = opened.value;
  try {
    if (given.api !== undefined) return await collectTo(given.api, given, cluster, stop, cli);
    const own = await startServing(given, cli);
    if (!own.ok) return own;
    cli.terminal.write(`${own.value.url}\n`);
    try {
      return await follow(cluster, given, ownClient(own.value), stop, cli);
    } finally {
      await own.value.close();
    }
  } finally {
    cluster.close();
  }
}

async function collectTo(
  api: string,
  given: CollectFlags,
  cluster: Cluster,
  stop: Promise<unknown>,
  cli: Cli,
): Promise<Outcome> {
  const address = addressOf(api);
  if (!address.ok) return address;
  const first = await tokenOf(given, cli);
  if (!first.ok) return first;
  const token = async (): Promise<Result<string | undefined, string>> => {
    const read = await tokenOf(given, cli);
    return read.ok ? read : err(read.error.lines.join(" "));
  };
  return follow(cluster, given, apiClient({ url: address.value.href.replace(/\/$/, ""), token }), stop, cli);
}

/** A client for the API in this process, which needs no token. */
export const ownClient = ({ url, fetch }: Pick<RunningApi, "url" | "fetch">) =>
  apiClient({ url, fetch, token: async () => ok(undefined) });

interface FollowFlags extends Pick<LogFlags, "logFormat"> {
  readonly intervalSeconds: number;
  readonly statusListen: string;
}

/** Follows the cluster until `stop`, and reports when a fault begins and ends. */
export async function follow(
  cluster: Cluster,
  { intervalSeconds, statusListen, logFormat }: FollowFlags,
  client: ReturnType<typeof apiClient>,
  stop: Promise<unknown>,
  { terminal }: Cli,
): Promise<Outcome> {
  const ending = new AbortController();
  const line = redrawnLine(process.stderr);
  const log = logFormat === "json" ? pinoLog() : null;
  const collector = new Collector(client, {
    onFault: (place, text) => {
      line.clear();
      if (log === null) terminal.warn(`nodewise: ${placeText(place)}: ${text ?? "works again"}`);
      else if (text === null) log.info({ place }, "works again");
      else log.warn({ place, fault: text }, "fault");
    },
    onMissingRights: (missing) => {
      line.clear();
      if (log === null) return warnRights(missing, terminal);
      const { rights, yaml } = missingRights(missing, terminal) ?? {};
      if (yaml === "") log.warn({ rights }, "a right is missing: the YAML printed above grants it");
      else log.warn({ rights, rbac: yaml }, "a right is missing: an administrator can grant it with this YAML");
    },
  });
  const status = await openStatus(statusListen, collector);
  if (!status.ok) return status;
  if (log === null) terminal.warn(`nodewise: following ${printable(cluster.context)} at ${printable(cluster.server)}`);
  else log.info({ context: cluster.context, server: cluster.server }, "following");
  const drawing = setInterval(() => line.show(() => countsText(collector.counts)), 500);
  void stop.then(() => ending.abort());
  await collector.run(cluster, { signal: ending.signal, intervalMs: intervalSeconds * 1000 });
  clearInterval(drawing);
  line.clear();
  if (log === null) terminal.warn(`nodewise: ${countsText(collector.counts)}`);
  else log.info({ ...collector.counts }, "ended");
  log?.flush();
  await status.value?.close(0);
  return ok(EXIT.ok);
}

async function openStatus(text: string, collector: Collector): Promise<Result<ListeningServer | null, Fault>> {
  const address = parseListen(text);
  if (!address.ok) return fault(EXIT.badInput, `--status-listen ${printable(text)}: ${address.error}`);
  if (address.value === null) return ok(null);
  const listening = await listen(statusApp(collector), address.value);
  return listening.ok ? listening : fault(EXIT.failed, `--status-listen: ${listening.error}`);
}

const placeText = (place: FaultPlace): string =>
  typeof place === "string"
    ? place === "api"
      ? "the API"
      : `the cluster's ${place}`
    : `node ${printable(place.node)}`;

function countsText({
  nodes,
  faultyNodes,
  snapshots,
  decisions,
  outcomes,
  lostOutcomes,
  waitingOutcomes,
}: CollectorCounts): string {
  const parts = [
    `${nodes} nodes${faultyNodes > 0 ? `, ${faultyNodes} not whole` : ""}`,
    `${snapshots} snapshots`,
    `${decisions} decisions`,
    `${outcomes} outcomes`,
    ...(waitingOutcomes > 0 ? [`${waitingOutcomes} wait`] : []),
    ...(lostOutcomes > 0 ? [`${lostOutcomes} lost`] : []),
  ];
  return parts.join(" · ");
}
