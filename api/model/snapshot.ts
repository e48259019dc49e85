import * as z from "zod";
import { assignments } from "./assignments.ts";
import { devices } from "./devices.ts";
import { count, optional, text, timestamp } from "./fields.ts";
import { kubeletConfiguration } from "./kubelet-configuration.ts";
import { LIMITS } from "./limits.ts";
import { machine } from "./machine.ts";
import { node } from "./node.ts";
import { pod } from "./pod.ts";
import { stats } from "./stats.ts";

export const cgroup = z.object({
  version: z.union([z.literal(1), z.literal(2)]),
  driver: optional(z.enum(["cgroupfs", "systemd"])),
  /** Where the hierarchies are mounted. */
  root: optional(text),
  /** How the runtime turns a container's shares into cpu.weight: `curve` (runc >= 1.3.2, crun >= 1.23) or `linear` (older). */
  runtimeCpuWeight: optional(z.enum(["curve", "linear"])),
});
export type Cgroup = z.output<typeof cgroup>;

const podList = z.preprocess((v) => podItems(v), z.array(pod).max(LIMITS.pods));
const podItems = (v: unknown): unknown => (isPodList(v) ? v.items : v);
/** `kubectl get pods -o json` prints a List. */
export const isPodList = (v: unknown): v is { items: unknown } =>
  typeof v === "object" && v !== null && !Array.isArray(v) && "items" in v;

/** What is known of a node at one moment. Field order is the canonical order of the stored form. */
export const snapshot = z.object({
  observedAt: optional(timestamp),
  bootId: optional(text),
  sequence: optional(count),
  node: optional(node),
  kubeletConfiguration: optional(kubeletConfiguration),
  pods: optional(podList),
  stats: optional(stats),
  machine: optional(machine),
  cgroup: optional(cgroup),
  devices: optional(devices),
  assignments: optional(assignments),
});
/** A decoded snapshot: checked once, immutable, its amounts parsed. `JSON.stringify` gives its stored form. */
export type Snapshot = Readonly<z.output<typeof snapshot>>;
