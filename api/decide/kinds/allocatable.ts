import { err, ok, type Result } from "../../base/result.ts";
import type { AllocatableDecision, QuantityList } from "../../model/allocatable.ts";
import { fromUnits, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { canonicalText, type Quantity, quantityOf } from "../../model/quantity.ts";
import type { EffectiveArguments, EffectiveSnapshot } from "../../profiles/effective.ts";
import { isExtended, reportsDevices } from "../allocatable/capacity.ts";
import {
  allocatableOf,
  type NodeLevel,
  nodeLevelOf,
  overReserved,
  totalReservation,
} from "../allocatable/node-allocatable.ts";
import { evictionReservation, nodeCgroupValues, RESERVABLE, reservedEnforcements } from "../allocatable/reservation.ts";
import { startFaults } from "../allocatable/start-errors.ts";
import { deviceCapacity } from "../devices/inventory.ts";
import { isHugePage } from "../hugepages.ts";
import { checkpointOf, pluginsOf } from "../managers/node.ts";
import { Reasons } from "../reasons.ts";

/**
 * Decides the capacity, the reservations and their reasons, the allocatable, and the limits of the node-level cgroups.
 */
export function decideAllocatable(asked: EffectiveArguments<undefined>): Result<DecidedOf<"allocatable">, Refusal> {
  const { snapshot } = asked;
  const reasons = new Reasons<ReasonCode<"allocatable">>(asked.explain);
  const needs: string[] = [];
  const level = nodeLevelOf(snapshot, reasons, needs);
  if (!level.ok) return level;
  const { config, capacity, reserved, kubepods, enforced } = level.value;
  const eviction = evictionReservation(config, capacity);
  if (!eviction.ok) return err({ code: "invalid_configuration", message: eviction.error, needs: [] });
  if (!capacity.has("ephemeral-storage") && config.localStorageCapacityIsolation)
    needs.push("node.status.capacity.ephemeral-storage");
  const reservation = totalReservation(capacity, reserved.kube, reserved.system, eviction.value);
  const allocatable = allocatableOf(capacity, reservation);
  const full = new Map(capacity);
  addDevices(snapshot, { capacity: full, allocatable }, reasons, needs);
  explain(reasons, level.value, eviction.value, allocatable);
  const faults = startFaults(config, snapshot).map(({ message }) => message);
  const errors = [...faults, ...overReserved(capacity, reservation)];
  // sorted once: no list has other names
  const names = [...full.keys(), "pid"].sort();
  const hugePages = names.filter((name) => isHugePage(name) && capacity.get(name)?.amount !== 0);
  const decision: AllocatableDecision = {
    capacity: texts(names, (name) => full.get(name)),
    allocatable: texts(names, (name) => allocatable.get(name)),
    reserved: {
      kubeReserved: texts(RESERVES, (name) => reserved.kube[name]),
      systemReserved: texts(RESERVES, (name) => reserved.system[name]),
      evictionHard: texts(RESERVES, (name) => eviction.value.get(name)),
      hugepages: texts(hugePages, (name) => capacity.get(name)),
    },
    kubepods: {
      enforced,
      limits: texts(names, (name) => kubepods.get(name)),
      values: withoutPages(nodeCgroupValues(kubepods, false, "kubepods", reasons)),
    },
    enforcement: reservedEnforcements(config, reserved, reasons),
    errors,
  };
  return ok({
    decision,
    verdict: errors.length === 0 ? "decided" : "kubelet-refuses",
    reasons: reasons.list,
    needs,
    next: null,
  });
}

/** The cgroup values without huge page limits, which the QoS tiers' refresh removes from kubepods as well. */
const withoutPages = ({ hugePageLimit: _lifted, ...values }: CgroupValues): CgroupValues => values;

const RESERVES = RESERVABLE.toSorted();
/** The texts of the quantities that a list has. */
function texts(names: readonly string[], quantity: (name: string) => Quantity | undefined): QuantityList {
  const written: Record<string, string> = {};
  for (const name of names) {
    const q = quantity(name);
    if (q !== undefined) written[name] = canonicalText(q.amount, q.format);
  }
  return written;
}

function explain(
  reasons: Reasons<ReasonCode<"allocatable">>,
  level: NodeLevel,
  eviction: ReadonlyMap<string, Quantity>,
  allocatable: ReadonlyMap<string, Quantity>,
): void {
  if (reasons.explain === "off") return;
  for (const [name, q] of level.capacity) {
    reasons.add("capacity_less_reserves", name, "allocatable", {
      capacity: q.text,
      kubeReserved: level.reserved.kube[name]?.text ?? "0",
      systemReserved: level.reserved.system[name]?.text ?? "0",
      evictionHard: eviction.get(name)?.text ?? "0",
      allocatable: allocatable.get(name)?.text,
    });
  }
}

interface Status {
  readonly capacity: Map<string, Quantity>;
  readonly allocatable: Map<string, Quantity>;
}

/**
 * Adds the plugins' devices; if none are posted, the node's own allocatable of them is used. kubelet 1.36:
 * nodestatus.MachineInfo.
 */
function addDevices(
  snapshot: EffectiveSnapshot,
  status: Status,
  reasons: Reasons<ReasonCode<"allocatable">>,
  needs: string[],
): void {
  if (!reportsDevices(snapshot)) {
    addObserved(snapshot, status, reasons);
    return;
  }
  const { capacity, allocatable, removed } = deviceCapacity(pluginsOf(snapshot, checkpointOf(snapshot).value, needs));
  for (const [name, count] of capacity) {
    const healthy = allocatable.get(name) ?? 0;
    put(status, name, count, healthy);
    if (healthy < count) reasons.add("unhealthy_devices", name, "allocatable");
  }
  const listed = Object.keys(snapshot.node?.status?.capacity ?? {});
  for (const name of [...removed, ...listed.filter((n) => isExtended(n) && !capacity.has(n) && !removed.includes(n))]) {
    put(status, name, 0, 0);
    reasons.add("device_plugin_removed", name, "allocatable");
  }
}

/** Sets a resource; one whose plugin is gone stays in the status with 0. */
function put({ capacity, allocatable }: Status, name: string, count: number, healthy: number): void {
  capacity.set(name, quantityOf(count === 0 ? ZERO : fromUnits(count), "DecimalSI"));
  allocatable.set(name, quantityOf(healthy === 0 ? ZERO : fromUnits(healthy), "DecimalSI"));
}

function addObserved(
  snapshot: EffectiveSnapshot,
  { capacity, allocatable }: Status,
  reasons: Reasons<ReasonCode<"allocatable">>,
): void {
  const observed = snapshot.node?.status?.allocatable;
  for (const name of capacity.keys()) {
    const seen = observed?.[name];
    if (!isExtended(name) || seen === undefined) continue;
    allocatable.set(name, seen);
    reasons.add("devices_as_observed", name, "allocatable", { quantity: seen.text });
  }
}
