import { nearNames } from "../model/near-name.ts";
import { type Fields, fieldsOf } from "../model/own.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Cluster } from "./cluster.ts";
import { type AccessRule, type ClusterFault, type ClusterFaultCode, clusterFault } from "./fault.ts";
import type { KubeletPart } from "./kubelets.ts";

export type ClusterPart = "node" | "pods" | "configz" | "stats" | "events";

/** A part of a node or pod that could not be read: decisions that need it say so in `needs`. */
export interface MissingPart {
  readonly part: ClusterPart;
  readonly code: ClusterFaultCode;
  readonly why: string;
  /** What brings it. */
  readonly how: string;
  /** `forbidden`: the right that is missing (`rbacYaml` makes the YAML of it), and who lacks it where that is known. */
  readonly rule?: AccessRule;
  readonly user?: string;
}

/** A node's documents, as kubectl and the kubelet print them, without secrets. */
export interface NodeDocuments {
  readonly name: string;
  /** By this machine's clock, when the last of them was read; RFC 3339. */
  readonly observedAt: string;
  /** v1.Node */
  readonly node: Fields;
  /** v1.List of the pods that are bound to the node; absent, as all of these: it is in `missing`. */
  readonly pods?: unknown;
  /** The kubelet's /configz. */
  readonly configz?: unknown;
  /** The kubelet's /stats/summary. */
  readonly stats?: unknown;
  /** v1.List of the events about the node itself. */
  readonly events?: unknown;
  readonly missing: readonly MissingPart[];
}
/** A pod's documents, and those of its node. */
export interface PodDocuments {
  /** v1.Pod; null: it is gone, and its events are still there. */
  readonly pod: Fields | null;
  /** v1.List of the events about the pod. */
  readonly events?: unknown;
  /** Null: it is bound to no node, and no event names one. */
  readonly node: NodeDocuments | null;
  readonly missing: readonly MissingPart[];
}

/** The parts of a NodeSnapshot that a live cluster tells. State files are not served: a node's own daemon reads them. */
export function snapshotOf({ observedAt, node, pods, configz, stats }: NodeDocuments): Fields {
  const parts = { observedAt, node, kubeletConfiguration: configz, pods, stats };
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));
}

/** Errors: not-found (with near names), and whatever keeps the node itself from being read. Other parts go to `missing`. */
export async function readNode(
  cluster: Cluster,
  name: string,
  signal?: AbortSignal,
): Promise<Result<NodeDocuments, ClusterFault>> {
  const node = await cluster.api.get({ resource: "nodes" }, name);
  if (!node.ok) return node.error.code === "not-found" ? noSuchNode(cluster, name, node.error) : node;
  return ok(await documentsOf(cluster, name, node.value, signal));
}

async function documentsOf(cluster: Cluster, name: string, node: Fields, signal?: AbortSignal): Promise<NodeDocuments> {
  const { api } = cluster;
  const missing: MissingPart[] = [];
  const part = async (name: ClusterPart, reading: Promise<Result<unknown, ClusterFault>>): Promise<unknown> => {
    const read = await reading;
    if (read.ok) return read.value;
    missing.push(missingPart(name, read.error));
    return undefined;
  };
  const kubelet = (of: KubeletPart) => cluster.kubelets.read(node, of, signal);
  const [pods, configz, stats, events] = await Promise.all([
    part("pods", listOf(api.list({ resource: "pods" }, { fieldSelector: `spec.nodeName=${name}` }, signal))),
    part("configz", kubelet("configz")),
    part("stats", kubelet("stats")),
    part("events", listOf(api.list({ resource: "events" }, { fieldSelector: about("Node", name) }, signal))),
  ]);
  // the kubelet's own list has the same pods, with another right
  const own = pods === undefined ? await kubelet("pods") : undefined;
  const known = { pods: pods ?? (own?.ok ? own.value : undefined), configz, stats, events };
  const parts = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
  const left = missing.filter(({ part: one }) => one !== "pods" || known.pods === undefined);
  return { name, observedAt: new Date().toISOString(), node, ...parts, missing: sorted(left) };
}

/**
 * A pod with its events, its node and what the node's kubelet tells. A pod that is gone is told by its events, which the API
 * server keeps for an hour. Errors: not-found (with near names), and whatever keeps the pod itself from being read.
 */
export async function readPod(
  cluster: Cluster,
  namespace: string,
  name: string,
  signal?: AbortSignal,
): Promise<Result<PodDocuments, ClusterFault>> {
  const { api } = cluster;
  const [pod, events] = await Promise.all([
    api.get({ resource: "pods", namespace }, name),
    api.list({ resource: "events", namespace }, { fieldSelector: about("Pod", name) }, signal),
  ]);
  if (!pod.ok && pod.error.code !== "not-found") return pod;
  const told = events.ok ? events.value.items : [];
  if (!pod.ok && told.length === 0) return noSuchPod(cluster, namespace, name, pod.error);
  const missing = events.ok ? [] : [missingPart("events", events.error)];
  const found = pod.ok ? pod.value : null;
  const node = await nodeOf(cluster, nodeNameOf(found, told), signal);
  return ok({
    pod: found,
    ...(events.ok ? { events: list(told) } : {}),
    node: node.ok ? node.value : null,
    missing: node.ok ? missing : [...missing, missingPart("node", node.error)],
  });
}

async function nodeOf(
  cluster: Cluster,
  name: string | undefined,
  signal?: AbortSignal,
): Promise<Result<NodeDocuments | null, ClusterFault>> {
  return name === undefined ? ok(null) : readNode(cluster, name, signal);
}

/** The node that a pod is bound to; of a pod that is gone, the one whose kubelet spoke last of it. */
function nodeNameOf(pod: Fields | null, events: readonly Fields[]): string | undefined {
  const { nodeName } = fieldsOf(pod?.["spec"]);
  if (typeof nodeName === "string" && nodeName !== "") return nodeName;
  if (pod !== null) return undefined;
  const hosts = events.map((event) => fieldsOf(event["source"])).filter(({ component }) => component === "kubelet");
  const host = hosts.at(-1)?.["host"];
  return typeof host === "string" && host !== "" ? host : undefined;
}

/** The names of all nodes, sorted. */
export async function readNodeNames(cluster: Cluster): Promise<Result<readonly string[], ClusterFault>> {
  const nodes = await cluster.api.list({ resource: "nodes" });
  return nodes.ok ? ok(namesIn(nodes.value.items)) : nodes;
}
const namesIn = (items: readonly Fields[]): readonly string[] =>
  items.map((item) => String(fieldsOf(item["metadata"])["name"])).sort();

async function noSuchNode(cluster: Cluster, name: string, fault: ClusterFault): Promise<Result<never, ClusterFault>> {
  const names = await readNodeNames(cluster);
  if (!names.ok) return err(fault);
  return clusterFault(
    "not-found",
    `context ${cluster.context} has no node ${name}`,
    nearText(name, names.value, "nodes"),
  );
}

async function noSuchPod(
  cluster: Cluster,
  namespace: string,
  name: string,
  fault: ClusterFault,
): Promise<Result<never, ClusterFault>> {
  const pods = await cluster.api.list({ resource: "pods", namespace });
  if (!pods.ok) return err(fault);
  const message = `namespace ${namespace} has no pod ${name}, and no event is left that speaks of it`;
  return clusterFault("not-found", message, nearText(name, namesIn(pods.value.items), "pods"));
}

const NAMED = 5;
function nearText(name: string, names: readonly string[], what: string): string {
  const near = nearNames(name, names);
  if (near.length > 0) return `is ${near.join(" or ")} meant?`;
  if (names.length === 0) return `it has no ${what}`;
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return `its ${what} are ${names.slice(0, NAMED).join(", ")}${more}`;
}

const about = (kind: string, name: string): string => `involvedObject.kind=${kind},involvedObject.name=${name}`;

/** As kubectl prints several objects. */
const list = (items: readonly unknown[]): Fields => ({
  apiVersion: "v1",
  items,
  kind: "List",
  metadata: { resourceVersion: "" },
});
async function listOf(reading: Promise<Result<{ readonly items: readonly Fields[] }, ClusterFault>>) {
  const read = await reading;
  return read.ok ? ok(list(read.value.items)) : read;
}

export const missingPart = (part: ClusterPart, { code, message, next, rule, user }: ClusterFault): MissingPart => ({
  part,
  code,
  why: message,
  how: next,
  ...(rule === undefined ? {} : { rule }),
  ...(user === undefined ? {} : { user }),
});

const ORDER: readonly ClusterPart[] = ["node", "pods", "configz", "stats", "events"];
const sorted = (parts: readonly MissingPart[]): readonly MissingPart[] =>
  [...parts].sort((a, b) => ORDER.indexOf(a.part) - ORDER.indexOf(b.part));
