import * as z from "zod";
import { cgroupValues } from "./cgroups.ts";
import { answerText, type Form, texts } from "./forms.ts";

const quantities = () =>
  z.record(z.string(), answerText).describe("resource name to canonical quantity, such as 23123516Ki");
export type QuantityList = Form<typeof quantities>;

/** Why the node as a whole, or one of its cgroups, has what it has. */
export const NODE_LEVEL_REASONS = [
  "capacity",
  "pods_from_configuration",
  "shares_from_cpu",
  "limit_from_memory",
  "limit_from_process_ids",
] as const;
export type NodeLevelReason = (typeof NODE_LEVEL_REASONS)[number];
export const ALLOCATABLE_REASONS = [
  ...NODE_LEVEL_REASONS,
  "capacity_less_reserves",
  "device_plugin_removed",
  "devices_as_observed",
  "unhealthy_devices",
] as const;

/** The decision of the kind `allocatable`. */
export const allocatableDecision = z.lazy(() =>
  z.strictObject({
    capacity: quantities(),
    allocatable: quantities(),
    reserved: z
      .record(z.string(), quantities())
      .describe("what was taken off, by whom: kubeReserved, systemReserved, evictionHard, hugepages"),
    kubepods: z
      .strictObject({ enforced: z.boolean(), limits: quantities(), values: cgroupValues })
      .describe("the limits of the kubepods cgroup, which do not subtract evictionHard"),
    enforcement: z
      .array(z.strictObject({ key: z.string(), cgroup: z.string(), values: cgroupValues }))
      .describe("the other node-level cgroups that enforceNodeAllocatable names"),
    errors: texts.describe("configuration that the kubelet would refuse to start with"),
  }),
);
export type AllocatableDecision = Form<typeof allocatableDecision>;
