import { type Amount, compare, exactMilliValue, exactValue, isZero, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, containersOf, isSidecar, type Pod } from "../../model/pod.ts";
import type { ResizeCheck } from "../../model/resize.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveConfiguration, type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import { nodeLevelOf } from "../allocatable/node-allocatable.ts";
import { requestsOf } from "../preemption/candidate.ts";
import { Reasons } from "../reasons.ts";
import { isCriticalPod, isStaticPod, qosClass } from "../resources/qos.ts";
import { changedVolumes } from "./volumes.ts";

/** The resources that may change while a pod runs. */
export const RESIZABLE = ["cpu", "memory"] as const;
type Resource = (typeof RESIZABLE)[number];
type Resources = Pod["spec"]["resources"];
export type List = ResourceList | null | undefined;

/** A node's resources for pods, as the checks use them. */
export type NodeResources = ReadonlyMap<string, { readonly amount: Amount }>;
/** The facts about a node that matter to a resize. */
export interface ResizeNode {
  readonly config: EffectiveConfiguration;
  readonly cgroupVersion: 1 | 2;
  /** Capacity less what is reserved, hard eviction aside. */
  readonly absolute: NodeResources;
  /** The allocatable in the node's status. */
  readonly allocatable: NodeResources;
  /** The node as the API server has it; if it lists no features, its gates count. Undefined: no API server has it. */
  readonly node: Snapshot["node"];
}

/** The node for resize checks; if the machine's size or a reserve is not known, the node's status is used instead. */
export function resizeNodeOf(snapshot: EffectiveSnapshot): ResizeNode {
  const level = nodeLevelOf(snapshot, new Reasons<string>("off"), []);
  const allocatable = new Map(Object.entries(snapshot.node?.status?.allocatable ?? {}));
  const absolute = level.ok ? level.value.absolute : allocatable;
  const cgroupVersion = snapshot.cgroup?.version ?? 2;
  const { kubeletConfiguration: config, node } = snapshot;
  return { config, cgroupVersion, absolute, allocatable, node };
}

/** Why a resize is infeasible, in Kubernetes' words. */
export interface Infeasible {
  readonly check: ResizeCheck;
  readonly message: string;
}
export const because = (check: ResizeCheck, message: string): Infeasible => ({ check, message });

/**
 * Why the kubelet itself considers a resize infeasible; null: it does not. The two pods differ only in their
 * resources. kubelet 1.36: podResizesAdmitHandler; 1.35: handlePodResourcesResize, canResizePod.
 */
export function whyInfeasible(desired: Pod, allocated: Pod, node: ResizeNode): Infeasible | null {
  const { config, cgroupVersion } = node;
  const { resizesStaticPods, resizesBeyondNode } = config.profile.behaviour;
  if (!gateOn(config, "InPlacePodVerticalScaling")) return because("gate", "InPlacePodVerticalScaling is disabled");
  if (!resizesStaticPods && isStaticPod(desired))
    return because("static_pod", "In-place resize of static-pods is not supported");
  if (mayMoveSwap(desired, allocated, node))
    return because("swap", "In-place resize of containers with swap is not supported.");
  if (changedVolumes(desired, allocated).length > 0) {
    if (!gateOn(config, "InPlacePodVerticalScalingMemoryBackedVolumes"))
      return because("volumes", "Memory-backed emptyDir volume resize is disabled");
    if (cgroupVersion === 1)
      return because("volumes", "Memory-backed emptyDir volume resize is not supported on cgroups v1");
  }
  const policy = qosClass(desired) === "Guaranteed" ? refusingPolicy(desired, allocated, config) : null;
  if (policy !== null) return policy;
  return resizesBeyondNode ? null : beyondNode(desired, node.absolute);
}

function mayMoveSwap(desired: Pod, allocated: Pod, { config, cgroupVersion }: ResizeNode): boolean {
  if (cgroupVersion !== 2 || config.memorySwap.swapBehavior !== "LimitedSwap") return false;
  if (isCriticalPod(desired)) return false;
  return pairsOf(desired, allocated).some(
    ([now, then]) =>
      differs(now.resources?.requests, then.resources?.requests, "memory", ZERO) &&
      !restartsFor(now, "memory") &&
      ((qosClass(desired) === "Burstable" && maySwap(then)) || (qosClass(allocated) === "Burstable" && maySwap(now))),
  );
}
/** kubelet 1.36: GetContainerSwapBehavior. */
function maySwap({ resources }: Container): boolean {
  const request = amountIn(resources?.requests, "memory") ?? ZERO;
  const limit = amountIn(resources?.limits, "memory") ?? ZERO;
  return (!isZero(request) || !isZero(limit)) && compare(request, limit) !== 0;
}
/** The container has to start again for another amount of the resource. */
export const restartsFor = ({ resizePolicy }: Container, resource: string): boolean =>
  resizePolicy?.find(({ resourceName }) => resourceName === resource)?.restartPolicy === "RestartContainer";

/** kubelet 1.36: guaranteedPodResourceResizeRequired. */
function refusingPolicy(desired: Pod, allocated: Pod, config: EffectiveConfiguration): Infeasible | null {
  const moves = (name: Resource): boolean =>
    pairsOf(desired, allocated).some(
      ([now, then]) =>
        isResizable(then, desired, config) && differs(now.resources?.requests, then.resources?.requests, name, ZERO),
    );
  const refused = (
    [
      ["cpu", "CPU", config.cpuManagerPolicy, "static", "InPlacePodVerticalScalingExclusiveCPUs"],
      ["memory", "Memory", config.memoryManagerPolicy, "Static", "InPlacePodVerticalScalingExclusiveMemory"],
    ] as const
  ).find(([name, , policy, refusing, gate]) => policy === refusing && !gateOn(config, gate) && moves(name));
  if (refused === undefined) return null;
  const [name, manager, policy] = refused;
  const message = `Resize is infeasible for Guaranteed Pods alongside ${manager} Manager policy "${policy}"`;
  return because(`${name}_manager`, message);
}
/** Containers whose resources the kubelet takes down as allocated. kubelet 1.36: IsResizableContainer. */
export const isResizable = (c: Container, { spec }: Pod, config: EffectiveConfiguration): boolean =>
  isSidecar(c) || spec.containers.includes(c) || gateOn(config, "InPlacePodVerticalScalingInitContainers");

/** kubelet 1.35: canResizePod. */
function beyondNode(desired: Pod, absolute: NodeResources): Infeasible | null {
  const requests = requestsOf(desired);
  const figures = (name: Resource): string | null => {
    const [request, has] = [requests(name), Number(unitsIn(name, absolute.get(name)?.amount))];
    return request > has ? `${name}, requested: ${request}, capacity: ${has}` : null;
  };
  const shortage = figures("memory") ?? figures("cpu");
  return shortage === null ? null : because("capacity", `Node didn't have enough capacity: ${shortage}`);
}
export const unitsIn = (name: Resource, amount: Amount | undefined): bigint =>
  name === "cpu" ? exactMilliValue(amount ?? ZERO) : exactValue(amount ?? ZERO);

/** Each container as allocated and as desired. */
export function pairsOf(desired: Pod, allocated: Pod): readonly (readonly [now: Container, then: Container])[] {
  const before = new Map(containersOf(allocated).map((c) => [c.name, c] as const));
  return containersOf(desired).flatMap((then) => {
    const now = before.get(then.name);
    return now === undefined ? [] : [[now, then] as const];
  });
}

export function sameAmounts(a: Container["resources"], b: Container["resources"]): boolean {
  return RESIZABLE.every((name) => !differs(a?.requests, b?.requests, name) && !differs(a?.limits, b?.limits, name));
}
/**
 * Whether amounts other than CPU and memory change. `addsToNone`: a list that is added where there was none does not
 * count.
 */
export function isOther(now: Resources | null, then: Resources | null, addsToNone = false): boolean {
  const change = (a: List, b: List): boolean =>
    !(addsToNone && a === undefined) &&
    Object.keys({ ...a, ...b }).some((name) => name !== "cpu" && name !== "memory" && differs(a, b, name));
  return change(now?.requests, then?.requests) || change(now?.limits, then?.limits);
}
/** Whether any amount changes. */
export const differIn = (now: Resources, then: Resources): boolean => isOther(now, then) || !sameAmounts(now, then);
const amountIn = (list: List, name: string): Amount | undefined => list?.[name]?.amount;
/** `missing`: the amount that an absent one equals; if not given, an absent amount differs from every present one. */
export function differs(one: List, other: List, name: string, missing?: Amount): boolean {
  const [a = missing, b = missing] = [amountIn(one, name), amountIn(other, name)];
  return a === undefined || b === undefined ? a !== b : compare(a, b) !== 0;
}
