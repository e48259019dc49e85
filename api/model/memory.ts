import * as z from "zod";
import { count } from "./fields.ts";
import { byteCount, type Form, podRef } from "./forms.ts";
import type { KindSpec } from "./kind-spec.ts";
import { HOLDER_TRAITS, MANAGER_REASONS, managed, numaIds, reasonOfRefusal } from "./managers.ts";
import { podAsk } from "./pod-ask.ts";

export const MEMORY_OWN_REASONS = ["memory_anywhere", "memory_given", "memory_not_managed", "memory_table"] as const;
const MEMORY_REASONS = [...MANAGER_REASONS, ...MEMORY_OWN_REASONS] as const;

export const memoryBlock = () =>
  z.strictObject({
    numaNodes: numaIds,
    resource: z.string().describe("the resource: memory, or huge pages such as hugepages-2Mi"),
    size: byteCount,
  });
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
        group: numaIds.describe("the NUMA nodes of its group, including the node itself"),
        assignments: count,
        memory: z.record(z.string(), memoryTable()),
      }),
    ),
    assigned: z
      .array(z.strictObject({ container: z.string(), blocks: z.array(memoryBlock()) }))
      .describe("the memory that the containers of the pod in the ask get"),
    assignments: z.array(z.strictObject({ pod: podRef, container: z.string(), blocks: z.array(memoryBlock()) })),
  }),
);
export type MemoryDecision = Form<typeof memoryDecision>;

export const memory = {
  decides: "which container has memory of which NUMA nodes, huge pages too, and which a pod would get or why none",
  ask: podAsk,
  decision: memoryDecision,
  reasons: MEMORY_REASONS,
  reasonOf: reasonOfRefusal,
  podPartsOf: ({ assignments }: MemoryDecision) => assignments,
  facts: null,
  traits: { ...HOLDER_TRAITS, policy: { field: "memoryManagerPolicy", values: ["None", "Static"] } },
} as const satisfies KindSpec;
