import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ok } from "../../../api/base/result.ts";
import { type Cluster, openCluster } from "../../../api/cluster/cluster.ts";
import { apiClient } from "../../../api/collector/api-client.ts";
import { Collector } from "../../../api/collector/collector.ts";
import type { Comparison } from "../../../api/model/outcome.ts";
import { type RunningApi, startApi } from "../../../api/server.ts";
import type { FleetNode } from "../../../api/service/fleet.ts";
import { keptLog } from "../../api/serving.ts";
import { holds, until } from "../pods/until.ts";

/** On a busy machine, a kubelet may need longer for its stats than the collector's default timeout. */
const PATIENCE_MS = 60_000;

/** An outcome as the API lists it. */
interface ListedOutcome {
  readonly kind: string;
  readonly verdict: string;
  readonly reason: string | null;
  readonly pod: { readonly name: string } | null;
  readonly comparison: Comparison | null;
}

/** The collector of a cluster and its own API, which compares what the kubelets do with what it decides. */
export class Shadow {
  readonly faults: string[] = [];
  readonly collector: Collector;
  readonly #api: RunningApi;
  readonly #dataDir: string;
  readonly #cluster: Cluster;
  readonly #ending = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(cluster: Cluster, api: RunningApi, dataDir: string) {
    this.#cluster = cluster;
    this.#api = api;
    this.#dataDir = dataDir;
    const client = apiClient({ url: api.url, fetch: api.fetch, token: async () => ok(undefined) });
    this.collector = new Collector(client, {
      onFault: (place, fault) => void this.faults.push(JSON.stringify([place, fault])),
    });
  }

  /** Resolves when the first snapshot is in the history. */
  static async start(kubeconfig: string): Promise<Shadow> {
    const opened = await openCluster({ kubeconfig, env: {}, timeoutMs: PATIENCE_MS });
    if (!opened.ok) throw new Error(opened.error.message);
    const dataDir = mkdtempSync(join(tmpdir(), "nodewise-shadow-"));
    const api = await startApi({ port: 0, dataDir, log: keptLog() });
    if (!api.ok) throw new Error(api.error.message);
    const shadow = new Shadow(opened.value, api.value, dataDir);
    const { signal } = shadow.#ending;
    shadow.#running = shadow.collector.run(opened.value, { signal, intervalMs: 5000 });
    const isFollowed = (): true | undefined => holds(shadow.collector.counts.snapshots > 0);
    await until("the first snapshot", isFollowed, () => shadow.faults.join("\n"));
    return shadow;
  }

  /**
   * Resolves when the node has been read after the call, and the clock has reached the next second, because a kubelet
   * reports times in whole seconds.
   */
  async looked(node: string): Promise<void> {
    const since = Date.now();
    await until(`a look at ${node}`, async () => {
      const { lastSnapshotId } = await this.#get<{ lastSnapshotId: string }>(`/v1/nodes/${node}`);
      const { observedAt } = await this.#get<{ observedAt: string }>(`/v1/snapshots/${lastSnapshotId}`);
      return holds(Date.parse(observedAt) > since);
    });
    await delay(1000);
  }
  async #get<T>(path: string): Promise<T> {
    return (await (await fetch(this.#api.url + path)).json()) as T;
  }

  /** All compared outcomes, once no outcome waits. */
  async outcomes(): Promise<readonly ListedOutcome[]> {
    await until("all outcomes to be sent", async () => holds(this.collector.counts.waitingOutcomes === 0));
    const { outcomes } = await this.#get<{ readonly outcomes: readonly ListedOutcome[] }>("/v1/agreement?limit=500");
    return outcomes;
  }

  /** The node as the fleet's API returns it. */
  fleetNode(name: string): Promise<Pick<FleetNode, "kubeletRefusals" | "kubeletEvicted" | "severity">> {
    return this.#get(`/v1/nodes/${name}`);
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    this.#cluster.close();
    await this.#api.close();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}
