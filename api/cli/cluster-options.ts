import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../base/duration.ts";
import type { ClusterOptions } from "../cluster/cluster.ts";
import type { Cli } from "./cli.ts";

/** The options of every command that reads a live cluster, as commander names them. */
export interface ClusterFlags {
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly cluster?: string;
  readonly user?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  readonly requestTimeout?: number;
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
    .option("--cluster <name>", "another cluster of the kubeconfig than the context's")
    .option("--user <name>", "another user of the kubeconfig than the context's")
    .option("--as <name>", "the user to act as at the API server")
    .option("--as-group <name...>", "the groups to act as")
    .addOption(
      new Option(
        "--request-timeout <time>",
        "timeout of one request to the API server (10s, 1m; 0: none; default: 30s)",
      ).argParser(requestTimeout),
    )
    .option(
      "--proxy",
      "ask kubelets through the API server's proxy; requires the right nodes/proxy, which also allows exec in every container",
    )
    .option(
      "--kubelet-insecure-tls",
      "accept any certificate of a kubelet: any server at its address gets your credentials",
    );

/** A timeout as in kubectl: a duration, or seconds. In milliseconds. */
function requestTimeout(text: string): number {
  const duration = parseDuration(/^\d+$/.test(text) ? `${text}s` : text);
  if (duration.ok && duration.value.nanos >= 0) return duration.value.millis;
  throw new InvalidArgumentError("Expected a duration such as 10s or 1m, or 0.");
}

export const clusterOptions = (
  { kubeletInsecureTls, asGroup, requestTimeout, ...flags }: ClusterFlags,
  env: ClusterOptions["env"],
): ClusterOptions => {
  const { context, kubeconfig, cluster, user, as, proxy } = flags;
  const named = { context, kubeconfig, cluster, user, as, asGroups: asGroup };
  return { ...named, proxy, insecureTls: kubeletInsecureTls, requestTimeoutMs: requestTimeout, env };
};

export const namespaceOption = (command: Command): Command =>
  command.option("-n, --namespace <name>", "with a cluster: the pod's namespace (default: that of the context)");

/** The options that mean that a cluster is read. */
const ASKS = ["context", "kubeconfig", "cluster", "user", "as"] as const;

/**
 * Whether a command reads a cluster: if it has a context, a kubeconfig or part of one. As kubectl's plugin it also reads the
 * current context, if a node or a pod is named or no file is given.
 */
export const asksCluster = (
  flags: ClusterFlags,
  { isPlugin }: Cli,
  { namesObject, hasFiles }: { readonly namesObject: boolean; readonly hasFiles: boolean },
): boolean => ASKS.some((name) => flags[name] !== undefined) || (isPlugin && (namesObject || !hasFiles));

/** The flags from the command line: a data directory from the environment does not rule out a cluster. */
export function withoutEnv<G extends { readonly dataDir?: string }>(given: G, { env }: Cli): G {
  const { dataDir, ...typed } = given;
  return dataDir === env["NODEWISE_DATA_DIR"] ? (typed as G) : given;
}

/** Whether a text can be a node's name in Kubernetes. A file with such a name is given as `./NAME`. */
export const isNodeName = (text: string): boolean =>
  text.length <= 253 && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text) && !/\.(?:json|ya?ml)$/.test(text);

/** A pod as in kubectl: `pod/NAME` is NAME. */
export const podNamed = (text: string): string => text.replace(/^(?:po|pods?)\//, "");

/** Whether a text can be a pod of the cluster: `NAMESPACE/NAME`, or a name alone. A file with such a name is given as `./NAME`. */
export const isPodOfCluster = (text: string): boolean =>
  /^(?:[a-z0-9][a-z0-9-]*\/)?[a-z0-9][a-z0-9.-]*$/.test(text) && !/\.(?:json|ya?ml)$/.test(text);
