import { containersOf, type Pod } from "../../model/pod.ts";
import { qosClass } from "../resources/qos.ts";
import type { NumaNodes } from "../topology/numa-nodes.ts";
import type { TopologyPolicy } from "../topology/policy.ts";

/** Sets of NUMA nodes that one pod's hints may name, over all its containers and resources: below half a second. */
const MOST_SETS_OF_POD = 2 ** 17;
/** The same of the pods that a restarted kubelet lets in again. */
const MOST_SETS_OF_NODE = 2 ** 18;

/** Why hinting for these pods would take too long: each resource of each container is hinted at with every of 2^n sets. */
export function tooManyHints(
  topology: TopologyPolicy,
  numa: NumaNodes,
  pods: readonly Pod[],
  whose: "pod" | "node",
): string | undefined {
  if (topology.name === "none") return undefined;
  const lists = pods.reduce((sum, pod) => sum + listsOf(pod, topology.scope === "pod"), 0);
  const most = whose === "pod" ? MOST_SETS_OF_POD : MOST_SETS_OF_NODE;
  if (lists * 2 ** numa.ids.length <= most) return undefined;
  const sets = `${lists} lists of hints at the sets of ${numa.ids.length} NUMA nodes are more than ${most} sets`;
  return whose === "pod" ? sets : `${sets}: post the managers' state files, so that nobody is let in again`;
}

/** Lists of hints that the managers make for a pod; devices are hinted at whatever its class. */
function listsOf(pod: Pod, wholePod: boolean): number {
  const isGuaranteed = qosClass(pod) === "Guaranteed";
  const containers = containersOf(pod);
  const named = containers.map(({ resources }) =>
    Object.keys({ ...resources?.limits, ...resources?.requests }).filter((name) => isGuaranteed || name.includes("/")),
  );
  return wholePod ? new Set(named.flat()).size : named.reduce((sum, names) => sum + names.length, 0);
}
