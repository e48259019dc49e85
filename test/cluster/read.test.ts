import { describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, type ClusterOptions, openCluster } from "../../api/cluster/cluster.ts";
import { readNode, readPod, snapshotOf } from "../../api/cluster/read.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { testCluster } from "../kit/cluster.ts";

async function opened(kubeconfig: string, options: Partial<ClusterOptions> = {}): Promise<Cluster> {
  const cluster = await openCluster({ kubeconfig, env: {}, timeoutMs: 2000, ...options });
  if (!cluster.ok) throw new Error(cluster.error.message);
  onTestFinished(() => cluster.value.close());
  return cluster.value;
}

describe("a node", () => {
  test("is read whole, and decides as its files do", async () => {
    const { kubeconfig, api, kubelet } = await testCluster();
    const cluster = await opened(kubeconfig());
    const read = await readNode(cluster, "n1");
    if (!read.ok) throw new Error(read.error.message);
    expect(read.value.missing).toEqual([]);
    const decoded = decodeSnapshot(snapshotOf(read.value));
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
    expect(decoded.value.pods).toHaveLength(11);
    console.log(api.requests, kubelet.requests);
    const pod = await readPod(cluster, "default", "guar-int");
    expect(pod.ok && pod.value.pod?.["metadata"]).toMatchObject({ name: "guar-int" });
  });
});
