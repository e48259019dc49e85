import pLimit from "p-limit";
import { byText } from "../../base/order.ts";
import { type Fields, fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { type Cluster, openCluster } from "../../cluster/cluster.ts";
import {
  type AccessRule,
  type ClusterFault,
  type ClusterFaultCode,
  clusterFault,
  clusterFaultText,
} from "../../cluster/fault.ts";
import { rbacYaml } from "../../cluster/rbac.ts";
import {
  type MissingPart,
  type NodeDocuments,
  readNode,
  readNodeNames,
  readPodObject,
  snapshotOf,
} from "../../cluster/read.ts";
import { listed, namesText } from "../../text/sentences/words.ts";
import type { Cli } from "../cli.ts";
import { type ClusterFlags, clusterOptions, isNodeName } from "../cluster-options.ts";
import { EXIT, type Fault, fault, type Terminal } from "../terminal.ts";

/** A node of a live cluster as a posted NodeSnapshot, and the pod to decide on. */
export interface ClusterNode {
  readonly name: string;
  readonly snapshot: Fields;
  /** The parts of the snapshot that could not be read, which have been reported. */
  readonly missing: readonly MissingPart[];
  /** For a pod on the node: its `NAMESPACE/NAME` in the snapshot. */
  readonly pod?: string;
  /** For a pod on another node or on none: the v1.Pod. */
  readonly podObject?: Fields;
}

/** Opens the flags' cluster for some work. Errors: those of the kubeconfig, and the work's. */
export async function withCluster<T>(
  flags: ClusterFlags,
  { env, terminal }: Cli,
  work: (cluster: Cluster) => Promise<Result<T, Fault>>,
): Promise<Result<T, Fault>> {
  const opened = await openCluster(clusterOptions(flags, env));
  if (!opened.ok) return clusterRefusal(opened.error, terminal);
  try {
    return await work(opened.value);
  } finally {
    opened.value.close();
  }
}

/** Faults of the command line; others are the cluster's. */
const USAGE: ReadonlySet<ClusterFaultCode> = new Set([
  ...(["no-kubeconfig", "bad-kubeconfig", "unknown-context", "not-found"] as const),
]);

/** The fault of a command that cannot read the cluster; missing permissions are printed as YAML. */
export function clusterRefusal(
  error: ClusterFault | readonly ClusterFault[],
  terminal: Terminal,
): Result<never, Fault> {
  const errors = [error].flat();
  warnRights(errors, terminal);
  const isUsage = errors.every(({ code }) => USAGE.has(code));
  return fault(isUsage ? EXIT.badInput : EXIT.failed, ...errors.map(clusterFaultText));
}

/** Warns about parts of nodes that could not be read: a line per reason, and the YAML of all missing permissions. */
export function warnMissing(nodes: readonly Pick<NodeDocuments, "name" | "missing">[], terminal: Terminal): void {
  const all = nodes.flatMap(({ name, missing }) => missing.map((part) => ({ name, ...part })));
  // one line for all nodes and all parts with the same reason
  const byPart = Map.groupBy(all, ({ code, how, part }) => JSON.stringify([code, how, part]));
  const byReason = Map.groupBy(byPart.values(), ([first, ...more]) =>
    JSON.stringify([first?.code, first?.how, [first, ...more].map((one) => one?.name)]),
  );
  for (const [first, ...more] of byReason.values()) {
    const { why = "", how = "" } = first?.[0] ?? {};
    const parts = [first, ...more].flatMap((same) => same?.[0]?.part ?? []);
    const names = (first ?? []).map(({ name }) => name);
    terminal.warn(`nodewise: ${namesText(names)}: without ${listed(parts)}: ${how === "" ? why : `${why}: ${how}`}`);
  }
  warnRights(all, terminal);
}

/** The YAML that each terminal has shown: it usually covers permissions that are found missing later. */
const warnedOn = new WeakMap<Terminal, Set<string>>();

/** The missing permissions, and the documents that grant them unless this terminal has shown them. Undefined if none is missing. */
export function missingRights(missing: readonly Pick<ClusterFault, "rule" | "user">[], terminal: Terminal) {
  const rules = missing.flatMap(({ rule }) => rule ?? []);
  if (rules.length === 0) return undefined;
  const user = missing.find(({ user }) => user !== undefined)?.user;
  const printed = warnedOn.get(terminal) ?? new Set();
  const fresh = rbacYaml(rules, user)
    .trimEnd()
    .split(BETWEEN)
    .filter((document) => !printed.has(document));
  warnedOn.set(terminal, new Set([...printed, ...fresh]));
  return { rights: rightsText(rules), yaml: fresh.join(BETWEEN) };
}
const BETWEEN = "\n---\n";

/** Warns about missing permissions, and prints the YAML that grants them once. */
export function warnRights(missing: Parameters<typeof missingRights>[0], terminal: Terminal): void {
  const { rights, yaml } = missingRights(missing, terminal) ?? {};
  if (rights === undefined) return;
  const how = yaml === "" ? "the YAML above grants it" : "an administrator can grant it with `kubectl apply -f -` and:";
  const lines = [`nodewise: the ${rights} is missing: ${how}`, ...(yaml ? yaml.split("\n") : [])];
  for (const line of lines) terminal.warn(line);
}

/** `right to get nodes/configz and nodes/stats`. */
export function rightsText(rules: readonly AccessRule[]): string {
  const byVerbs = Map.groupBy(rules, ({ verbs }) => listed(verbs));
  const rights = Array.from(byVerbs, ([verbs, same]) => {
    return `${verbs} ${listed([...new Set(same.map(({ resource }) => resource))].sort())}`;
  });
  return `right to ${rights.join(", and to ")}`;
}

interface AskedNode {
  readonly node?: string | undefined;
  readonly pod?: string | undefined;
  /** False: the ResourceClaims of the node's pods are not read. */
  readonly claims?: boolean;
}
/**
 * Reads the named node, the pod's, or the cluster's only one; reports parts that could not be read. Errors: those of the cluster;
 * a node that is a file.
 */
export const readClusterNode = (
  flags: ClusterFlags,
  { node, pod, claims = true }: AskedNode,
  cli: Cli,
): Promise<Result<ClusterNode, Fault>> =>
  withCluster(flags, cli, async (cluster) => {
    const { terminal } = cli;
    if (node !== undefined && !isNodeName(node)) return noNodeName(node, flags);
    const asked = pod === undefined ? ok(undefined) : await podOf(cluster, pod, flags);
    if (!asked.ok) return clusterRefusal(asked.error, terminal);
    const bound = asked.value === undefined ? undefined : fieldsOf(asked.value["spec"])["nodeName"];
    const name = node === undefined ? await nodeName(cluster, pod, bound) : ok(node);
    if (!name.ok) return clusterRefusal(name.error, terminal);
    const read = await readNode(cluster, name.value, { about: asked.value, claims, events: false });
    if (!read.ok) return clusterRefusal(read.error, terminal);
    warnMissing([read.value], terminal);
    return ok(nodeWith(read.value, asked.value));
  });

function noNodeName(node: string, { context, kubeconfig }: ClusterFlags): Result<never, Fault> {
  const why =
    context !== undefined ? "with --context" : kubeconfig !== undefined ? "with --kubeconfig" : "as kubectl's plugin";
  return fault(
    EXIT.badInput,
    `--node ${node}: ${why} it is the name of a node, and this is none: give a file without a cluster`,
  );
}

async function podOf(
  cluster: Cluster,
  pod: string,
  { namespace }: ClusterFlags,
): Promise<Result<Fields, ClusterFault>> {
  const [name = "", own = namespace ?? cluster.namespace] = pod.split("/").reverse();
  return readPodObject(cluster, own, name);
}

async function nodeName(
  cluster: Cluster,
  pod: string | undefined,
  bound: unknown,
): Promise<Result<string, ClusterFault>> {
  if (typeof bound === "string" && bound !== "") return ok(bound);
  const names = await readNodeNames(cluster);
  if (!names.ok) return names;
  const [first, second] = names.value;
  if (first !== undefined && second === undefined) return ok(first);
  const next = first === undefined ? "it has none" : `they are ${namesText(names.value)}`;
  const message =
    pod === undefined
      ? `--node NAME chooses one of the nodes of context ${cluster.context}`
      : `pod ${pod} is bound to no node: --node NAME chooses one of the nodes of context ${cluster.context}`;
  return clusterFault("not-found", message, next);
}

function nodeWith(documents: NodeDocuments, pod: Fields | undefined): ClusterNode {
  const { name, missing } = documents;
  const node = { name, missing, snapshot: snapshotOf(documents) };
  if (pod === undefined) return node;
  const { name: podName, namespace } = fieldsOf(pod["metadata"]);
  const { nodeName: bound } = fieldsOf(pod["spec"]);
  if (bound === name) return { ...node, pod: `${String(namespace)}/${String(podName)}` };
  const { status, ...podObject } = pod;
  return { ...node, podObject: { ...podObject, ...claimsIn(status) } };
}

/** The claim names from the status of a pod that is decided on as a new one. */
function claimsIn(status: unknown): Fields {
  const named = ["resourceClaimStatuses", "extendedResourceClaimStatus"];
  const kept = Object.entries(fieldsOf(status)).filter(([name]) => named.includes(name));
  return kept.length === 0 ? {} : { status: Object.fromEntries(kept) };
}

/** The most nodes read at a time. */
const AT_A_TIME = 8;
/** Moves to the first column of a terminal's line, and clears it. */
const CLEAR = "\r\u001b[K";

/**
 * Reads the named nodes, or all of the cluster, and runs the work on each as it arrives. The results have the order of the names.
 * Reports parts that could not be read; a node that could not be read at all results in the fault.
 */
export async function eachClusterNode<T>(
  cluster: Cluster,
  { names: given, claims = true }: { readonly names?: readonly string[] | undefined } & Pick<AskedNode, "claims">,
  flags: ClusterFlags,
  { terminal }: Cli,
  work: (name: string, read: Result<ClusterNode, ClusterFault>) => Promise<T>,
): Promise<Result<readonly T[], Fault>> {
  const file = given?.find((name) => !isNodeName(name));
  if (file !== undefined) return noNodeName(file, flags);
  const names = given === undefined ? await readNodeNames(cluster) : ok(given);
  if (!names.ok) return clusterRefusal(names.error, terminal);
  const limit = pLimit(AT_A_TIME);
  const read: NodeDocuments[] = [];
  let done = 0;
  const one = async (name: string): Promise<T> => {
    const documents = await readNode(cluster, name, { claims, events: false });
    if (documents.ok) read.push(documents.value);
    done++;
    if (process.stderr.isTTY) process.stderr.write(`${CLEAR}${done} of ${names.value.length} nodes are read`);
    return work(name, documents.ok ? ok(nodeWith(documents.value, undefined)) : documents);
  };
  const answers = await Promise.all(names.value.map((name) => limit(() => one(name))));
  if (process.stderr.isTTY) process.stderr.write(CLEAR);
  warnMissing(
    read.sort((a, b) => byText(a.name, b.name)),
    terminal,
  );
  return ok(answers);
}
