import { err, ok, type Result } from "../../base/result.ts";
import { type Amount, add, fromUnits, isNegative, isZero, sub, subToZero, ZERO } from "../../model/amount.ts";
import type { NodeLevelReason } from "../../model/cgroups.ts";
import type { Refusal } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import type { EffectiveConfiguration, EffectiveSnapshot } from "../../profiles/effective.ts";
import { isHugePage } from "../hugepages.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { nodeCapacity } from "./capacity.ts";
import { type Reserved, reservedOf } from "./reservation.ts";

type Quantities = ReadonlyMap<string, Quantity>;

/** Subtracts `amount` from a quantity, never below zero, and keeps the quantity's notation. */
const take = (q: Quantity, amount: Amount): Quantity => quantityOf(subToZero(q.amount, amount), q.format);

/** Subtracts huge pages from memory, since ordinary pages cannot use them. */
function withoutHugePages(list: Map<string, Quantity>, hugePages: Quantities): void {
  for (const [name, size] of hugePages) {
    const memory = list.get("memory");
    if (isHugePage(name) && memory !== undefined) list.set("memory", take(memory, size.amount));
  }
}

/** The total reservation of each resource that the node has. kubelet 1.36: GetNodeAllocatableReservation. */
export function totalReservation(
  capacity: Quantities,
  kube: ResourceList,
  system: ResourceList,
  eviction: Quantities,
): Map<string, Amount> {
  const total = new Map<string, Amount>();
  for (const name of capacity.keys()) {
    const asConfigured = add(system[name]?.amount ?? ZERO, kube[name]?.amount ?? ZERO);
    const amount = add(asConfigured, eviction.get(name)?.amount ?? ZERO);
    if (!isZero(amount)) total.set(name, amount);
  }
  return total;
}

/** status.allocatable without device plugins: capacity less the reservation, less huge pages. kubelet 1.36: nodestatus.MachineInfo. */
export function allocatableOf(capacity: Quantities, reservation: ReadonlyMap<string, Amount>): Map<string, Quantity> {
  const allocatable = new Map<string, Quantity>();
  for (const [name, q] of capacity) allocatable.set(name, take(q, reservation.get(name) ?? ZERO));
  withoutHugePages(allocatable, capacity);
  return allocatable;
}

/**
 * Computes what kubepods may use when `pods` is enforced: hard eviction and huge pages stay inside. kubelet 1.36:
 * getNodeAllocatableAbsolute.
 */
function nodeAllocatableAbsolute(
  capacity: Quantities,
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
export function overReserved(capacity: Quantities, reservation: ReadonlyMap<string, Amount>): readonly string[] {
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

/** The node-level values that every answer about the node starts from. */
export interface NodeLevel {
  readonly config: EffectiveConfiguration;
  readonly capacity: ReadonlyMap<string, Quantity>;
  readonly reserved: Reserved;
  /** Capacity less the reserves, without hard eviction. */
  readonly absolute: ReadonlyMap<string, Quantity>;
  /** True: `pods` is enforced. */
  readonly enforced: boolean;
  /**
   * The limits of the kubepods cgroup: `absolute` if enforced, else the capacity; with `pid` if the node's capacity of
   * process ids is known.
   */
  readonly kubepods: ReadonlyMap<string, Quantity>;
}

const refusal = (code: Refusal["code"], message: string, needs: readonly string[] = []): Result<never, Refusal> =>
  err({ code, message, needs });

/** Computes the node-level values. Errors: the machine's size is not known, or a reserve cannot be read. */
export function nodeLevelOf(
  snapshot: EffectiveSnapshot,
  reasons: ReasonRecorder<NodeLevelReason>,
  needs: string[],
): Result<NodeLevel, Refusal> {
  const config = snapshot.kubeletConfiguration;
  const missing: string[] = [];
  const capacity = nodeCapacity(snapshot, reasons, missing);
  if (missing.length > 0) {
    return refusal(
      "needs_input",
      `the node's capacity is not known: post ${missing.join(" and ")}, or snapshot.machine`,
      missing,
    );
  }
  const reserved = reservedOf(config);
  if (!reserved.ok) return refusal("invalid_configuration", reserved.error);
  const { kube, system } = reserved.value;
  const internal = withProcessIds(capacity, snapshot, needs);
  const enforced = config.enforceNodeAllocatable.includes("pods") && config.cgroupsPerQOS;
  const absolute = nodeAllocatableAbsolute(capacity, kube, system);
  const allowed = internal === capacity ? absolute : nodeAllocatableAbsolute(internal, kube, system);
  const kubepods = enforced ? allowed : internal;
  return ok({ config, capacity, reserved: reserved.value, absolute, enforced, kubepods });
}

/** Adds the limit of process ids, which the kubepods cgroup has although the node's status does not list it. */
function withProcessIds(
  capacity: Map<string, Quantity>,
  snapshot: EffectiveSnapshot,
  needs: string[],
): Map<string, Quantity> {
  const maxPid = snapshot.stats?.node?.rlimit?.maxpid;
  if (maxPid === null || maxPid === undefined) {
    needs.push("stats.node.rlimit.maxpid");
    return capacity;
  }
  return new Map(capacity).set("pid", quantityOf(fromUnits(maxPid), "DecimalSI"));
}
