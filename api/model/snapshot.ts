import * as z from "zod";
import { value } from "./amount.ts";
import { assignments } from "./assignments.ts";
import { absolutePath, count, optional, sortedRecord, text, timestamp, wholeNumber } from "./fields.ts";
import { kubeletConfiguration } from "./kubelet-configuration.ts";
import { LIMITS } from "./limits.ts";
import { devicePlugins, devices, machine } from "./machine.ts";
import { fieldsOf } from "./own.ts";
import { node } from "./placement.ts";
import { pod } from "./pod.ts";
import { dra } from "./resource-claim.ts";
import { containerGcFlags, runtime } from "./runtime.ts";
import { stats } from "./units.ts";

export const cgroup = z.object({
  version: z.literal([1, 2], "must be 1 or 2"),
  driver: optional(z.enum(["cgroupfs", "systemd"])),
  /** Where the hierarchies are mounted. */
  root: optional(absolutePath),
  /** How the runtime turns a container's shares into cpu.weight: `curve` (runc >= 1.3.2, crun >= 1.23) or `linear` (older). */
  runtimeCpuWeight: optional(z.enum(["curve", "linear"])),
  /** Container id, without the runtime's prefix -> its cpuset.cpus as read. */
  cpusets: optional(sortedRecord(text, text, LIMITS.pods * LIMITS.containersPerPod)),
});

/** The kubelet's managers' knowledge of their own life. */
const kubelet = z.object({
  /** When this kubelet started; what it learnt of plugins before is gone. */
  startedAt: optional(timestamp),
  /**
   * True: every source of pods has been heard since the start; absent: they have. Until then nothing of a pod is taken back.
   */
  sourcesReady: optional(z.boolean()),
  /** systemd has announced a shutdown: nothing more comes in. */
  shuttingDown: optional(z.boolean()),
  /** True: the host enforces AppArmor profiles. The kubelet looks once, when it starts. */
  appArmor: optional(z.boolean()),
  ...containerGcFlags,
});

const podList = z.preprocess((v) => podItems(v), z.array(pod).max(LIMITS.pods));
/** A list without items is an empty one, as Go writes it: `{"kind": "PodList", "items": null}`. */
const podItems = (v: unknown): unknown => (isPodList(v) ? (v.items ?? []) : v);
/** `kubectl get pods -o json` prints a List. */
export const isPodList = (v: unknown): v is { items: unknown } =>
  typeof v === "object" && v !== null && !Array.isArray(v) && "items" in v;

/** The field of a list's metadata by which it is one page of several; null: it is whole, or no list. kubernetes 1.36: ListMeta. */
export function pageField(list: unknown): "continue" | "remainingItemCount" | null {
  const { continue: next, remainingItemCount: left } = fieldsOf(fieldsOf(list)["metadata"]);
  if (typeof next === "string" && next !== "") return "continue";
  return typeof left === "number" && left > 0 ? "remainingItemCount" : null;
}

/** The known state of a node at one moment. Field order is the canonical order of the stored form. */
export const snapshot = z.object({
  observedAt: optional(timestamp),
  bootId: optional(text),
  sequence: optional(count),
  /** By how much the node's wall clock was set since the last pass; negative: back. Absent: by nothing that is known. */
  clockSteppedMs: optional(wholeNumber(-8.64e15, 8.64e15)),
  /** That pass, by the clock as it was then: what is remembered of a pass after it is told apart. */
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
/** A decoded snapshot: checked once, immutable, its amounts parsed. `JSON.stringify` gives its stored form. */
export type Snapshot = Readonly<z.output<typeof snapshot>>;

/** Bytes that the node has set apart as huge pages; null: it does not tell its capacity. */
export function hugePageBytes(snapshot: Pick<Snapshot, "node"> | undefined): number | null {
  const capacity = snapshot?.node?.status?.capacity;
  if (capacity === undefined) return null;
  const pages = Object.entries(capacity).filter(([name]) => name.startsWith("hugepages-"));
  return pages.reduce((sum, [, { amount }]) => sum + value(amount), 0);
}
