import { decideAllocatable } from "../../api/decide/kinds/allocatable.ts";
import type { AllocatableDecision } from "../../api/model/allocatable.ts";
import { unitsQuantity } from "../../api/model/quantity.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { node } from "../kit/nodes.ts";
import { decoded } from "../kit/snapshots.ts";

interface NodeStatusInput {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly hugepages2MiCount: number;
  readonly maxPods: number;
  readonly podsPerCore: number;
  readonly ephemeralStorage: string;
  readonly nodeAllocatableReservation: Record<string, string>;
  readonly deviceCapacity: Record<string, string>;
  readonly deviceAllocatable: Record<string, string>;
  readonly removedDevices: readonly string[] | null;
  readonly existingCapacity: Record<string, string>;
}

/** The suite's input as a posted snapshot: the reservation as kubeReserved, no hard eviction. */
export function readNodeStatus(input: NodeStatusInput): Snapshot {
  const devices = Object.entries(input.deviceCapacity).flatMap(([resource, all]) =>
    Array.from({ length: Number(all) }, (_, i) => ({
      resource,
      id: `device-${i}`,
      health: i < Number(input.deviceAllocatable[resource]) ? "Healthy" : "Unhealthy",
    })),
  );
  const hugepages = input.hugepages2MiCount > 0 ? { "hugepages-2Mi": `${input.hugepages2MiCount * 2}Mi` } : {};
  const capacity: Record<string, string> = {
    ...input.existingCapacity,
    ...Object.fromEntries(Object.keys(input.deviceCapacity).map((resource) => [resource, "0"])), // a plugin may list no devices
    cpu: String(input.cpus),
    memory: unitsQuantity(input.memoryBytes, "BinarySI").text,
    "ephemeral-storage": input.ephemeralStorage,
    ...hugepages,
  };
  return decoded({
    node: node({ capacity }),
    kubeletConfiguration: {
      maxPods: input.maxPods,
      podsPerCore: input.podsPerCore,
      kubeReserved: input.nodeAllocatableReservation,
      evictionHard: {},
    },
    devices,
  });
}

export function decideNodeStatus(snapshot: Snapshot, profile: Profile): AllocatableDecision {
  const answer = decideAllocatable({
    snapshot: effectiveSnapshot(snapshot, profile),
    facts: {},
    ask: undefined,
    explain: "off",
  });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value.decision;
}
