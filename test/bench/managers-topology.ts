import { countNodes, numaNodes, type ResourceHints, type TopologyHint } from "../../api/decide/topology/hint.ts";
import { mergeHints } from "../../api/decide/topology/merge.ts";
import type { AligningPolicy } from "../../api/decide/topology/policy.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}

const PROVIDERS = ["example.com/gpu", "example.com/nic", "cpu", "memory"];

function policyOn(nodes: number, closest: boolean): AligningPolicy {
  const ids = Array.from({ length: nodes }, (_, i) => i);
  const distances = ids.map((a) =>
    ids.map((b) => (a === b ? 10 : a >> 1 === b >> 1 ? 12 : a >> 2 === b >> 2 ? 20 : 32)),
  );
  return { name: "best-effort", scope: "container", numa: numaNodes(ids), distances: closest ? distances : null };
}
/**
 * Each provider has a hint for every set of NUMA nodes. Provider number `i` prefers the sets of `preferred(i)` nodes.
 */
function everySet(nodes: number, preferred: (provider: number) => number): readonly ResourceHints[] {
  return PROVIDERS.map((name, i) => {
    const hints = Array.from(
      { length: 2 ** nodes - 1 },
      (_, mask): TopologyHint => ({ nodes: mask + 1, preferred: countNodes(mask + 1) === preferred(i) }),
    );
    return new Map([[name, hints]]);
  });
}
function mergeCase(name: string, nodes: number, closest: boolean, preferred: (provider: number) => number): BenchCase {
  const policy = policyOn(nodes, closest);
  const hints = everySet(nodes, preferred);
  return {
    name,
    run: () => {
      if (!mergeHints(policy, hints).ok) throw new Error(`${name}: refused`);
    },
  };
}

/** One run is one merge. The kubelet would try 255^4 (or 65535^4) combinations. */
export const TOPOLOGY_CASES: readonly BenchCase[] = [
  mergeCase("merge, 4 providers on 8 nodes", 8, false, () => 1),
  // no hint is preferred by all providers, so every intersection is computed and compared by its distances
  mergeCase("the same, worst case", 8, true, (provider) => 1 + provider),
  mergeCase("the same on 16 nodes", 16, true, (provider) => 1 + provider),
];
