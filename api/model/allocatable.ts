import * as z from "zod";
import { cgroupValues, NODE_LEVEL_REASONS } from "./cgroups.ts";
import { answerText, type Form, texts } from "./forms.ts";
import { type KindSpec, nothingAsked, PLAIN } from "./kind-spec.ts";

const quantities = () =>
  z.record(z.string(), answerText).describe("canonical quantities by resource name, such as 23123516Ki");
export type QuantityList = Form<typeof quantities>;

const ALLOCATABLE_REASONS = [
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
      .describe(
        "the amounts subtracted from the capacity, by their cause: kubeReserved, systemReserved, evictionHard, hugepages",
      ),
    kubepods: z
      .strictObject({ enforced: z.boolean(), limits: quantities(), values: cgroupValues })
      .describe("the limits of the kubepods cgroup, from which evictionHard is not subtracted"),
    enforcement: z
      .array(z.strictObject({ key: z.string(), cgroup: z.string(), values: cgroupValues }))
      .describe("the other node-level cgroups that enforceNodeAllocatable names"),
    errors: texts.describe("the kubelet's messages if a kubelet with this configuration does not start"),
  }),
);
export type AllocatableDecision = Form<typeof allocatableDecision>;

export const allocatable = {
  decides: "the node's capacity, what is reserved and why, its allocatable, and the limits of the kubepods cgroup",
  ask: nothingAsked,
  decision: allocatableDecision,
  reasons: ALLOCATABLE_REASONS,
  facts: null,
  traits: {
    ...PLAIN,
    pods: "nothing",
    cacheable: true,
    defaultsConfiguration: true,
    whatIf: "node",
    nodePage: "snapshot",
    up: "printed",
    collected: ["configz"],
  },
} as const satisfies KindSpec;
