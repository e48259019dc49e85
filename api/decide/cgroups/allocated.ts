import { compare } from "../../model/amount.ts";
import type { AllocatedPodsState } from "../../model/assignments.ts";
import { own } from "../../model/own.ts";
import { type Container, type ContainerStatus, type Pod, podUid, type ResourceRequirements } from "../../model/pod.ts";
import type { Reasons } from "../reasons.ts";

const RESIZABLE = ["cpu", "memory"] as const;
type Maybe<T> = T | null | undefined;

/**
 * The pod with the resources that the kubelet has allocated, which is what its cgroups get while a resize is pending.
 * They come from allocated_pods_state where it is posted, else from the containers' status.
 * kubelet 1.36: allocation manager UpdatePodFromAllocation.
 */
export function allocatedPod(pod: Pod, state: AllocatedPodsState | undefined, at: string, reasons: Reasons): Pod {
  const entry = own(state?.entries, podUid(pod) ?? "");
  const statuses = statusesByName(pod);
  const substitute = (c: Container): Container => {
    const fromState = own(entry?.ContainerResources, c.name);
    // a posted state that does not name the pod says that nothing else than the spec was allocated
    const resources = state === undefined ? fromStatus(c, statuses.get(c.name)) : fromState;
    if (resources === undefined || sameResources(c.resources, resources)) return c;
    reasons.add("resize_pending", at, "resources", { container: c.name });
    return { ...c, resources };
  };
  const containers = pod.spec.containers.map(substitute);
  const initContainers = pod.spec.initContainers?.map(substitute);
  const podLevel = entry?.PodLevelResources ?? pod.spec.resources;
  const changed =
    containers.some((c, i) => c !== pod.spec.containers[i]) ||
    initContainers?.some((c, i) => c !== pod.spec.initContainers?.[i]);
  if (changed !== true && sameResources(podLevel, pod.spec.resources)) return pod;
  return { ...pod, spec: { ...pod.spec, containers, initContainers, resources: podLevel } };
}

export function statusesByName(pod: Pod): ReadonlyMap<string, ContainerStatus> {
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return new Map(all.map((s) => [s.name, s]));
}

/** The status tells allocated requests, and limits only as they are in force. */
function fromStatus(c: Container, status: ContainerStatus | undefined): ResourceRequirements | undefined {
  const allocated = status?.allocatedResources;
  if (allocated === null || allocated === undefined) return undefined;
  const requests = c.resources?.requests;
  if (RESIZABLE.every((name) => sameQuantity(allocated[name], requests?.[name]))) return undefined;
  return {
    requests: { ...requests, ...allocated },
    limits: { ...c.resources?.limits, ...status?.resources?.limits },
  };
}

function sameResources(a: Maybe<ResourceRequirements>, b: Maybe<ResourceRequirements>): boolean {
  return RESIZABLE.every(
    (name) =>
      sameQuantity(a?.requests?.[name], b?.requests?.[name]) && sameQuantity(a?.limits?.[name], b?.limits?.[name]),
  );
}
type HasAmount = { readonly amount: number | bigint };
const sameQuantity = (a: HasAmount | undefined, b: HasAmount | undefined): boolean =>
  a === undefined || b === undefined ? a === b : compare(a.amount, b.amount) === 0;
