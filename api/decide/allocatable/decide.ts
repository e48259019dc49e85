import type { AllocatableDecision, Asked, CgroupValues, Decided, QuantityList, Refusal } from "../../model/decision.ts";
import { canonicalText, type Quantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { isHugePage } from "../hugepages.ts";
import { Reasons } from "../reasons.ts";
import { addDevices } from "./devices.ts";
import { nodeCgroupValues, reservedEnforcements } from "./enforcement.ts";
import { allocatableOf, overReserved, totalReservation } from "./node-allocatable.ts";
import { type NodeLevel, nodeLevelOf } from "./node-level.ts";
import { evictionReservation } from "./reservation.ts";
import { startFaults } from "./start-errors.ts";

/** Capacity, what is taken off and why, allocatable, and the limits of the node-level cgroups. */
export function decideAllocatable(asked: Asked<undefined>): Result<Decided<AllocatableDecision>, Refusal> {
  const { snapshot } = asked;
  const reasons = new Reasons(asked.explain);
  const needs: string[] = [];
  const level = nodeLevelOf(snapshot, reasons, needs);
  if (!level.ok) return level;
  const { config, capacity, reserved, kubepods, enforced } = level.value;
  const eviction = evictionReservation(config, capacity);
  if (!eviction.ok) return err({ code: "invalid_configuration", message: eviction.error, needs: [] });
  if (!capacity.has("ephemeral-storage") && config.localStorageCapacityIsolation !== false)
    needs.push("node.status.capacity.ephemeral-storage");
  const reservation = totalReservation(capacity, reserved.kube, reserved.system, eviction.value);
  const allocatable = allocatableOf(capacity, reservation);
  const full = new Map(capacity);
  addDevices(snapshot, { capacity: full, allocatable }, reasons, needs);
  explain(reasons, level.value, eviction.value, allocatable);
  const faults = startFaults(config, snapshot).map(({ message }) => message);
  const errors = [...faults, ...overReserved(capacity, reservation)];
  const decision: AllocatableDecision = {
    capacity: texts(full),
    allocatable: texts(allocatable),
    reserved: {
      kubeReserved: texts(new Map(Object.entries(reserved.kube))),
      systemReserved: texts(new Map(Object.entries(reserved.system))),
      evictionHard: texts(eviction.value),
      hugepages: texts(new Map([...capacity].filter(([name, q]) => isHugePage(name) && q.amount !== 0))),
    },
    kubepods: {
      enforced,
      limits: texts(kubepods),
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

/** The tiers' refresh lifts the limits of huge pages on kubepods as well: they are not part of what holds. */
const withoutPages = ({ hugePageLimit: _lifted, ...values }: CgroupValues): CgroupValues => values;

function texts(list: ReadonlyMap<string, Quantity>): QuantityList {
  const written: Record<string, string> = {};
  for (const name of [...list.keys()].sort()) {
    const { amount, format } = list.get(name) as Quantity;
    written[name] = canonicalText(amount, format);
  }
  return written;
}

function explain(
  reasons: Reasons,
  level: NodeLevel,
  eviction: ReadonlyMap<string, Quantity>,
  allocatable: ReadonlyMap<string, Quantity>,
): void {
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
