import type { PodSize } from "../../model/managers.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { unitsQuantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { bytes } from "../../model/units.ts";
import { admitPod, type NamedProvider } from "./admit.ts";
import type { TopologyHint } from "./hint.ts";
import type { TopologyPolicy } from "./policy.ts";
import type { MergeRefusal } from "./reachable.ts";
import { largestBoth, type Range, rangesOf } from "./search.ts";

export interface LargestAsk {
  readonly policy: TopologyPolicy;
  /** Fresh copies of the node's managers, as they are now: each trial spoils its own. */
  readonly providers: () => readonly NamedProvider[];
  /** The NUMA nodes, ascending by id, whole: all their CPUs, and all the memory that pods may have, free or not. */
  readonly nodes: readonly PodSize[];
  /** The most that the node has left by its allocatable, whatever the managers say. */
  readonly free: PodSize;
  /** CPUs that are only given together: the threads of a core with full-pcpus-only, else 1. */
  readonly cpuStep: number;
}
/** Memory is searched by the MiB. */
const MEMORY_STEP = 2 ** 20;

/**
 * The largest pod of one Guaranteed container that would be let in now: the most whole CPUs, and with so many the most
 * memory; null when not even the smallest comes in. The answer was let in at a trial. It is the largest if of two pods
 * that need as many NUMA nodes the larger is never let in alone, which is so with the kubelet's managers under
 * `restricted` and `single-numa-node`. On 8 nodes it takes some 200 trials at most.
 */
export function largestPod(ask: LargestAsk): Result<PodSize | null, MergeRefusal> {
  let refusal: MergeRefusal | undefined;
  const fits = (size: PodSize): boolean => {
    const admission = admitPod(ask.policy, ask.providers(), guaranteedPod(size));
    if (!admission.ok) refusal = admission.error;
    return admission.ok && admission.value.refusal === null;
  };
  const found = search(ask, ask.nodes, fits);
  return refusal === undefined ? ok(found) : err(refusal);
}

/**
 * The same wholly on one NUMA node, `node` by its place in `nodes`: each manager must be able to place it there alone, as
 * single-numa-node would have it, and then give it.
 */
export function largestPodOn(ask: LargestAsk, node: number): PodSize | null {
  const there: TopologyHint = { nodes: 1 << node, preferred: true };
  const fits = (size: PodSize): boolean => {
    const pod = guaranteedPod(size);
    const [container] = pod.spec.containers as [Container];
    return ask.providers().every(({ provider }) => {
      const lists = [...provider.containerHints(pod, container).values()];
      const placed = lists.every((list) => list === null || list.some(({ nodes }) => nodes === there.nodes));
      return placed && provider.allocate(pod, container, there).ok;
    });
  };
  return search(ask, ask.nodes.slice(node, node + 1), fits);
}

/** What is asked of the NUMA nodes changes with every node more that a pod must span, so each such range is searched alone. */
function search(
  { free, cpuStep }: LargestAsk,
  nodes: readonly PodSize[],
  fits: (size: PodSize) => boolean,
): PodSize | null {
  const size = (cpus: number, memory: number): PodSize => ({
    cpus: cpus * cpuStep,
    memory: bytes(memory * MEMORY_STEP),
  });
  const cpus: readonly Range[] = rangesOf(
    nodes.map((node) => node.cpus),
    free.cpus,
    cpuStep,
  );
  const memory = rangesOf(
    nodes.map((node) => node.memory),
    free.memory,
    MEMORY_STEP,
  );
  const found = largestBoth(cpus, memory, (c, m) => fits(size(c, m)));
  return found === undefined ? null : size(found.first, found.second);
}

function guaranteedPod({ cpus, memory }: PodSize): Pod {
  const list = { cpu: unitsQuantity(cpus, "DecimalSI"), memory: unitsQuantity(memory, "BinarySI") };
  const containers = [{ name: "largest", resources: { requests: list, limits: list } }];
  return { metadata: { name: "largest", namespace: "default", uid: "largest" }, spec: { containers } };
}
