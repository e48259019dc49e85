import { joinPath } from "../../base/input-issue.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import { type Finding, isCalm, type Unused } from "../../model/why.ts";
import { chooseProfile } from "../../profiles/index.ts";
import { othersConfiguration } from "../../profiles/unknown-fields.ts";
import {
  type Evidence,
  kubeletVersionOf,
  type ObservedPodAt,
  observed,
  observedNode,
  observedSummary,
} from "./evidence.ts";
import { type Subject, timeOf } from "./find-pod.ts";
import { cut, type WhyContext } from "./why-context.ts";

/** Why the documents contradict each other: the pod is on two nodes, or the configuration is of another kubelet. Null if they do not. */
export function contradictionIn(evidence: Evidence, subject: Subject): string | null {
  const { held, node } = subject;
  const other = samePod(evidence, subject).find(({ node }) => node !== "" && held?.node !== "" && node !== held?.node);
  if (other === undefined) {
    const { isRecorded, found } = otherKubelet(evidence, node);
    return found === undefined || isRecorded ? null : `/configz: ${joinPath("", found.path)}: ${found.message}`;
  }
  return `${other.place} has the pod on node ${other.node}, and ${held?.place} on ${held?.node}: a pod never moves; give the documents of one cluster`;
}

/** A configuration with a field that the node's kubelet does not know. `isRecorded`: it is from a NodeSnapshot; that field is left out. */
function otherKubelet({ nodes, parts }: Evidence, name: string | null) {
  const configuration = (parts.get("") ?? parts.get(name ?? ""))?.["kubeletConfiguration"];
  const chosen = chooseProfile(kubeletVersionOf(nodes.get(name ?? "")?.value));
  const found = name === null ? undefined : othersConfiguration(configuration, name, chosen);
  return { isRecorded: configurationPath(configuration).length === 0, found };
}

/** The documents with the pod's uid, except those from snapshots. */
const samePod = ({ pods }: Evidence, { ref, held }: Subject): readonly ObservedPodAt[] =>
  held === null ? [] : pods.filter((one) => one.snapshot === null && one.ref.uid !== "" && one.ref.uid === ref.uid);

/** Sentences about how documents were interpreted where another reading is possible. */
export function notesOf({ subject, evidence }: WhyContext, findings: readonly Finding[]): readonly string[] {
  const { othersEvents, namesakes, held } = subject;
  const versions = new Set(samePod(evidence, subject).map(versionOf));
  const address = otherAddress(evidence, subject);
  const unknown = otherKubelet(evidence, subject.node).found;
  return [
    ...(unknown === undefined ? [] : [`of the configuration ${unknown.note}`]),
    ...(othersEvents > 0 ? [`events of another pod of this name are left out: ${othersEvents} (other uid)`] : []),
    ...(namesakes.length > 0
      ? [`there are documents of ${namesakes.length + 1} pods of this name: this is of the one made last`]
      : []),
    ...(versions.size > 1 ? [`the pod is there in ${versions.size} versions: that of ${held?.place} counts`] : []),
    ...(evidence.hasAllEvents && subject.events.length === 0 && !findings.every(isCalm)
      ? ["the cluster has no events of the pod: an API server keeps them for an hour"]
      : []),
    ...(held?.snapshot != null
      ? ["the pod is from a NodeSnapshot, which keeps only what decisions read: no messages, no times"]
      : []),
    ...(address === null ? [] : [address]),
  ].map(cut);
}
function versionOf(pod: ObservedPodAt): string {
  const read = observed(pod);
  return (read.ok ? read.value.metadata.resourceVersion : undefined) ?? "";
}

/**
 * A note if the node's addresses do not include the pod's hostIP: the address changed since, or the node is one of the same name
 * in another cluster.
 */
function otherAddress({ nodes }: Evidence, { node, pod }: Subject): string | null {
  const there = nodes.get(node ?? "");
  const read = there === undefined ? undefined : observedNode(there);
  const addresses = read?.ok === true ? (read.value.status?.addresses ?? []) : [];
  const internal = addresses.flatMap(({ type, address }) =>
    type === "InternalIP" && address !== undefined ? [address] : [],
  );
  const { hostIP = "" } = pod?.status ?? {};
  if (hostIP === "" || internal.length === 0 || internal.includes(hostIP)) return null;
  return `the pod ran on ${hostIP}, and node ${node} has the address ${internal.join(", ")}: is it the node of another cluster?`;
}

const MAX_OTHERS = 5;

/** Documents of other nodes, which the explanation does not use. */
export function othersOf({ evidence, subject: { node } }: WhyContext): readonly Unused[] {
  if (node === null) return [];
  const why = `the pod is on ${node}`;
  const stats = [...evidence.parts].filter(
    ([name, parts]) => name !== "" && name !== node && parts["stats"] !== undefined,
  );
  const nodes = evidence.nodes.has(node) ? [] : [...evidence.nodes];
  return [
    ...stats.slice(0, MAX_OTHERS).map(([origin]) => ({ origin, what: "stats of another node", why })),
    ...nodes.slice(0, MAX_OTHERS).map(([name, { place }]) => ({ origin: place, what: `node ${name}`, why })),
  ];
}

/** When the live cluster was read; otherwise the latest time in the documents. Epoch ms; 0 if no document has a time. */
export function asOfMs({ events, pods, nodes, parts, snapshots, readAtMs }: Evidence): number {
  let last = readAtMs ?? 0;
  const meet = (...times: readonly (string | undefined)[]): void => {
    for (const time of times) last = Math.max(last, timeOf(time));
  };
  for (const { last: at } of events) meet(at);
  for (const { atMs } of snapshots) last = Math.max(last, atMs ?? 0);
  for (const { stats } of parts.values()) {
    const summary = typeof stats === "object" && stats !== null ? observedSummary(stats) : null;
    meet(summary?.node?.memory?.time, summary?.node?.cpu?.time);
  }
  for (const node of nodes.values()) {
    const read = observedNode(node);
    if (read.ok)
      meet(...(read.value.status?.conditions ?? []).flatMap((c) => [c.lastHeartbeatTime, c.lastTransitionTime]));
  }
  for (const held of pods) {
    const read = observed(held);
    if (!read.ok) continue;
    const { status } = read.value;
    meet(status?.startTime, ...(status?.conditions ?? []).map((c) => c.lastTransitionTime));
    for (const { state } of status?.containerStatuses ?? [])
      meet(state?.running?.startedAt, state?.terminated?.finishedAt);
  }
  return last;
}
