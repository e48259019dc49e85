import * as z from "zod";

/** The decisions of the CPU, memory, topology and device managers, as the API answers them. */
const integer = z.number();
const bytes = z.number().describe("bytes");
const cpus = z.string().describe("a CPU list such as 0-3,8");
const options = z.record(z.string(), z.string());
export const podRef = z.strictObject({ namespace: z.string(), name: z.string(), uid: z.string() });

const hint = z.strictObject({
  numaNodes: z.array(integer).nullable().describe("null: any node"),
  preferred: z.boolean(),
});
const placement = z
  .strictObject({
    container: z.string().nullable().describe("null: the pod as a whole"),
    hints: z.record(z.string(), z.array(hint).nullable()).describe("null: no preference; []: it cannot be placed"),
    cutShort: z.array(z.string()).describe("resources with more hints than are told, the preferred ones first"),
    merged: hint,
    admitted: z.boolean(),
  })
  .describe("hints by resource, and what the topology manager merges them to");
const managed = {
  startErrors: z.array(z.string()).describe("why the kubelet would not start, in its words"),
  warnings: z.array(z.string()).describe("what the kubelet takes without a word; each names its file"),
  refusal: z
    .strictObject({ reason: z.string(), message: z.string(), container: z.string().nullable() })
    .nullable()
    .describe("why the pod would be refused, in the kubelet's words"),
  placements: z.array(placement),
};

const cpuAssignment = { pod: podRef, container: z.string(), cpus };
export const cpusDecision = z.strictObject({
  policy: z.enum(["none", "static"]),
  options,
  ...managed,
  reserved: cpus,
  sharedPool: cpus,
  assigned: z
    .array(z.strictObject({ container: z.string(), cpus, exclusive: z.boolean() }))
    .describe("what the asked pod gets"),
  assignments: z.array(z.strictObject(cpuAssignment)).describe("every exclusive assignment"),
  reconcile: z
    .array(z.strictObject({ ...cpuAssignment, containerId: z.string(), from: cpus.nullable() }))
    .describe("running containers whose cpuset must change now; from null: what it is now is not known"),
  overlaps: z
    .array(z.strictObject({ cpus, holders: z.array(z.strictObject({ pod: podRef, container: z.string() })) }))
    .describe("CPUs that two pods hold alone, which the kubelet takes without a word"),
});

const block = z.strictObject({ numaNodes: z.array(integer), resource: z.string(), size: bytes });
const memoryTable = z.strictObject({
  total: bytes,
  systemReserved: bytes,
  allocatable: bytes,
  reserved: bytes,
  free: bytes,
});
export const memoryDecision = z.strictObject({
  policy: z.enum(["None", "Static"]),
  ...managed,
  numaNodes: z.array(
    z.strictObject({
      id: integer,
      group: z.array(integer).describe("the nodes that share blocks with it, itself among them"),
      assignments: integer,
      memory: z.record(z.string(), memoryTable),
    }),
  ),
  assigned: z.array(z.strictObject({ container: z.string(), blocks: z.array(block) })),
  assignments: z.array(z.strictObject({ pod: podRef, container: z.string(), blocks: z.array(block) })),
});

const deviceIds = z.record(z.string(), z.array(z.string())).describe("resource to device ids");
const fragments = {
  freeCpus: integer,
  freeCores: integer,
  freeMemory: bytes,
  largestBlock: integer.describe("the most exclusive CPUs that one container can get on one NUMA node"),
  splitShare: z.number().describe("free CPUs whose core is partly taken, as a share of the free CPUs"),
};
const largestPod = z
  .strictObject({ cpus: integer, memory: bytes })
  .nullable()
  .describe("the largest Guaranteed pod that would still come in; null: none");
export const topologyDecision = z.strictObject({
  policy: z.enum(["none", "best-effort", "restricted", "single-numa-node"]),
  scope: z.enum(["container", "pod"]),
  options,
  ...managed,
  assigned: z.array(
    z.strictObject({
      container: z.string(),
      cpus,
      exclusive: z.boolean(),
      memory: z.array(block),
      devices: deviceIds,
    }),
  ),
  numaNodes: z.array(z.strictObject({ numaNode: integer, ...fragments, largestPod })),
  node: z.strictObject({ ...fragments, scattered: z.number(), largestPod }),
});
