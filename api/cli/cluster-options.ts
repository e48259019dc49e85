import type { Command } from "commander";
import type { ClusterOptions } from "../cluster/cluster.ts";

export interface ClusterFlags {
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly proxy?: boolean;
  readonly insecureKubeletTls?: boolean;
}

export const withClusterOptions = (command: Command): Command =>
  command
    .option("--context <name>", "a context of the kubeconfig (default: its current-context)")
    .option("--kubeconfig <file>", "default: KUBECONFIG, ~/.kube/config, or the pod's service account")
    .option("--proxy", "ask kubelets over the API server's proxy, which takes the right nodes/proxy: as strong as exec")
    .option("--insecure-kubelet-tls", "take any certificate of a kubelet");

export const clusterOptions = (
  { context, kubeconfig, proxy, insecureKubeletTls }: ClusterFlags,
  env: ClusterOptions["env"],
): ClusterOptions => ({ context, kubeconfig, proxy, insecureTls: insecureKubeletTls, env });
