import { onTestFinished } from "vitest";
import type { Result } from "../../api/base/result.ts";
import { type Cluster, type ClusterOptions, openCluster } from "../../api/cluster/cluster.ts";
import type { ClusterFault } from "../../api/cluster/fault.ts";

/** Opens the cluster of a kubeconfig, which must succeed, and closes it when the test ends. */
export async function opened(kubeconfig: string, options: Partial<ClusterOptions> = {}): Promise<Cluster> {
  const cluster = okOf(await openCluster({ kubeconfig, env: {}, timeoutMs: 2000, ...options }));
  onTestFinished(() => cluster.close());
  return cluster;
}

export function okOf<T>(result: Result<T, ClusterFault>): T {
  if (!result.ok) throw new Error(`${result.error.code}: ${result.error.message}`);
  return result.value;
}
export function faultOf(result: Result<unknown, ClusterFault>): ClusterFault {
  if (result.ok) throw new Error("it was read");
  return result.error;
}
