import * as z from "zod";
import { CPUS_REASONS } from "./cpus.ts";
import { deviceIds } from "./devices.ts";
import { count } from "./fields.ts";
import { byteCount, type Form } from "./forms.ts";
import type { KindSpec } from "./kind-spec.ts";
import { cpuSet, MANAGER_TRAITS, managed, policyOptions, reasonOfRefusal } from "./managers.ts";
import { MEMORY_OWN_REASONS, memoryBlock } from "./memory.ts";
import { podAsk } from "./pod-ask.ts";

const TOPOLOGY_REASONS = [
  ...CPUS_REASONS,
  ...MEMORY_OWN_REASONS,
  "hints_merged",
  "largest_pod_not_searched",
  "topology_policy",
] as const;
/** The fragmentation of free CPUs and memory. */
const fragments = () => ({
  freeCpus: count,
  freeCores: count.describe("the number of cores all of whose CPUs are free"),
  freeMemory: byteCount,
  largestBlock: count.describe("the largest number of exclusive CPUs that one container can get on one NUMA node"),
  splitShare: z.number().describe("the share of the free CPUs whose core also has assigned CPUs, from 0 to 1"),
});
export type Fragments = Omit<TopologyDecision["node"], "scattered" | "largestPod">;

const podSize = () => z.strictObject({ cpus: count, memory: byteCount });
export type PodSize = Form<typeof podSize>;

/** The assignments of a pod's containers, by manager. */
export const managersAssigned = () =>
  z
    .array(
      z.strictObject({
        container: z.string(),
        cpus: cpuSet,
        exclusive: z.boolean(),
        memory: z.array(memoryBlock()),
        devices: deviceIds(),
      }),
    )
    .describe("what each resource manager assigns to the containers of the pod in the ask");

/** The decision of the kind `topology`; NUMA nodes are as after the asked pod's admission. */
const topologyDecision = z.lazy(() => {
  const largestPod = podSize()
    .nullable()
    .describe("the largest Guaranteed pod that would still be admitted with all its resources here; null: none");
  return z.strictObject({
    policy: z.enum(["none", "best-effort", "restricted", "single-numa-node"]),
    scope: z.enum(["container", "pod"]),
    options: policyOptions,
    ...managed(),
    assigned: managersAssigned(),
    numaNodes: z.array(z.strictObject({ numaNode: count, ...fragments(), largestPod })),
    node: z.strictObject({
      ...fragments(),
      scattered: z.number().describe("the share of the free CPUs that are outside the largest block, from 0 to 1"),
      largestPod,
    }),
  });
});
export type TopologyDecision = Form<typeof topologyDecision>;

export const topology = {
  decides:
    "whether the topology manager admits a pod and with which NUMA alignment, how fragmented the node is, and the largest pod that still fits",
  ask: podAsk,
  decision: topologyDecision,
  reasons: TOPOLOGY_REASONS,
  reasonOf: reasonOfRefusal,
  facts: null,
  traits: {
    ...MANAGER_TRAITS,
    policy: { field: "topologyManagerPolicy", values: ["none", "best-effort", "restricted", "single-numa-node"] },
    assumesNoDevices: "always",
    nodePage: "not-drawn",
    up: "not-asked",
  },
} as const satisfies KindSpec;
