import { ok, type Result } from "../base/result.ts";
import { ClusterConnection } from "./access.ts";
import { ApiServer } from "./api-server.ts";
import type { ClusterFault } from "./fault.ts";
import type { KubeconfigOptions } from "./kubeconfig.ts";
import { type KubeletOptions, Kubelets } from "./kubelets.ts";

export interface ClusterOptions extends KubeconfigOptions, KubeletOptions {
  /** For one response of the API server; 0 for none; absent for 30 seconds. */
  readonly requestTimeoutMs?: number | undefined;
}

/** A cluster that can be read: the argument of `readNode`, `readPod`, `readNodes` and `followCluster`. */
export interface Cluster {
  /** The context of the kubeconfig. */
  readonly context: string;
  /** The context's namespace. */
  readonly namespace: string;
  /** The address of the API server. */
  readonly server: string;
  readonly api: ApiServer;
  readonly kubelets: Kubelets;
  /** Closes idle connections. */
  close(): void;
}

/** Reads the kubeconfig; no request is sent yet. Errors: no-kubeconfig, bad-kubeconfig, unknown-context. */
export async function openCluster(options: ClusterOptions): Promise<Result<Cluster, ClusterFault>> {
  const opened = await ClusterConnection.open(options);
  if (!opened.ok) return opened;
  const access = opened.value;
  const api = new ApiServer(access, options);
  const kubelets = new Kubelets(access, api, options);
  const close = (): void => {
    access.close();
    kubelets.close();
  };
  const { context, namespace, server } = access;
  return ok({ context, namespace, server, api, kubelets, close });
}
