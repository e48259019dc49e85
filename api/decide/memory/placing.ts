import { err, ok, type Result } from "../../model/result.ts";
import type { NumaMask, TopologyHint } from "../topology/hint.ts";
import { bestHint, breaksGroups, type Ground, hasFree, memoryHints, type Reusable, unknownType } from "./hints.ts";
import type { Requests } from "./requests.ts";
import { NIL_POINTER } from "./state.ts";

const fail = (what: string): Result<never, string> => err(`[memorymanager] ${what}`);

/**
 * The nodes for what is asked: those of `affinity`, of the best hint where it names none, and more where it has too little.
 * Errors, in the kubelet's words: no nodes have it; only with more nodes than was preferred; groups would break.
 */
export function placeMemory(
  ground: Ground,
  asked: Requests,
  affinity: TopologyHint,
  reusable: Reusable,
): Result<NumaMask, string> {
  if (unknownType(ground, asked) !== undefined) return err(NIL_POINTER);
  const hints = () => memoryHints(ground, asked, reusable);
  let chosen = affinity;
  if (chosen.nodes === null) {
    const found = hints();
    if (found.size === 0) {
      return fail("failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    }
    // every kind of memory has the same hints, and the kubelet looks at those for memory
    const best = bestHint(found.get("memory") ?? []);
    if (best === undefined) return err(NIL_POINTER);
    if (!best.preferred && chosen.preferred) return fail("failed to find the default preferred hint");
    chosen = best;
  }
  const wanted = chosen.nodes as NumaMask;
  if (!hasFree(ground, wanted, asked)) {
    const wider = (hints().get("memory") ?? []).filter(({ nodes }) => ((nodes as NumaMask) & wanted) === wanted);
    const best = bestHint(wider);
    if (best === undefined) return fail("failed to find NUMA nodes to extend the current topology hint");
    if (!best.preferred && chosen.preferred) return fail("failed to find the extended preferred hint");
    chosen = best;
  }
  const set = chosen.nodes as NumaMask;
  return breaksGroups(ground, set) ? fail("preferred hint violates NUMA node allocation") : ok(set);
}
