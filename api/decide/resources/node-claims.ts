import { type Amounts, addList } from "../../model/aggregate.ts";
import { type Amount, add, isZero, milliValue, value, ZERO } from "../../model/amount.ts";
import type { Pod } from "../../model/pod.ts";
import { quotient } from "../../model/units.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import type { ReasonRecorder } from "../reasons.ts";

/** How a kubelet counts the node's own CPUs, memory and huge pages that claims give a pod; null: not at all. */
export type NodeClaims = Behaviour["nodeClaims"] | null;

/** The behaviour with the gate DRANodeAllocatableResources. */
export const nodeClaimsOf = (config: EffectiveConfiguration): NodeClaims =>
  gateOn(config, "DRANodeAllocatableResources") ? config.profile.behaviour.nodeClaims : null;
/** The behaviour for cgroups, which the first version with the gate does not change. */
export const cgroupClaimsOf = (config: EffectiveConfiguration): NodeClaims => {
  const claims = nodeClaimsOf(config);
  return claims === "parts" ? claims : null;
};

type Status = NonNullable<NonNullable<Pod["status"]>["nodeAllocatableResourceClaimStatuses"]>[number];
const statusesOf = (pod: Pod, claims: NodeClaims): readonly Status[] =>
  claims === null ? [] : (pod.status?.nodeAllocatableResourceClaimStatuses ?? []);
const count = (sum: Amounts, name: string, ...amounts: readonly (Amount | undefined)[]): void => {
  sum.set(
    name,
    amounts.reduce<Amount>((all, one = ZERO) => add(all, one), sum.get(name) ?? ZERO),
  );
};

/** Adds what a pod has by its claims. kubernetes 1.37: addDRANodeAllocatableClaimResources. */
export function addNodeClaims(sum: Amounts, pod: Pod, claims: NodeClaims): void {
  for (const { resources, containers = [], mapping = [], overhead = [] } of statusesOf(pod, claims)) {
    if (claims === "sums") addList(sum, resources);
    else {
      for (const { name, quantity } of mapping) if (quantity !== undefined) count(sum, name, quantity.amount);
      for (const { name, perPod, perContainer } of overhead)
        count(sum, name, perPod?.amount, ...containers.map(() => perContainer?.amount));
    }
  }
}

/** Whether claims give a pod any node resources that count. */
export const hasNodeClaims = (pod: Pod, claims: NodeClaims): boolean => statusesOf(pod, claims).length > 0;

/** Reports which part of the value of a field claims give: none, where it is absent or zero. `resource`: of the part. */
export function reportClaimed(
  reasons: ReasonRecorder<"part_of_claims">,
  at: string,
  field: string,
  resource: string,
  part: Amount = ZERO,
): void {
  if (isZero(part)) return;
  const amount = resource === "cpu" ? { milliCpu: milliValue(part) } : { bytes: value(part) };
  reasons.add("part_of_claims", at, field, { resource, ...amount });
}

export const NOTHING_CLAIMED: ReadonlyMap<string, Amount> = new Map();
/**
 * What a container may use of a resource: everything that its claims map, since it is shared. kubernetes 1.37:
 * GetContainerDRAAllocations.
 */
export function nodeClaimsOfContainer(pod: Pod, container: string, claims: NodeClaims): ReadonlyMap<string, Amount> {
  if (claims === null) return NOTHING_CLAIMED;
  const sum: Amounts = new Map();
  for (const { containers = [], mapping = [], overhead = [] } of statusesOf(pod, claims)) {
    if (!containers.includes(container)) continue;
    for (const { name, quantity } of mapping) if (quantity !== undefined) count(sum, name, quantity.amount);
    for (const { name, perPod, perContainer } of overhead) count(sum, name, perPod?.amount, perContainer?.amount);
  }
  return sum;
}

/** A container's part of the memory, in bytes: what is shared is divided. kubelet 1.37: getEffectiveContainerMemoryRequest. */
export function claimedMemoryShare(pod: Pod, container: string, claims: NodeClaims): number {
  let bytes = 0;
  const share = (amount: Amount | undefined, among = 1): void => {
    if (amount !== undefined) bytes += quotient(value(amount), among);
  };
  for (const { containers = [], mapping = [], overhead = [] } of statusesOf(pod, claims)) {
    if (!containers.includes(container)) continue;
    for (const { name, quantity } of mapping) if (name === "memory") share(quantity?.amount, containers.length);
    for (const { name, perPod, perContainer } of overhead) {
      if (name !== "memory") continue;
      share(perPod?.amount, containers.length);
      share(perContainer?.amount);
    }
  }
  return bytes;
}
