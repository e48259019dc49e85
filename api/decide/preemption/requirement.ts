import type { ResourceAmount, Shortage } from "../../model/preemption.ts";

/** A resource of which something is still to be freed. `index`: its place in the need, and in what candidates free. */
export interface Requirement extends ResourceAmount {
  readonly index: number;
}
/** What gives back resources, in the order of the need. */
interface Freeing {
  readonly frees: readonly number[];
}

/** How much must be freed of each resource. kubelet 1.36: InsufficientResourceError.GetInsufficientAmount. */
export const requirementsOf = (shortages: readonly Shortage[]): readonly Requirement[] =>
  shortages.map(({ resource, requested, used, capacity }, index) => ({
    resource,
    quantity: requested - (capacity - used),
    index,
  }));

/** What stays open when the given pods are gone. kubelet 1.36: admissionRequirementList.subtract. */
export function subtract(open: readonly Requirement[], gone: readonly Freeing[]): readonly Requirement[] {
  const left: Requirement[] = [];
  for (const { resource, quantity, index } of open) {
    let rest = quantity;
    for (const { frees } of gone) {
      rest -= frees[index] as number;
      if (rest <= 0) break;
    }
    if (rest > 0) left.push({ resource, quantity: rest, index });
  }
  return left;
}

/**
 * How far a pod is from freeing all that is open: each resource counts by the square of the share that would stay open.
 * kubelet 1.36: admissionRequirementList.distance.
 */
export function distance(open: readonly Requirement[], { frees }: Freeing): number {
  let sum = 0;
  for (const { quantity, index } of open) {
    const rest = quantity - (frees[index] as number);
    if (rest > 0) sum += (rest / quantity) * (rest / quantity);
  }
  return sum;
}

/** As the kubelet writes a list of requirements, the last comma with it. */
export const requirementsText = (open: readonly Requirement[]): string =>
  `[${open.map(({ resource, quantity }) => `(res: ${resource}, q: ${quantity}), `).join("")}]`;

export const amountsOf = (open: readonly Requirement[]): readonly ResourceAmount[] =>
  open.map(({ resource, quantity }) => ({ resource, quantity }));
