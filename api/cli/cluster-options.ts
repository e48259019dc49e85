import type { Command } from "commander";
import type { ClusterOptions } from "../cluster/cluster.ts";
import type { Cli } from "./cli.ts";

/** The options of every command that reads a live cluster, as commander names them. */
export interface ClusterFlags {
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly namespace?: string;
  readonly proxy?: boolean;
  readonly kubeletInsecureTls?: boolean;
}

export const withClusterOptions = (command: Command): Command =>
  command
    .option("--context <name>", "the cluster of this context of the kubeconfig (default: its current-context)")
    .option(
      "--kubeconfig <file>",
      "the cluster of this kubeconfig (default: KUBECONFIG, ~/.kube/config, or the pod's service account)",
    )
    .option(
      "--proxy",
      "ask kubelets over the API server's proxy, which takes the right nodes/proxy: as strong as exec in every container",
    )
    .option(
      "--kubelet-insecure-tls",
      "take any certificate of a kubelet: whoever answers at its address gets your credentials",
    );

export const clusterOptions = (
  { context, kubeconfig, proxy, kubeletInsecureTls }: ClusterFlags,
  env: ClusterOptions["env"],
): ClusterOptions => ({ context, kubeconfig, proxy, insecureTls: kubeletInsecureTls, env });

export const namespaceOption = (command: Command): Command =>
  command.option("-n, --namespace <name>", "with a cluster: the pod's namespace (default: that of the context)");

/**
 * Whether a command reads a cluster: when it is told a context or a kubeconfig. As kubectl's plugin it reads the current context
 * too, when it is told a node or a pod of it, or is given no file at all.
 */
export const asksCluster = (
  { context, kubeconfig }: ClusterFlags,
  { isPlugin }: Cli,
  { namesObject, hasFiles }: { readonly namesObject: boolean; readonly hasFiles: boolean },
): boolean => context !== undefined || kubeconfig !== undefined || (isPlugin && (namesObject || !hasFiles));

/** The options that were typed: a data directory that the environment names says nothing against a cluster. */
export function withoutEnv<G extends { readonly dataDir?: string }>(given: G, { env }: Cli): G {
  const { dataDir, ...typed } = given;
  return dataDir === env["NODEWISE_DATA_DIR"] ? (typed as G) : given;
}

/** Kubernetes takes these as names of nodes. A file that has such a name is given as `./NAME`. */
export const isNodeName = (text: string): boolean =>
  text.length <= 253 && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text) && !/\.(?:json|ya?ml)$/.test(text);

/** `NAMESPACE/NAME`, or a name alone: a pod of the cluster. A file that has such a name is given as `./NAME`. */
export const isPodOfCluster = (text: string): boolean =>
  /^(?:[a-z0-9][a-z0-9-]*\/)?[a-z0-9][a-z0-9.-]*$/.test(text) && !/\.(?:json|ya?ml)$/.test(text);
