import type { Amounts } from "../../model/aggregate.ts";
import { isActive, type Pod, podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { configurationOf, gateOn } from "../config.ts";
import type { Reasons } from "../reasons.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { type QosClass, qosClass } from "../resources/qos.ts";
import { allocatedPod } from "./allocated.ts";
import type { Paths } from "./paths.ts";

/** A pod that holds resources on the node, with what every level of the tree asks of it worked out once. */
export interface NodePod {
  /** With its allocated resources. */
  readonly pod: Pod;
  readonly uid: string;
  readonly qos: QosClass;
  /** Of the allocated resources: what the pod's own cgroup gets. */
  readonly requests: Amounts;
  /** Of the resources asked for: what the QoS tiers count while a resize is pending. kubelet 1.36: GetActivePods. */
  readonly asked: Amounts;
  /** Of its cgroup. */
  readonly path: string;
}

/** Pods that are not another node's (a whole cluster's list may be posted). */
export function podsOfNode(snapshot: Snapshot): readonly Pod[] {
  const name = snapshot.node?.metadata.name;
  const elsewhere = (p: Pod): boolean =>
    name !== undefined && (p.spec.nodeName ?? "") !== "" && p.spec.nodeName !== name;
  return (snapshot.pods ?? []).filter((p) => !elsewhere(p));
}
/** Those of them that still hold what they have. */
export const podsHere = (snapshot: Snapshot): readonly Pod[] => podsOfNode(snapshot).filter(isActive);

/** The path of the first pod here without a uid, which names its cgroup; undefined when all have one. */
export function missingUid(snapshot: Snapshot): string | undefined {
  const pod = podsHere(snapshot).find((p) => podUid(p) === undefined);
  return pod === undefined ? undefined : `pods[${snapshot.pods?.indexOf(pod)}].metadata.uid`;
}

/** INVARIANT: every pod here has a uid (`missingUid`). */
export function nodePods(snapshot: Snapshot, paths: Paths, reasons: Reasons): readonly NodePod[] {
  const state = snapshot.assignments?.allocated_pods_state;
  const podLevel = gateOn(configurationOf(snapshot), "PodLevelResources");
  return podsHere(snapshot).map((given) => {
    const posted = podLevel ? given : withoutPodLevel(given);
    const uid = podUid(posted) as string;
    const qos = qosClass(posted);
    const path = paths.pod(qos, uid);
    const pod = allocatedPod(posted, state, path, reasons);
    const asked = podRequests(posted);
    return { pod, uid, qos, requests: pod === posted ? asked : podRequests(pod), asked, path };
  });
}

/** The pod as a kubelet sees it whose gate PodLevelResources is off. */
export function withoutPodLevel(pod: Pod): Pod {
  const { resources, ...spec } = pod.spec;
  return resources === undefined ? pod : { ...pod, spec };
}
