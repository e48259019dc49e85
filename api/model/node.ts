import * as z from "zod";
import { optional, resourceList, text } from "./fields.ts";

/** The fields of v1.Node that a decision reads. */
export const node = z.object({
  kind: optional(z.literal("Node", "must be a v1.Node (kubectl get node NAME -o json)")),
  metadata: z.object({ name: text.min(1) }),
  status: optional(
    z.object({
      capacity: optional(resourceList),
      allocatable: optional(resourceList),
      nodeInfo: optional(z.object({ bootID: optional(text), kubeletVersion: optional(text) })),
    }),
  ),
});
export type Node = z.output<typeof node>;
