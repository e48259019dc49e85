import { ok, type Result } from "../../base/result.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type { AssignedDevices, DeviceIds, DeviceResourceState, DevicesDecision } from "../../model/devices.ts";
import type { PodRef } from "../../model/forms.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { EffectiveArguments } from "../../profiles/effective.ts";
import { reportsDevices } from "../allocatable/capacity.ts";
import type { GivenDevices } from "../devices/allocate.ts";
import type { Source } from "../devices/assign.ts";
import { deviceCapacity, sanitizeNodeAllocatable, sharedDevices } from "../devices/inventory.ts";
import { containerDevices } from "../devices/manager.ts";
import { decideWith, type ManagerQuery } from "../managers/manager-query.ts";
import { podNames } from "../managers/node.ts";
import type { Reasons } from "../reasons.ts";

/** Decides the plugins' resources, which container holds which devices, and what the asked pod would get or why not. */
export function decideDevices(asked: EffectiveArguments<PodAsk>): Result<DecidedOf<"devices">, Refusal> {
  return decideWith<"devices">(asked, {
    decided: (answered, reasons, needs) => {
      if (!reportsDevices(asked.snapshot)) needs.push("devices");
      return ok(decided(answered, reasons));
    },
    notStarted: (startErrors, warnings) => ({ ...NOTHING, startErrors, warnings }),
  });
}

const NOTHING = {
  refusal: null,
  checkpointError: null,
  resources: [],
  assigned: [],
  assignments: [],
  placements: [],
  overlaps: [],
  purged: [],
  unanswered: [],
} as const;

function decided(answered: ManagerQuery, reasons: Reasons<ReasonCode<"devices">>): DevicesDecision {
  const { node, pod, after, placements, refusal } = answered;
  const { state, purged, unanswered } = after.devices;
  const given = refusal === null ? after.devices.given : [];
  const names = podNames(pod === null ? node.active : [...node.active, pod]);
  explain(answered, given, reasons);
  return {
    startErrors: [],
    warnings: answered.warnings,
    refusal,
    checkpointError: node.checkpointError,
    resources: resourcesOf(answered, reasons),
    assigned: given.map(assignedDevices),
    assignments: assignmentsOf(answered, names),
    placements,
    overlaps: sharedDevices(after.devices.checkpoint().entries).map(({ resource, id, podUids }) => ({
      resource,
      device: id,
      pods: podUids.map(names),
    })),
    purged: [...new Set([...purged, ...state.dropped.map(({ podUid }) => podUid)])],
    unanswered,
  };
}

function resourcesOf(
  { node, after }: ManagerQuery,
  reasons: Reasons<ReasonCode<"devices">>,
): readonly DeviceResourceState[] {
  const { capacity, allocatable, removed } = deviceCapacity(node.inventories);
  const allocated = after.devices.state.allocated();
  const sanitized = sanitizeNodeAllocatable(allocatable, allocated);
  for (const resource of removed) reasons.add("device_plugin_removed", resource, "allocatable");
  for (const resource of sanitized.raised) {
    reasons.add("allocatable_raised", resource, "sanitized", { allocated: allocated.get(resource) });
  }
  return [...new Set([...node.inventories.keys(), ...allocated.keys()])].sort().map((resource) => {
    const plugin = node.inventories.get(resource)?.state ?? "unregistered";
    const counts = { capacity: capacity.get(resource) ?? 0, allocatable: allocatable.get(resource) ?? 0 };
    if (counts.allocatable < counts.capacity) reasons.add("unhealthy_devices", resource, "allocatable", { plugin });
    return {
      resource,
      plugin,
      ...counts,
      allocated: allocated.get(resource) ?? 0,
      sanitized: sanitized.allocatable.get(resource) ?? 0,
    };
  });
}

const takenFrom = ({ taken }: GivenDevices, ...sources: readonly Source[]): readonly string[] =>
  taken.filter(({ from }) => sources.includes(from)).flatMap(({ ids }) => ids);
const assignedDevices = (given: GivenDevices): AssignedDevices => ({
  container: given.container,
  resource: given.resource,
  devices: given.taken.flatMap(({ ids }) => ids),
  reused: takenFrom(given, "reused"),
  preferred: takenFrom(given, "preferred"),
  aligned: takenFrom(given, "aligned"),
});

function assignmentsOf({ after }: ManagerQuery, names: (uid: string) => PodRef): DevicesDecision["assignments"] {
  const { pods } = after.devices.state;
  return [...pods].flatMap(([uid, containers]) =>
    [...containers].map(([container, resources]) => {
      const held: DeviceIds = Object.fromEntries([...resources].map(([name, { ids }]) => [name, [...ids]]));
      const { options, pending } = containerDevices(after.devices, uid, container);
      return { pod: names(uid), container, devices: held, options: options ?? null, pending };
    }),
  );
}

function explain(
  { after }: ManagerQuery,
  given: readonly GivenDevices[],
  reasons: Reasons<ReasonCode<"devices">>,
): void {
  for (const { podUid, container, resource, fault } of after.devices.state.dropped) {
    reasons.add("checkpoint_entry_dropped", podUid, resource, { container, fault: fault.code, at: fault.at });
  }
  for (const { container, resource, taken } of given) {
    for (const { from, ids } of taken) reasons.add("devices_given", container, resource, { from, ids: ids.join(",") });
  }
  for (const { resource, size } of after.devices.unanswered) {
    reasons.add("plugin_not_asked", resource, "preferred", { size });
  }
}
