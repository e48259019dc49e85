import { nearNames } from "../base/near-name.ts";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { err, map, ok, type Result } from "../base/result.ts";
import { CLAIM_PARTS, type ClaimPart, usesClaims } from "../model/resource-claim.ts";
import { type ClaimReadings, readClaims } from "./claims.ts";
import type { Cluster } from "./cluster.ts";
import { type AccessRule, type ClusterFault, type ClusterFaultCode, clusterFault } from "./fault.ts";
import type { KubeletPart } from "./kubelets.ts";

export type ClusterPart = "node" | "pods" | "configz" | "stats" | "events" | ClaimPart;

/** A part of a node or pod that could not be read: decisions that need it list it in `needs`. */
export interface MissingPart {
  readonly part: ClusterPart;
  readonly code: ClusterFaultCode;
  readonly why: string;
  /** How to provide it. */
  readonly how: string;
  /** `forbidden`: the missing permission (`rbacYaml` makes its YAML), and the user if known. */
  readonly rule?: AccessRule;
  readonly user?: string;
}

/** A node's documents as kubectl and the kubelet return them, without secrets. */
export interface NodeDocuments {
  readonly name: string;
  /** When the last of them was read, by the local clock; RFC 3339. */
  readonly observedAt: string;
  /** v1.Node */
  readonly node: Fields;
  /** v1.List of the pods on the node; if absent, as any of these, it is in `missing`. */
  readonly pods?: unknown;
  /** The kubelet's /configz. */
  readonly configz?: unknown;
  /** The kubelet's /stats/summary. */
  readonly stats?: unknown;
  /** v1.List of the events about the node itself. */
  readonly events?: unknown;
  /** Lists of resource.k8s.io/v1, also absent if no pod of the node uses ResourceClaims: the claims of its pods, */
  readonly resourceClaims?: unknown;
  /** the node's slices and those of other pools from which the claims have devices, */
  readonly resourceSlices?: unknown;
  /** and all classes. */
  readonly deviceClasses?: unknown;
  readonly missing: readonly MissingPart[];
}
/** A pod's documents, and those of its node. */
interface PodDocuments {
  /** v1.Pod; null if it is gone and only its events remain. */
  readonly pod: Fields | null;
  /** v1.List of the events about the pod. */
  readonly events?: unknown;
  /** Null if the pod is not bound to a node, and no event names one. */
  readonly node: NodeDocuments | null;
  readonly missing: readonly MissingPart[];
}

/** The parts of a NodeSnapshot that a live cluster provides. State files are not served: only the node's own daemon can read them. */
export function snapshotOf(documents: NodeDocuments): Fields {
  const { observedAt, node, pods, configz, stats, resourceClaims, resourceSlices, deviceClasses } = documents;
  const dra = present({ resourceClaims, resourceSlices, deviceClasses });
  const parts = { observedAt, node, kubeletConfiguration: configz, pods, stats };
  return present({ ...parts, dra: Object.keys(dra).length > 0 ? dra : undefined });
}
const present = (parts: Fields): Fields =>
  Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));

/** Errors: not-found (with similar names), and whatever prevents reading the node itself. Other parts go to `missing`. */
export async function readNode(
  cluster: Cluster,
  name: string,
  options: DocumentOptions = {},
): Promise<Result<NodeDocuments, ClusterFault>> {
  const node = await cluster.api.get({ resource: "nodes" }, name);
  if (!node.ok) return node.error.code === "not-found" ? noSuchNode(cluster, name, node.error) : node;
  return ok(await readDocuments(cluster, node.value, options));
}

interface DocumentOptions {
  /** The pods of the node, if already known. */
  readonly pods?: readonly Fields[];
  /** A pod whose claims are also read, whether or not it is on the node. */
  readonly about?: Fields | undefined;
  /** False: no claims are read. */
  readonly claims?: boolean;
  /** False: the events of the node are not read. */
  readonly events?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The documents of a node whose object is known. Parts that cannot be read go to `missing`. */
export async function readDocuments(
  cluster: Cluster,
  node: Fields,
  { pods: known, about: asked, claims = true, events = true, signal }: DocumentOptions = {},
): Promise<NodeDocuments> {
  const name = nameOf(node);
  const kubelet = (of: KubeletPart): PartResult => cluster.kubelets.read(node, of, signal);
  const listed = (of: "pods" | "events", fieldSelector: string): PartResult =>
    cluster.api.list({ resource: of }, { fieldSelector }, signal).then((read) => map(read, ({ items }) => list(items)));
  const pods = known === undefined ? podsOf(name, listed, kubelet) : Promise.resolve(ok(list(known)));
  const ofClaims = pods.then(async (read): Promise<ClaimReadings> => {
    if (!claims) return {};
    const bound = read.ok ? podsIn(read.value).filter(isRunning) : [];
    return readClaims(cluster.api, name, asked === undefined ? bound : [...bound, asked], signal);
  });
  const readings: readonly (readonly [ReadPart, PartResult])[] = [
    ["pods", pods],
    ["configz", kubelet("configz")],
    ["stats", kubelet("stats")],
    ...(events ? [["events", listed("events", about("Node", name))] as const] : []),
  ];
  const parts: Partial<Record<ReadPart, unknown>> = {};
  const missing: MissingPart[] = [];
  for (const [part, reading] of readings) {
    const read = await reading;
    if (read.ok) parts[part] = read.value;
    else missing.push(missingPart(part, read.error));
  }
  for (const part of CLAIM_PARTS) {
    const read = (await ofClaims)[part];
    if (read?.ok === true) parts[part] = read.value;
    else if (read !== undefined) missing.push(missingPart(part, read.error));
  }
  return { name, observedAt: new Date().toISOString(), node, ...parts, missing };
}
type ReadPart = Exclude<ClusterPart, "node">;
type PartResult = Promise<Result<unknown, ClusterFault>>;
const podsIn = (pods: unknown): readonly Fields[] => {
  const { items } = fieldsOf(pods);
  return Array.isArray(items) ? items.filter(isObject) : [];
};
/** Whether a pod has not ended: an ended pod no longer uses its claims. */
const isRunning = ({ status }: Fields): boolean => !["Succeeded", "Failed"].includes(String(fieldsOf(status)["phase"]));

/** The pods from the API server, or else from the kubelet, which requires another permission. */
async function podsOf(
  name: string,
  listed: (of: "pods", selector: string) => PartResult,
  kubelet: (of: "pods") => PartResult,
): PartResult {
  const fromApi = await listed("pods", `spec.nodeName=${name}`);
  if (fromApi.ok || fromApi.error.code !== "forbidden") return fromApi;
  const own = await kubelet("pods");
  return own.ok ? own : fromApi;
}

/**
 * A pod with its events, its node and the kubelet's data. A pod that is gone is known from its events, which the API server keeps
 * for an hour. Errors: not-found (with similar names), and whatever prevents reading the pod itself.
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
  const listedEvents = events.ok ? events.value.items : [];
  if (!pod.ok && listedEvents.length === 0) return noSuchPod(cluster, namespace, name, pod.error);
  const missing = events.ok ? [] : [missingPart("events", events.error)];
  const found = pod.ok ? pod.value : null;
  const node = await nodeOf(cluster, nodeNameOf(found, listedEvents), found ?? undefined, signal);
  return ok({
    pod: found,
    ...(events.ok ? { events: list(listedEvents) } : {}),
    node: node.ok ? node.value : null,
    missing: node.ok ? missing : [...missing, missingPart("node", node.error)],
  });
}

async function nodeOf(
  cluster: Cluster,
  name: string | undefined,
  about: Fields | undefined,
  signal?: AbortSignal,
): Promise<Result<NodeDocuments | null, ClusterFault>> {
  // the explanation of a pod without claims does not need them
  const claims = about !== undefined && usesClaims(about);
  return name === undefined ? ok(null) : readNode(cluster, name, { about, claims, signal });
}

/** A pod alone. Errors: not-found (with similar names), and whatever prevents reading it. */
export async function readPodObject(
  cluster: Cluster,
  namespace: string,
  name: string,
): Promise<Result<Fields, ClusterFault>> {
  const pod = await cluster.api.get({ resource: "pods", namespace }, name);
  return pod.ok || pod.error.code !== "not-found" ? pod : noSuchPod(cluster, namespace, name, pod.error);
}

/** The namespaces with a pod of this name, or with events about one that is gone; at least one. Errors: not-found (with similar names). */
export async function readNamespaces(cluster: Cluster, name: string): Promise<Result<readonly string[], ClusterFault>> {
  const { api, context } = cluster;
  const pods = await api.list({ resource: "pods" }, { fieldSelector: `metadata.name=${name}` });
  if (!pods.ok) return pods;
  const events =
    pods.value.items.length > 0 ? pods : await api.list({ resource: "events" }, { fieldSelector: about("Pod", name) });
  const objects = events.ok ? events.value.items : [];
  const spaces = new Set(objects.map(({ metadata }) => String(fieldsOf(metadata)["namespace"])));
  if (spaces.size > 0) return ok([...spaces].sort());
  const all = await api.list({ resource: "pods" });
  const near = all.ok ? nearText(name, [...new Set(namesIn(all.value.items))], "pods") : "check the name";
  return clusterFault("not-found", `no namespace of context ${context} has a pod ${name}`, near);
}

/** The node that a pod is bound to; for a pod that is gone, the node of the kubelet with the last event about it. */
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
/** The names of the nodes of pods with such labels, sorted. */
export async function readNodesOfPods(
  cluster: Cluster,
  namespace: string | undefined,
  labelSelector: string,
): Promise<Result<readonly string[], ClusterFault>> {
  const of = namespace === undefined ? {} : { namespace };
  const pods = await cluster.api.list({ resource: "pods", ...of }, labelSelector === "" ? {} : { labelSelector });
  if (!pods.ok) return pods;
  const names = pods.value.items.map(({ spec }) => fieldsOf(spec)["nodeName"]);
  return ok([...new Set(names.filter((name) => typeof name === "string" && name !== ""))].sort() as string[]);
}
const namesIn = (items: readonly Fields[]): readonly string[] => items.map(nameOf).sort();
const nameOf = (object: Fields): string => String(fieldsOf(object["metadata"])["name"]);

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
  const message = `namespace ${namespace} has no pod ${name}`;
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

/** A v1.List, as kubectl prints several objects. */
const list = (items: readonly unknown[]): Fields => ({
  apiVersion: "v1",
  items,
  kind: "List",
  metadata: { resourceVersion: "" },
});
export const missingPart = (part: ClusterPart, { code, message, next, rule, user }: ClusterFault): MissingPart => ({
  part,
  code,
  why: message,
  how: next,
  ...(rule === undefined ? {} : { rule }),
  ...(user === undefined ? {} : { user }),
});
