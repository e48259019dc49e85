import { type Amount, add, isNegative, isZero, sub, subToZero, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import { isHugePage } from "../hugepages.ts";

type Known = ReadonlyMap<string, Quantity>;

/** Takes `amount` off a quantity, never below zero; keeps its notation. */
const take = (q: Quantity, amount: Amount): Quantity => quantityOf(subToZero(q.amount, amount), q.format);

/** Huge pages are memory that ordinary pages cannot use. */
function withoutHugePages(list: Map<string, Quantity>, hugePages: Known): void {
  for (const [name, size] of hugePages) {
    const memory = list.get("memory");
    if (isHugePage(name) && memory !== undefined) list.set("memory", take(memory, size.amount));
  }
}

/** Everything held back of each resource that the node has. kubelet 1.36: GetNodeAllocatableReservation. */
export function totalReservation(
  capacity: Known,
  kube: ResourceList,
  system: ResourceList,
  eviction: Known,
): Map<string, Amount> {
  const total = new Map<string, Amount>();
  for (const name of capacity.keys()) {
    const amount = [system[name], kube[name], eviction.get(name)].reduce<Amount>(
      (sum, q) => add(sum, q?.amount ?? ZERO),
      ZERO,
    );
    if (!isZero(amount)) total.set(name, amount);
  }
  return total;
}

/** status.allocatable without device plugins: capacity less the reservation, less huge pages. kubelet 1.36: nodestatus.MachineInfo. */
export function allocatableOf(capacity: Known, reservation: ReadonlyMap<string, Amount>): Map<string, Quantity> {
  const allocatable = new Map<string, Quantity>();
  for (const [name, q] of capacity) allocatable.set(name, take(q, reservation.get(name) ?? ZERO));
  withoutHugePages(allocatable, capacity);
  return allocatable;
}

/** What kubepods may use when `pods` is enforced: hard eviction and huge pages stay inside. kubelet 1.36: getNodeAllocatableAbsolute. */
export function nodeAllocatableAbsolute(
  capacity: Known,
  kube: ResourceList,
  system: ResourceList,
): Map<string, Quantity> {
  const result = new Map<string, Quantity>();
  for (const [name, q] of capacity) {
    const held = add(system[name]?.amount ?? ZERO, kube[name]?.amount ?? ZERO);
    result.set(name, isZero(held) ? q : take(q, held));
  }
  return result;
}

/** Reservations larger than the machine. kubelet 1.36: validateNodeAllocatable. */
export function overReserved(capacity: Known, reservation: ReadonlyMap<string, Amount>): readonly string[] {
  const errors: string[] = [];
  for (const [name, amount] of reservation) {
    const q = capacity.get(name);
    if (q === undefined || !isNegative(sub(q.amount, amount))) continue;
    const reserved = quantityOf(amount, q.format).text;
    errors.push(
      `Resource "${name}" has a reservation of ${reserved} but capacity of ${q.text}. Expected capacity >= reservation.`,
    );
  }
  return errors.length === 0 ? [] : [`invalid Node Allocatable configuration. ${errors.join(" ")}`];
}
