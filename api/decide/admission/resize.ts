import type { QuantityList } from "../../model/allocatable.ts";
import { type Amount, compare, isZero, milliValue, value, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import { parseQuantity } from "../../model/quantity.ts";
import { type EffectiveConfiguration, type Gate, gateOn } from "../../profiles/effective.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { computeQosClass } from "../resources/qos.ts";

/** The resources that may change while a pod runs. */
export const RESIZABLE = ["cpu", "memory"] as const;

/** The facts about a node that matter to a resize. */
export interface ResizeNode {
  /** `static` keeps CPUs for containers, `Static` memory. */
  readonly cpuPolicy: string;
  readonly memoryPolicy: string;
  /** Containers may use some swap here. */
  readonly hasSwap: boolean;
  readonly allocatable: QuantityList;
}

/** Reads the parts of a configuration that matter to a resize. */
export function resizeNode(
  config: EffectiveConfiguration,
  allocatable: QuantityList,
  cgroupVersion: 1 | 2,
): ResizeNode {
  const unless = (gate: Gate, policy: string): string => (gateOn(config, gate) ? "" : policy);
  return {
    cpuPolicy: unless("InPlacePodVerticalScalingExclusiveCPUs", config.cpuManagerPolicy),
    memoryPolicy: unless("InPlacePodVerticalScalingExclusiveMemory", config.memoryManagerPolicy),
    hasSwap: cgroupVersion === 2 && config.memorySwap.swapBehavior === "LimitedSwap",
    allocatable,
  };
}

type Resource = (typeof RESIZABLE)[number];
type List = ResourceList | null | undefined;

/**
 * Why a pod can never have other resources here, in Kubernetes' words; null: it may, if there is room. The kubelet itself
 * refuses for its managers and for swap (1.36: podResizesAdmitHandler); what the API server refuses before it comes there
 * (ValidatePodResize, the admission plugin PodResize) a list of pods may hold all the same. Both pods with their defaults.
 */
export function whyInfeasible(
  wanted: Pod,
  allocated: Pod,
  node: ResizeNode,
  more: { readonly isCritical: boolean; readonly restartsForMemory: (container: string) => boolean },
): string | null {
  const qos = computeQosClass(wanted);
  if (qos !== computeQosClass(allocated)) return "Pod QOS Class may not change as a result of resizing";
  const pairs = pairsOf(wanted, allocated);
  const refused = pairs.map(([now, then]) => whyNotOf(now, then)).find((why) => why !== null);
  if (refused !== undefined) return refused;
  if (node.hasSwap && qos === "Burstable" && !more.isCritical) {
    const swaps = pairs.some(
      ([now, then, name]) =>
        differs(now?.requests, then?.requests, "memory") &&
        !more.restartsForMemory(name) &&
        (maySwap(now) || maySwap(then)),
    );
    if (swaps) return "In-place resize of containers with swap is not supported.";
  }
  const moves = (name: Resource): boolean => pairs.some(([now, then]) => differs(now?.requests, then?.requests, name));
  if (qos === "Guaranteed" && node.cpuPolicy === "static" && moves("cpu"))
    return 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
  if (qos === "Guaranteed" && node.memoryPolicy === "Static" && moves("memory"))
    return 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"';
  return tooLarge(wanted, node.allocatable);
}

type Pair = readonly [Container["resources"], Container["resources"], string];
/** Allocated and wanted resources of each container, and of the pod itself. */
function pairsOf(wanted: Pod, allocated: Pod): readonly Pair[] {
  const before = new Map(containersOf(allocated).map((c) => [c.name, c.resources] as const));
  const pairs = containersOf(wanted).filter(({ name }) => before.has(name));
  return [
    [allocated.spec.resources, wanted.spec.resources, ""],
    ...pairs.map(({ name, resources }): Pair => [before.get(name), resources, name]),
  ];
}

function whyNotOf(now: Container["resources"], then: Container["resources"]): string | null {
  if (isTaken(now?.requests, then?.requests)) return "resource requests cannot be removed";
  if (isTaken(now?.limits, then?.limits)) return "resource limits cannot be removed";
  const isOther = (a: List, b: List): boolean =>
    Object.keys({ ...a, ...b }).some((name) => name !== "cpu" && name !== "memory" && differs(a, b, name));
  const isMore = isOther(now?.requests, then?.requests) || isOther(now?.limits, then?.limits);
  return isMore ? "only cpu and memory resources are mutable" : null;
}
const isTaken = (now: List, then: List): boolean => Object.keys(now ?? {}).some((name) => then?.[name] === undefined);

const amountIn = (list: List, name: string): Amount | undefined => list?.[name]?.amount;
function differs(one: List, other: List, name: string): boolean {
  const [a, b] = [amountIn(one, name), amountIn(other, name)];
  return a === undefined || b === undefined ? a !== b : compare(a, b) !== 0;
}

/** kubelet 1.36: GetContainerSwapBehavior. */
function maySwap(resources: Container["resources"]): boolean {
  const request = amountIn(resources?.requests, "memory") ?? ZERO;
  const limit = amountIn(resources?.limits, "memory") ?? ZERO;
  return (!isZero(request) || !isZero(limit)) && compare(request, limit) !== 0;
}

/** kubernetes 1.36: validateRequestsWithinAllocatable. */
function tooLarge(wanted: Pod, allocatable: QuantityList): string | null {
  const requests = podRequests(wanted);
  const figures = RESIZABLE.flatMap((name) => {
    const [request, own] = [requests.get(name) ?? ZERO, parseQuantity(allocatable[name] ?? "0")];
    if (!own.ok || compare(request, own.value.amount) <= 0) return [];
    const as = name === "cpu" ? milliValue : value;
    return [`${name}, requested: ${as(request)}, allocatable: ${as(own.value.amount)}`];
  });
  return figures.length === 0 ? null : `node didn't have enough allocatable resources: ${figures.join("; ")}`;
}
