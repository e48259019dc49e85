import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { add, compare, isZero, value } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { DECIMAL, parseQuantity, type Quantity, quantityOf } from "../../model/quantity.ts";
import { quote } from "../go/strconv.ts";
import { isHugePage } from "../hugepages.ts";

export type ReservedMemory = NonNullable<KubeletConfiguration["reservedMemory"]>;
/** NUMA node id -> kind of memory -> bytes that pods do not get. */
export type SystemReserved = ReadonlyMap<number, ReadonlyMap<string, number>>;

const isMemory = (name: string): boolean => name === "memory" || isHugePage(name);
/** Go walks its maps in any order; this is the order of the names. */
const byName = <V>(list: Readonly<Record<string, V>> | undefined): [string, V][] =>
  Object.entries(list ?? {}).sort(byKey);

/**
 * Returns the kubelet's start errors about the field itself, for any policy. kubelet 1.36:
 * validateReservedMemoryConfiguration.
 */
export function reservedMemoryIssues(reserved: ReservedMemory): readonly string[] {
  const issues: string[] = [];
  const seen = new Set<string>();
  for (const { numaNode, limits } of reserved) {
    for (const [name, { amount }] of byName(limits)) {
      const say = (what: string): unknown => issues.push(`invalid configuration: ${what}`);
      const place = `NUMA node ${numaNode} and resource ${quote(name)}`;
      if (!isMemory(name)) {
        const accepted = "only [memory hugepages-<HugePageSize>] is accepted";
        say(`the limit type ${quote(name)} for NUMA node ${numaNode} is not supported, ${accepted}`);
      }
      if (isZero(amount)) say(`reserved memory may not be zero for ${place}`);
      if (seen.has(place)) say(`the reserved memory has a duplicate value for ${place}`);
      seen.add(place);
    }
  }
  return issues;
}

/**
 * Computes what the node reserves of memory and huge pages: systemReserved, kubeReserved and hard eviction (`eviction`: their
 * sum by resource), for the resources of its capacity. Each amount has the notation that the kubelet prints it in. kubelet
 * 1.36: GetNodeAllocatableReservation.
 */
export function memoryReservation(
  capacity: ReadonlyMap<string, Quantity>,
  { system, kube }: { readonly system: ResourceList; readonly kube: ResourceList },
  eviction: ReadonlyMap<string, Quantity>,
): ReadonlyMap<string, Quantity> {
  const total = new Map<string, Quantity>();
  for (const name of capacity.keys()) {
    if (!isMemory(name)) continue;
    const sum = [system[name], kube[name], eviction.get(name)].reduce<Quantity>(plus, NOTHING);
    if (!isZero(sum.amount)) total.set(name, sum);
  }
  return total;
}
const NOTHING = quantityOf(0, "DecimalSI");
/** Go's Add: zero takes over the notation of what is added. */
function plus(sum: Quantity, more: Quantity | undefined): Quantity {
  if (more === undefined) return sum;
  return quantityOf(add(sum.amount, more.amount), isZero(sum.amount) ? more.format : sum.format);
}

/**
 * The reserves of each NUMA node. Errors, in the kubelet's words: a node that the machine does not have; a kind of
 * memory whose sum over the nodes differs from the node's reservation; an amount that exceeds int64; no reserves at
 * all. kubelet 1.36: getSystemReservedMemory, NewPolicyStatic.
 */
export function systemReservedOf(
  nodeIds: readonly number[],
  reservation: ReadonlyMap<string, Quantity>,
  reserved: ReservedMemory,
): Result<SystemReserved, string> {
  const sums = new Map<string, Quantity>();
  for (const { numaNode, limits } of reserved) {
    if (!nodeIds.includes(numaNode)) {
      return err(
        `the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`,
      );
    }
    for (const [name, quantity] of byName(limits)) sums.set(name, plus(quantity, sums.get(name)));
  }
  const wrong = [...new Set([...sums.keys(), ...reservation.keys()])].sort().find((name) => {
    return compare(sums.get(name)?.amount ?? 0, reservation.get(name)?.amount ?? 0) !== 0;
  });
  if (wrong !== undefined) {
    const [has, wants] = [sums, reservation].map((list) => quantityText(list.get(wrong)));
    return err(
      `the total amount "${has}" of type ${quote(wrong)} is not equal to the value "${wants}" determined by Node Allocatable feature`,
    );
  }
  const perNode = new Map<number, Map<string, number>>(nodeIds.map((id) => [id, new Map()]));
  for (const { numaNode, limits } of reserved) {
    for (const [name, quantity] of byName(limits)) {
      // the word is missing a letter in the kubelet too
      if (!isInt64(quantity)) return err("could not covert a variable of type Quantity to int64");
      perNode.get(numaNode)?.set(name, value(quantity.amount));
    }
  }
  const memory = [...perNode.values()].reduce((sum, list) => sum + (list.get("memory") ?? 0), 0);
  return memory > 0 ? ok(perNode) : err("[memorymanager] you should specify the system reserved memory");
}
const quantityText = (q: Quantity | undefined): string => (q === undefined ? "0" : quantityOf(q.amount, q.format).text);

const BINARY = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const MAX_DIGITS = 18;
/**
 * Checks that Go holds the posted text as an int64 of whole units, which depends on notation: `1536Mi` is held so, and `1.5Gi`
 * is not. kubernetes 1.36: Quantity.AsInt64 after ParseQuantity.
 */
export function isInt64({ text }: Pick<Quantity, "text">): boolean {
  const parts = /^[+-]?0*(\d*)\.?(\d*)([A-Za-z]*)([+-]?\d*)$/.exec(text);
  if (parts === null || !parseQuantity(text).ok) return false;
  const [, whole = "", fraction = "", suffix = "", exponent = ""] = parts;
  const power = BINARY.indexOf(suffix) + 1;
  if (power > 0) return fraction === "" && Math.max(1, whole.length) + 3 * power + 1 <= 15;
  const tens = exponent === "" ? DECIMAL.indexOf(suffix) * 3 - 9 : Number(exponent);
  return whole.length + fraction.length <= MAX_DIGITS && tens - fraction.length >= 0;
}
