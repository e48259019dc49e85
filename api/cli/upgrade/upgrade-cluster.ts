import type { Fields } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { type ClusterFault, clusterFaultText } from "../../cluster/fault.ts";
import type { FlagsAndDropIns } from "../../decide/lint/start.ts";
import { subjectOf, versionBefore } from "../../service/upgrade/asked.ts";
import type { UpgradeReport } from "../../service/upgrade/report.ts";
import { type UpgradeInput, upgradeReport } from "../../service/upgrade/upgrade-report.ts";
import type { Cli } from "../cli.ts";
import type { ClusterFlags } from "../cluster-options.ts";
import { type ClusterNode, eachClusterNode } from "../inputs/cluster-node.ts";
import type { Fault } from "../terminal.ts";
import type { UpgradeReports } from "./upgrade-output.ts";
import type { UpgradeRequest } from "./upgrade-source.ts";

/**
 * Reports what an upgrade changes on the named nodes, or on all of a live cluster. A given configuration, and what is given with
 * it, replaces each node's own.
 */
export async function reportsOfCluster(
  cluster: Cluster,
  names: readonly string[] | undefined,
  {
    to,
    from,
    configuration,
    ...beside
  }: Pick<UpgradeRequest, "to" | "from"> & Pick<UpgradeInput, "configuration"> & FlagsAndDropIns,
  flags: ClusterFlags,
  cli: Cli,
): Promise<Result<Pick<UpgradeReports, "reports" | "unreported">, Fault>> {
  const reportOf = (live: Fields): UpgradeReport | string => {
    const subject = subjectOf(live, configuration);
    if (!subject.ok) return subject.error.map(({ path, message }) => `${path}: ${message}`).join("; ");
    const before = versionBefore(from, subject.value.snapshot);
    return before.ok
      ? upgradeReport({ ...subject.value, ...beside, to, from: before.value })
      : `--from ${before.error.message}`;
  };
  const one = async (node: string, live: Result<ClusterNode, ClusterFault>) => ({
    node,
    report: live.ok ? reportOf(live.value.snapshot) : clusterFaultText(live.error),
  });
  const all = await eachClusterNode(cluster, { names }, flags, cli, one);
  if (!all.ok) return all;
  return ok({
    reports: all.value.flatMap(({ node, report }) => (typeof report === "string" ? [] : [{ ...report, node }])),
    unreported: all.value.flatMap(({ node, report }) => (typeof report === "string" ? [{ node, why: report }] : [])),
  });
}
