import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { fieldsOf } from "../base/own.ts";
import { value } from "./amount.ts";
import { assignments } from "./assignments.ts";
import { absolutePath, count, optional, sortedRecord, text, timestamp, wholeNumber } from "./fields.ts";
import { kubeletConfiguration } from "./kubelet-configuration.ts";
import { devicePlugins, devices, machine } from "./machine.ts";
import { node } from "./placement.ts";
import { pod } from "./pod.ts";
import { dra } from "./resource-claim.ts";
import { containerGcFlags, runtime } from "./runtime.ts";
import { stats } from "./units.ts";

export const cgroup = z.object({
  version: z.literal([1, 2], "must be 1 or 2"),
  driver: optional(z.enum(["cgroupfs", "systemd"])),
  /** The mount point of the cgroup hierarchies. */
  root: optional(absolutePath),
  /** How the runtime converts a container's shares to cpu.weight: `curve` (runc >= 1.3.2, crun >= 1.23) or `linear` (older). */
  runtimeCpuWeight: optional(z.enum(["curve", "linear"])),
  /** Container id, without the runtime's prefix -> its cpuset.cpus as read. */
  cpusets: optional(sortedRecord(text, text, LIMITS.pods * LIMITS.containersPerPod)),
});

/** What the kubelet's managers know about their own process. */
const kubelet = z.object({
  /** When this kubelet started; it has forgotten what plugins reported before. */
  startedAt: optional(timestamp),
  /** True, or absent: every source of pods has reported since the start. Until then no resources of a pod are freed. */
  sourcesReady: optional(z.boolean()),
  /** systemd has announced a shutdown: no more pods are admitted. */
  shuttingDown: optional(z.boolean()),
  /** True: the host enforces AppArmor profiles. The kubelet checks this once, when it starts. */
  appArmor: optional(z.boolean()),
  ...containerGcFlags,
});

const podList = z.preprocess((v) => podItems(v), z.array(pod).max(LIMITS.pods));
/** A list with null items is empty, as Go writes it: `{"kind": "PodList", "items": null}`. */
export const podItems = (v: unknown): unknown => (isPodList(v) ? (v.items ?? []) : v);
/** `kubectl get pods -o json` prints a List. */
export const isPodList = (v: unknown): v is { items: unknown } =>
  typeof v === "object" && v !== null && !Array.isArray(v) && "items" in v;

/**
 * The field of a list's metadata that shows that it is one page of several; null if it is complete, or no list. kubernetes 1.36:
 * ListMeta.
 */
export function pageField(list: unknown): "continue" | "remainingItemCount" | null {
  const { continue: next, remainingItemCount: left } = fieldsOf(fieldsOf(list)["metadata"]);
  if (typeof next === "string" && next !== "") return "continue";
  return typeof left === "number" && left > 0 ? "remainingItemCount" : null;
}

/** The known state of a node at one moment. The order of the fields is the canonical order of the stored form. */
export const snapshot = z.object({
  observedAt: optional(timestamp),
  bootId: optional(text),
  sequence: optional(count),
  /** By how much the node's clock was set since the last pass, ms; negative if back. Absent if that is unknown. */
  clockSteppedMs: optional(wholeNumber(-8.64e15, 8.64e15)),
  /** The time of that pass, by the old clock: facts from a later pass are distinguished by it. */
  clockSteppedSince: optional(timestamp),
  node: optional(node),
  kubeletConfiguration: optional(kubeletConfiguration),
  pods: optional(podList),
  stats: optional(stats),
  machine: optional(machine),
  cgroup: optional(cgroup),
  kubelet: optional(kubelet),
  runtime: optional(runtime),
  devices: optional(devices),
  devicePlugins: optional(devicePlugins),
  assignments: optional(assignments),
  dra: optional(dra),
});
/** The names of a snapshot's parts in their canonical order. */
export const PARTS = Object.keys(snapshot.shape) as readonly (keyof Snapshot)[];
/** A decoded snapshot: validated, immutable, with parsed amounts. `JSON.stringify` gives its stored form. */
export type Snapshot = Readonly<z.output<typeof snapshot>>;

/** Bytes of the node's huge pages; null if its capacity is unknown. */
export function hugePageBytes(snapshot: Pick<Snapshot, "node"> | undefined): number | null {
  const capacity = snapshot?.node?.status?.capacity;
  if (capacity === undefined) return null;
  const pages = Object.entries(capacity).filter(([name]) => name.startsWith("hugepages-"));
  return pages.reduce((sum, [, { amount }]) => sum + value(amount), 0);
}
