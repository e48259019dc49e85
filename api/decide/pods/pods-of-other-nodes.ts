import { byText } from "../../base/order.ts";
import type { AskOf, Kind, Refusal } from "../../model/decision.ts";
import type { Reason } from "../../model/forms.ts";
import { traitsOf } from "../../model/kinds.ts";
import { namespacedPodName, type Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { awaitsScheduling, podsHere, podsOfNode } from "./node-pods.ts";

export const looksAtPods = (kind: Kind): boolean => traitsOf(kind).pods !== "nothing";

/** Node name -> how many of the pods name it; most first. */
function podsByNode({ pods = [] }: Snapshot): readonly (readonly [node: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const { spec } of pods) {
    const name = spec.nodeName ?? "";
    if (name !== "") counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([a, x], [b, y]) => y - x || byText(a, b));
}
const NAMED = 5;
const listed = (nodes: ReturnType<typeof podsByNode>): string =>
  nodes
    .slice(0, NAMED)
    .map(([name, count]) => `${name} ${count}`)
    .concat(nodes.length > NAMED ? [`${nodes.length - NAMED} more nodes`] : [])
    .join(", ");

const selector = (name: string): string => `kubectl get pods -A --field-selector spec.nodeName=${name} -o json`;

/**
 * Refuses pods of one other node only, for which every answer would be that of an empty node, and pods of several
 * nodes if the snapshot does not name its node. A list of several nodes without pods of this node is allowed: a
 * cluster with an empty node has that.
 */
export const othersPods = (kind: Kind, snapshot: Snapshot, ask: AskOf[Kind]): Refusal | undefined =>
  looksAtPods(kind) ? podsOfAnother(snapshot) : askedOfAnother(snapshot, ask);

/** Refuses an asked pod by name that is not on the node, for kinds that read no other pods. */
function askedOfAnother(snapshot: Snapshot, ask: AskOf[Kind]): Refusal | undefined {
  const [pod, bound] = podBoundElsewhere(snapshot, ask) ?? [];
  if (pod === undefined || typeof podOf(ask) !== "string") return undefined;
  const message = `pod ${namespacedPodName(pod)} belongs to ${bound}, the node is ${snapshot.node?.metadata.name}: post the node ${bound}, or none`;
  return { code: "needs_input", message, needs: ["node"] };
}

/** The asked pod, posted or named, and its node, if that is not the snapshot's. */
export function podBoundElsewhere({ node, pods }: Snapshot, ask: AskOf[Kind]): readonly [Pod, string] | undefined {
  const asked = podOf(ask);
  const pod = typeof asked === "string" ? pods?.find((one) => namespacedPodName(one) === asked) : asked;
  const [bound = "", name] = [pod?.spec.nodeName, node?.metadata.name];
  return pod && name !== undefined && bound !== "" && bound !== name ? [pod, bound] : undefined;
}
const podOf = (ask: AskOf[Kind]): Pod | string | undefined =>
  (ask !== undefined && "pod" in ask ? (ask.pod as Pod | string | null) : null) ?? undefined;

/** Refuses a snapshot with only another node's pods, before any kind is asked. */
export function podsOfAnother(snapshot: Snapshot): Refusal | undefined {
  const name = snapshot.node?.metadata.name;
  const nodes = podsByNode(snapshot);
  const [first] = nodes;
  if (first === undefined) return undefined;
  const [owner, count] = first;
  if (name === undefined) {
    if (nodes.length === 1) return undefined;
    const message = `the pods belong to ${nodes.length} nodes (${listed(nodes)}), and no node is given: post the node, or the pods of one (${selector(owner)})`;
    return { code: "needs_input", message, needs: ["node"] };
  }
  if (nodes.length > 1 || owner === name || podsOfNode(snapshot).length > 0) return undefined;
  const pods = count === 1 ? "1 pod belongs" : `${count} pods belong`;
  const message = `${pods} to ${owner}, the node is ${name}: post the pods of ${name} (${selector(name)}), or an empty list where it has none`;
  return { code: "needs_input", message, needs: ["pods"] };
}

/** Says whose the pods are that a decision of this kind leaves out; undefined where it leaves out none. */
export const podsLeftOut = (kind: Kind, snapshot: Snapshot): Reason | undefined =>
  looksAtPods(kind) ? podsOfOthers(snapshot) : undefined;

/** The reason about other nodes' pods in a snapshot, before any kind is asked. */
export function podsOfOthers(snapshot: Snapshot): Reason | undefined {
  const name = snapshot.node?.metadata.name;
  const others = name === undefined ? [] : podsByNode(snapshot).filter(([node]) => node !== name);
  const unbound = (snapshot.pods ?? []).filter(awaitsScheduling).length;
  if (others.length === 0 && unbound === 0) return undefined;
  const left = others.reduce((sum, [, count]) => sum + count, unbound);
  const nodes = [others.length > 0 ? listed(others) : [], unbound > 0 ? `no node yet ${unbound}` : []]
    .flat()
    .join(", ");
  const numbers = { left, nodes, counted: podsOfNode(snapshot).length };
  return { code: "pods_of_other_nodes", field: "pods", numbers };
}

/**
 * Paths of the overheads that are not known: of pods that name a RuntimeClass and have none. The API server writes the
 * class's overhead into each pod that it stores, so where it stored one without, the class has none.
 * kubernetes 1.36: the admission plugin RuntimeClass.
 */
export function unknownOverheads(kind: Kind, snapshot: Snapshot, ask: AskOf[Kind]): readonly string[] {
  if (traitsOf(kind).pods !== "overhead") return [];
  const here = podsHere(snapshot).filter(lacksOverhead);
  const paths = here.map((pod) => `pods[${snapshot.pods?.indexOf(pod)}].spec.overhead`);
  const asked = podOf(ask);
  return typeof asked === "object" && lacksOverhead(asked) ? [...paths, "ask.pod.spec.overhead"] : paths;
}
const lacksOverhead = ({ metadata, spec }: Pod): boolean =>
  (spec.runtimeClassName ?? "") !== "" && spec.overhead === undefined && metadata.creationTimestamp === undefined;
