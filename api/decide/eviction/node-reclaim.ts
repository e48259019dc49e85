import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import { NODE_RECLAIM, type NodeReclaimFunction, type ReclaimTakes } from "../../model/eviction.ts";
import type { EvictionAsk } from "../../model/eviction-facts.ts";
import type { Result } from "../../model/result.ts";
import { decideContainerGc } from "../container-gc/decide.ts";
import { decideImageGc } from "../image-gc/decide.ts";
import type { Reasons } from "../reasons.ts";

const [CONTAINERS, IMAGES] = NODE_RECLAIM;
const DELETE_UNUSED = { operation: "delete-unused", done: null } as const;

/**
 * What the node-level functions would take now, each in its order, and the images' bytes. Images that only containers of the
 * first function use are free for the second. What is known of the images is `ask.images`.
 * kubelet 1.36: reclaimNodeLevelResources, with DeleteAllUnusedContainers and DeleteUnusedImages.
 */
export function reclaimTakes(
  { snapshot, ask }: Asked<EvictionAsk>,
  nodeLevel: readonly NodeReclaimFunction[],
  reasons: Reasons,
  needs: string[],
): ReclaimTakes | null {
  if (nodeLevel.length === 0) return null;
  if (snapshot.runtime === undefined) {
    needs.push("runtime");
    return null;
  }
  const runsContainers = nodeLevel.includes(CONTAINERS);
  const taken = <D>(name: NodeReclaimFunction, decided: () => Result<Decided<D>, Refusal>): D | null => {
    if (!nodeLevel.includes(name)) return null;
    const result = decided();
    if (result.ok) return result.value.decision;
    const { code, message } = result.error;
    reasons.add("reclaim_not_told", name, "reclaim.takes", { code, message });
    for (const path of result.error.needs) if (!needs.includes(path)) needs.push(path);
    return null;
  };
  const asked = { snapshot, facts: { "image-gc": ask.images }, explain: "off" } as const;
  return {
    containers: taken(CONTAINERS, () => decideContainerGc({ ...asked, ask: DELETE_UNUSED })),
    images: taken(IMAGES, () =>
      decideImageGc({ ...asked, ask: { ...DELETE_UNUSED, fileSystem: null, afterContainerGc: runsContainers } }),
    ),
  };
}
