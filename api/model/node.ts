import * as z from "zod";
import { count, nodeName, nodeResourceList, optional, text, textMap } from "./fields.ts";
import { LIMITS } from "./limits.ts";
import { taints } from "./placement.ts";

const condition = z.object({ type: text, status: text, message: optional(text) });

/** The fields of v1.Node that a decision reads. */
export const node = z.object({
  kind: optional(z.literal("Node", "must be a v1.Node (kubectl get node NAME -o json)")),
  // without a name all posted pods count as the node's, and the history calls it unknown
  metadata: z.object({ name: optional(nodeName), labels: optional(textMap()) }).prefault({}),
  spec: optional(z.object({ taints: optional(taints) })),
  status: optional(
    z.object({
      capacity: optional(nodeResourceList),
      allocatable: optional(nodeResourceList),
      nodeInfo: optional(
        z.object({
          bootID: optional(text),
          kubeletVersion: optional(text),
          kernelVersion: optional(text),
          /** Bytes. */
          swap: optional(z.object({ capacity: optional(count) })),
        }),
      ),
      conditions: optional(z.array(condition).max(64)),
      features: optional(z.object({ supplementalGroupsPolicy: optional(z.boolean()) })),
      declaredFeatures: optional(z.array(text).max(LIMITS.labels)),
    }),
  ),
});
export type Node = z.output<typeof node>;
