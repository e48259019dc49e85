import * as z from "zod";
import { podAsk } from "./ask.ts";
import { count } from "./fields.ts";
import { byteCount, type Form, podRef, REASONS_OF_PODS } from "./forms.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";

/** The decisions of the kubelet's CPU, memory, device and topology managers. */

const cpuSet = z.string().describe("a CPU list such as 0-3,8");
const options = z.record(z.string(), z.string());
const strings = z.array(z.string());
const numaIds = z.array(count);

const hint = () =>
  z.strictObject({ numaNodes: numaIds.nullable().describe("null: on any node"), preferred: z.boolean() });
/** A possible placement of a resource. */
export type Hint = Form<typeof hint>;

const placement = () =>
  z
    .strictObject({
      container: z.string().nullable().describe("null: the pod as a whole, with pod scope"),
      hints: z
        .record(z.string(), z.array(hint()).nullable())
        .describe("resource to the ways to place it; null: no preference; []: it cannot be placed"),
      cutShort: strings.describe("resources with more hints than are listed, the preferred ones first"),
      merged: hint(),
      admitted: z.boolean(),
    })
    .describe("hints by resource, and what the topology manager merges them to");
export type Placement = Form<typeof placement>;

const refusal = () =>
  z.strictObject({
    reason: z.string().describe("of the pod's status, for example TopologyAffinityError"),
    message: z.string(),
    container: z.string().nullable().describe("whose turn it was; null where the pod as a whole was refused"),
  });
/** The reason and message for the pod's status. */
export type PodRefusal = Form<typeof refusal>;

/** Fields of every manager's decision. */
const managed = () => ({
  startErrors: strings.describe(
    "why a kubelet with this configuration, machine and state would not start, in its words",
  ),
  warnings: strings.describe("what the kubelet takes without a word and a person should know; each names its file"),
  refusal: refusal()
    .nullable()
    .describe("why the pod would be refused, in the kubelet's words; null without a pod, or when it would be admitted"),
  placements: z.array(placement()),
});
export type Managed = Pick<CpusDecision, "startErrors" | "warnings" | "refusal">;

const reasonOfRefusal = ({ refusal }: Managed): string | null => refusal?.reason ?? null;

/** The reason codes of every manager. */
const MANAGER_REASONS = ["kubelet_does_not_start", "refused", ...REASONS_OF_PODS] as const;
export type ManagerReason = (typeof MANAGER_REASONS)[number];
const CPUS_REASONS = [
  ...MANAGER_REASONS,
  "exclusive_cpus_given",
  "no_exclusive_cpus",
  "reserved_cpus",
  "shared_pool",
] as const;
const MEMORY_OWN = ["memory_anywhere", "memory_given", "memory_not_managed", "memory_table"] as const;
const MEMORY_REASONS = [...MANAGER_REASONS, ...MEMORY_OWN] as const;
const TOPOLOGY_REASONS = [
  ...CPUS_REASONS,
  ...MEMORY_OWN,
  "hints_merged",
  "largest_pod_not_searched",
  "topology_policy",
] as const;
const DEVICES_REASONS = [
  ...MANAGER_REASONS,
  "allocatable_raised",
  "checkpoint_entry_dropped",
  "device_plugin_removed",
  "devices_given",
  "plugin_not_asked",
  "unhealthy_devices",
] as const;

const cpuAssignment = { pod: podRef, container: z.string(), cpus: cpuSet };

/** The decision of the kind `cpus`. */
const cpusDecision = z.lazy(() =>
  z.strictObject({
    policy: z.enum(["none", "static"]),
    options,
    ...managed(),
    reserved: cpuSet,
    sharedPool: cpuSet.describe("of all containers without exclusive CPUs, after the asked pod was admitted"),
    assigned: z
      .array(z.strictObject({ container: z.string(), cpus: cpuSet, exclusive: z.boolean() }))
      .describe("what the asked pod's containers get; exclusive false: the shared pool"),
    assignments: z
      .array(z.strictObject(cpuAssignment))
      .describe("every exclusive assignment, the asked pod's with them"),
    reconcile: z
      .array(
        z.strictObject({
          ...cpuAssignment,
          containerId: z.string(),
          from: cpuSet.nullable().describe("null: what it has now is not known"),
        }),
      )
      .describe("running containers whose cpuset must change now"),
    overlaps: z
      .array(z.strictObject({ cpus: cpuSet, holders: z.array(z.strictObject({ pod: podRef, container: z.string() })) }))
      .describe("CPUs that two pods hold alone, which the kubelet takes without a word"),
  }),
);
export type CpusDecision = Form<typeof cpusDecision>;
export type CpuAssignment = CpusDecision["assignments"][number];
/** A running container whose cpuset is not what it should be. */
export type CpuChange = CpusDecision["reconcile"][number];

const memoryBlock = () =>
  z.strictObject({ numaNodes: numaIds, resource: z.string().describe("memory, or hugepages-2Mi"), size: byteCount });
export type MemoryBlock = Form<typeof memoryBlock>;

const memoryTable = () =>
  z.strictObject({
    total: byteCount,
    systemReserved: byteCount,
    allocatable: byteCount,
    reserved: byteCount,
    free: byteCount,
  });
export type MemoryTable = Form<typeof memoryTable>;

/** The decision of the kind `memory`. */
const memoryDecision = z.lazy(() =>
  z.strictObject({
    policy: z.enum(["None", "Static"]),
    ...managed(),
    numaNodes: z.array(
      z.strictObject({
        id: count,
        group: numaIds.describe("the nodes that it forms a group with, itself among them"),
        assignments: count,
        memory: z.record(z.string(), memoryTable()),
      }),
    ),
    assigned: z
      .array(z.strictObject({ container: z.string(), blocks: z.array(memoryBlock()) }))
      .describe("what the asked pod's containers get"),
    assignments: z.array(z.strictObject({ pod: podRef, container: z.string(), blocks: z.array(memoryBlock()) })),
  }),
);
export type MemoryDecision = Form<typeof memoryDecision>;

const deviceIds = () => z.record(z.string(), strings).describe("resource to device ids");
export type DeviceIds = Form<typeof deviceIds>;

/** The fragmentation of free CPUs and memory. */
const fragments = () => ({
  freeCpus: count,
  freeCores: count.describe("cores all of whose CPUs are free"),
  freeMemory: byteCount,
  largestBlock: count.describe("the most exclusive CPUs that one container can get on one NUMA node"),
  splitShare: z.number().describe("free CPUs whose core is partly taken, as a share of the free CPUs"),
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
    .describe("what the asked pod's containers get of each manager");

/** The decision of the kind `topology`; NUMA nodes are as after the asked pod's admission. */
const topologyDecision = z.lazy(() => {
  const largestPod = podSize()
    .nullable()
    .describe("the largest Guaranteed pod that would still be admitted wholly here; null: none");
  return z.strictObject({
    policy: z.enum(["none", "best-effort", "restricted", "single-numa-node"]),
    scope: z.enum(["container", "pod"]),
    options,
    ...managed(),
    assigned: managersAssigned(),
    numaNodes: z.array(z.strictObject({ numaNode: count, ...fragments(), largestPod })),
    node: z.strictObject({
      ...fragments(),
      scattered: z.number().describe("the share of the free CPUs that the largest block leaves out"),
      largestPod,
    }),
  });
});
export type TopologyDecision = Form<typeof topologyDecision>;

const nameValue = () => z.strictObject({ name: z.string(), value: z.string() });
export type NameValue = Form<typeof nameValue>;

const deviceConflict = () => {
  const side = z.strictObject({ resource: z.string(), value: z.string() });
  return z.strictObject({
    kind: z.enum(["env", "mount", "device", "annotation"]),
    name: z.string().describe("the variable, the path in the container, or the annotation"),
    kept: side,
    dropped: side,
  });
};
/** Two plugins return different values under one name; the container gets the first. */
export type DeviceConflict = Form<typeof deviceConflict>;

const deviceOptions = () =>
  z
    .strictObject({
      envs: z.array(nameValue()),
      mounts: z.array(z.strictObject({ containerPath: z.string(), hostPath: z.string(), readOnly: z.boolean() })),
      devices: z.array(
        z.strictObject({ pathOnHost: z.string(), pathInContainer: z.string(), permissions: z.string() }),
      ),
      annotations: z.array(nameValue()),
      cdiDevices: strings,
      conflicts: z.array(deviceConflict()),
    })
    .describe(
      "what the container gets, the answers of several plugins put together; of two under one name the first stays",
    );
export type DeviceOptions = Form<typeof deviceOptions>;

const deviceResource = () =>
  z.strictObject({
    resource: z.string(),
    plugin: z
      .enum(["registered", "stopped", "unregistered", "removed"])
      .describe("unregistered: known from the checkpoint only; removed: its plugin stopped longer than 5 minutes ago"),
    capacity: count,
    allocatable: count,
    allocated: count.describe("held by containers"),
    sanitized: count.describe(
      "what the node's status says once a pod that holds devices is looked at: never less than is allocated",
    ),
  });
export type DeviceResourceState = Form<typeof deviceResource>;

const devicesAssigned = () =>
  z.strictObject({
    container: z.string(),
    resource: z.string(),
    devices: strings,
    reused: strings.describe("those of devices that an init container of the pod had before"),
    preferred: strings.describe("those that the plugin preferred"),
    aligned: strings.describe("those on the NUMA nodes of the affinity"),
  });
export type AssignedDevices = Form<typeof devicesAssigned>;

/** The decision of the kind `devices`. */
const devicesDecision = z.lazy(() =>
  z.strictObject({
    ...managed(),
    checkpointError: z
      .string()
      .nullable()
      .describe(
        "why kubelet_internal_checkpoint was not taken: the kubelet logs it and goes on as if no device were held",
      ),
    resources: z.array(deviceResource()),
    assigned: z.array(devicesAssigned()).describe("what the asked pod's containers get"),
    assignments: z
      .array(
        z.strictObject({
          pod: podRef,
          container: z.string(),
          devices: deviceIds(),
          options: deviceOptions().nullable().describe("null where no plugin has answered yet"),
          pending: strings.describe("resources whose plugin has not said yet what the container gets"),
        }),
      )
      .describe("every container with devices, the asked pod's with them"),
    overlaps: z
      .array(z.strictObject({ resource: z.string(), device: z.string(), pods: z.array(podRef) }))
      .describe("devices that two pods hold, which the kubelet takes without a word"),
    purged: strings.describe("uids of pods that held devices and are no longer active"),
    unanswered: z
      .array(z.strictObject({ resource: z.string(), available: strings, mustInclude: strings, size: count }))
      .describe(
        "what a plugin would be asked; the natural order of ids stands in for its answer, which is posted in devicePlugins[].preferred",
      ),
  }),
);
export type DevicesDecision = Form<typeof devicesDecision>;

/** Traits of the four managers. */
const MANAGER = {
  ...PLAIN,
  pods: "requests",
  defaultsConfiguration: true,
  managers: "itself",
  whatIf: "placement",
  collected: null,
} as const;
/** The traits of managers whose decision shows which pod holds what. */
const HOLDERS = { ...MANAGER, nodePage: "snapshot", up: "recorded" } as const;

export const cpus = {
  decides: "which container has which CPUs, which a pod would get or why none, and which cpusets must change now",
  ask: podAsk,
  decision: cpusDecision,
  reasons: CPUS_REASONS,
  reasonOf: reasonOfRefusal,
  podPartsOf: ({ assignments, reconcile }: CpusDecision) => [...assignments, ...reconcile],
  facts: null,
  traits: { ...HOLDERS, policy: { field: "cpuManagerPolicy", values: ["none", "static"] } },
} as const satisfies KindSpec;

export const memory = {
  decides: "which container has memory of which NUMA nodes, huge pages too, and which a pod would get or why none",
  ask: podAsk,
  decision: memoryDecision,
  reasons: MEMORY_REASONS,
  reasonOf: reasonOfRefusal,
  podPartsOf: ({ assignments }: MemoryDecision) => assignments,
  facts: null,
  traits: { ...HOLDERS, policy: { field: "memoryManagerPolicy", values: ["None", "Static"] } },
} as const satisfies KindSpec;

export const topology = {
  decides:
    "whether the topology manager admits a pod and with which NUMA alignment, how fragmented the node is, and the largest pod that still fits",
  ask: podAsk,
  decision: topologyDecision,
  reasons: TOPOLOGY_REASONS,
  reasonOf: reasonOfRefusal,
  facts: null,
  traits: {
    ...MANAGER,
    policy: { field: "topologyManagerPolicy", values: ["none", "best-effort", "restricted", "single-numa-node"] },
    assumesNoDevices: "always",
    nodePage: "not-drawn",
    up: "not-asked",
  },
} as const satisfies KindSpec;

export const devices = {
  decides: "the devices of device plugins, which container has which, and which a pod would get or why none",
  ask: podAsk,
  decision: devicesDecision,
  reasons: DEVICES_REASONS,
  reasonOf: reasonOfRefusal,
  podPartsOf: ({ assignments }: DevicesDecision) => assignments,
  facts: null,
  traits: HOLDERS,
} as const satisfies KindSpec;
