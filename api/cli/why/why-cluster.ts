import { fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { type MissingPart, missingPart, type NodeDocuments, readNamespaces, readPod } from "../../cluster/read.ts";
import type { AdditionalEvidence, UnreadPiece, WhyDocument } from "../../service/why/evidence.ts";
import { namesText } from "../../text/sentences/words.ts";
import type { Cli } from "../cli.ts";
import { type ClusterFlags, isPodOfCluster } from "../cluster-options.ts";
import { clusterRefusal, rightsText, warnMissing, withCluster } from "../inputs/cluster-node.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface ClusterWhyFlags extends ClusterFlags {
  readonly allNamespaces?: boolean;
}
interface ClusterEvidence {
  readonly documents: readonly WhyDocument[];
  /** `NAMESPACE/NAME`; null for all pods. */
  readonly pod: string | null;
  readonly additional: AdditionalEvidence;
}

/**
 * Everything that a live cluster has about a pod: itself, its node with the other pods, their configuration and usage, and the
 * events. Without a pod: all pods of the namespace, or of all namespaces, with the nodes and events. Errors: those of the cluster.
 */
export const clusterEvidence = (
  pod: string | null,
  flags: ClusterWhyFlags,
  cli: Cli,
): Promise<Result<ClusterEvidence, Fault>> =>
  withCluster(flags, cli, async (cluster) => {
    if (pod === null) return evidenceOfAll(cluster, flags, cli);
    if (!isPodOfCluster(pod))
      return fault(EXIT.badInput, `${pod}: give NAME or NAMESPACE/NAME of a pod of the cluster`);
    const [name = "", given] = pod.split("/").reverse();
    const spaces = given === undefined && flags.allNamespaces === true ? await onlyNamespace(cluster, name, cli) : null;
    if (spaces?.ok === false) return spaces;
    const namespace = given ?? spaces?.value ?? flags.namespace ?? cluster.namespace;
    const read = await readPod(cluster, namespace, name);
    if (!read.ok) return clusterRefusal(read.error, cli.terminal);
    const { pod: object, events, node, missing } = read.value;
    warnMissing([{ name: `${namespace}/${name}`, missing }, ...(node === null ? [] : [node])], cli.terminal);
    const own = [
      [`pod ${namespace}/${name}`, object ?? undefined],
      ["its events", events],
    ] as const;
    const isWaiting = object !== null && node === null && missing.every(({ part }) => part !== "node");
    const lacked = [...missing, ...(node?.missing ?? [])].map(unreadPiece);
    const { parts, unread } = isWaiting ? await partsOfNodes(cluster, cli) : { parts: partsOf(node), unread: [] };
    const additional = { readAtMs: Date.now(), hasAllEvents: events !== undefined, unread: [...lacked, ...unread] };
    return ok({ documents: present([...own, ...parts]), pod: `${namespace}/${name}`, additional });
  });

function unreadPiece({ part, rule, why }: MissingPart): UnreadPiece {
  const piece = part === "configz" ? "kubeletConfiguration" : part;
  return { piece, why: rule === undefined ? why : `the ${rightsText([rule])} is missing` };
}

/** The namespace of the only pod of a name. Errors: there is none, or there are several. */
async function onlyNamespace(cluster: Cluster, name: string, { terminal }: Cli): Promise<Result<string, Fault>> {
  const spaces = await readNamespaces(cluster, name);
  if (!spaces.ok) return clusterRefusal(spaces.error, terminal);
  const [only = "", ...others] = spaces.value;
  if (others.length === 0) return ok(only);
  const names = spaces.value.map((space) => `${space}/${name}`);
  return fault(EXIT.badInput, `there is a pod ${name} in ${names.length} namespaces: ${names.join(", ")}; name one`);
}

/** With more nodes, only the scheduler's message is used: their pods would be too many to read for one answer. */
const MAX_NODES = 200;

/** The most kubelets whose configuration is read, and the time limit for all of them. */
const MAX_KUBELETS = 64;
const KUBELETS_MS = 10_000;

/** The nodes on which an unscheduled pod could run, with their pods and configurations. */
async function partsOfNodes({ api, kubelets }: Cluster, { terminal }: Cli): Promise<PartsOfNodes> {
  const nodes = await api.list({ resource: "nodes" });
  if (!nodes.ok || nodes.value.items.length > MAX_NODES) return { parts: [], unread: [] };
  const pods = await api.list({ resource: "pods" });
  const names = nodes.value.items.map(({ metadata }) => String(fieldsOf(metadata)["name"]));
  const signal = AbortSignal.timeout(KUBELETS_MS);
  const read = await Promise.all(
    nodes.value.items.slice(0, MAX_KUBELETS).map((node) => kubelets.read(node, "configz", signal)),
  );
  const failed = read.flatMap((one, i) =>
    one.ok ? [] : [{ name: names[i] ?? "", missing: [missingPart("configz", one.error)] }],
  );
  warnMissing(failed, terminal);
  const [first] = failed.flatMap(({ missing }) => missing);
  const of = namesText(failed.map(({ name }) => name));
  const parts: readonly Part[] = [
    ["nodes", list(nodes.value.items)],
    ...(pods.ok ? [["pods", list(pods.value.items), names] as const] : []),
    ...read.flatMap((one, i): readonly Part[] =>
      one.ok ? [[`/configz of ${names[i]}`, one.value, [], names[i] ?? ""]] : [],
    ),
  ];
  const unread = first === undefined ? [] : [unreadPiece({ ...first, why: `of ${of}: ${first.why}` })];
  return { parts, unread };
}
interface PartsOfNodes {
  readonly parts: readonly Part[];
  readonly unread: readonly UnreadPiece[];
}
const list = (items: readonly unknown[]): object => ({ apiVersion: "v1", kind: "List", items });
/** `node`: the node of a document that does not name one. */
type Part = readonly [origin: string, value: unknown, allPodsOf?: readonly string[], node?: string];

const partsOf = (node: NodeDocuments | null): readonly Part[] =>
  node === null
    ? []
    : [
        [`node ${node.name}`, node.node],
        [`pods of ${node.name}`, node.pods, [node.name]],
        [`/configz of ${node.name}`, node.configz, [], node.name],
        [`/stats/summary of ${node.name}`, node.stats],
        [`events of ${node.name}`, node.events],
        [`ResourceClaims of ${node.name}`, node.resourceClaims],
        [`ResourceSlices of ${node.name}`, node.resourceSlices],
        ["DeviceClasses", node.deviceClasses],
      ];
const present = (parts: readonly Part[]): readonly WhyDocument[] =>
  parts.flatMap(([origin, value, allPodsOf = [], node = ""]) =>
    value === undefined ? [] : [{ origin, value, allPodsOf, node }],
  );

async function evidenceOfAll(
  { api, namespace: own }: Cluster,
  { namespace = own, allNamespaces }: ClusterWhyFlags,
  { terminal }: Cli,
): Promise<Result<ClusterEvidence, Fault>> {
  const within = allNamespaces === true ? {} : { namespace };
  const [pods, nodes, events] = await Promise.all([
    api.list({ resource: "pods", ...within }),
    api.list({ resource: "nodes" }),
    api.list({ resource: "events", ...within }),
  ]);
  // without a namespace's pods there is no explanation; who may read only one namespace may not read nodes
  if (!pods.ok)
    return clusterRefusal(
      [pods, nodes, events].flatMap((one) => (one.ok ? [] : [one.error])),
      terminal,
    );
  if (pods.value.items.length === 0)
    return fault(EXIT.ok, allNamespaces === true ? "the cluster has no pods" : `namespace ${namespace} has no pods`);
  const missing = [
    nodes.ok ? [] : missingPart("node", nodes.error),
    events.ok ? [] : missingPart("events", events.error),
  ];
  warnMissing([{ name: "the cluster", missing: missing.flat() }], terminal);
  const documents = Object.entries({ pods, nodes, events }).flatMap(([origin, read]) =>
    read.ok ? [{ origin, value: list(read.value.items) }] : [],
  );
  return ok({ documents, pod: null, additional: { readAtMs: Date.now() } });
}
