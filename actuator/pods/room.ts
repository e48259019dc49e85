import type { QuantityList } from "../../api/model/decision.ts";
import type { ConditionState } from "../../api/model/eviction.ts";
import type { ResourceAmount } from "../deviceplugin/plugin-views.ts";
import type { MachineFacts } from "../machine/facts.ts";
import { driverOf, snapshotOf } from "../snapshot.ts";
import type { DeviceParts } from "./devices/port.ts";

export interface NodeParts {
  readonly machine: MachineFacts;
  readonly kubeletConfiguration: unknown;
  readonly pods: readonly unknown[];
  readonly assignments: Readonly<Record<string, string>> | undefined;
  readonly nodeName: string;
  readonly cgroupMount: string;
  /** Null: it was not decided yet. */
  readonly allocatable: QuantityList | null;
  readonly conditions: readonly ConditionState[];
  readonly sequence: number;
  readonly devices?: DeviceParts;
  /** Of devices, by resource: newer than `allocatable`. */
  readonly amounts?: ReadonlyMap<string, ResourceAmount>;
}
const PRESSURES = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;

/** The node as a decision about its pods sees it: with the conditions that its last eviction pass found. */
export function nodeSnapshot(parts: NodeParts): Readonly<Record<string, unknown>> {
  const { machine, kubeletConfiguration, pods, assignments, nodeName, cgroupMount, conditions, sequence } = parts;
  const snapshot = snapshotOf({
    machine,
    kubeletConfiguration,
    pods,
    nodeName,
    sequence,
    cgroup: { driver: driverOf(kubeletConfiguration), root: cgroupMount },
    ...parts.devices,
    ...(assignments === undefined ? {} : { assignments }),
  });
  const node = snapshot["node"] as { readonly status?: object } | undefined;
  const held = new Set<string>(conditions.map(({ type }) => type));
  const pressures = PRESSURES.map((type) => ({ type, status: held.has(type) ? "True" : "False" }));
  const given = [...(parts.amounts ?? [])].map(([resource, amount]) => [resource, String(amount.allocatable)]);
  const allocatable =
    parts.allocatable === null ? {} : { allocatable: { ...parts.allocatable, ...Object.fromEntries(given) } };
  return { ...snapshot, node: { ...node, status: { ...node?.status, ...allocatable, conditions: pressures } } };
}
