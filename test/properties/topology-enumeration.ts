import { countNodes, type NumaMask, type ResourceHints, type TopologyHint } from "../../api/decide/topology/hint.ts";
import type { Merged } from "../../api/decide/topology/merge.ts";
import type { AligningPolicy } from "../../api/decide/topology/policy.ts";

interface Pair {
  readonly nodes: NumaMask;
  readonly preferred: boolean;
}

/** The merge as the kubelet runs it: it compares every combination with the best one so far. */
export function mergeByEnumeration(policy: AligningPolicy, providers: readonly ResourceHints[]): Merged {
  const single = policy.name === "single-numa-node";
  const lists = providers
    .flatMap((hints): readonly (readonly TopologyHint[])[] => {
      if (hints.size === 0) return [[{ nodes: null, preferred: true }]];
      return [...hints.values()].map((list) =>
        list === null || list.length === 0 ? [{ nodes: null, preferred: list === null }] : list,
      );
    })
    .map((list) =>
      single ? list.filter((h) => h.preferred && (h.nodes === null || countNodes(h.nodes) === 1)) : list,
    );
  const most = Math.max(
    0,
    ...lists.map((list) => {
      const counts = list.filter((h) => h.nodes !== null).map((h) => countNodes(h.nodes as NumaMask));
      return counts.length === 0 ? 0 : Math.min(...counts);
    }),
  );
  let best: Pair | undefined;
  for (const combination of combinations(lists)) {
    const candidate = together(policy.numa.all, combination);
    if (candidate.nodes !== 0) best = best === undefined ? candidate : better(policy, most, best, candidate);
  }
  const { nodes, preferred } = best ?? { nodes: policy.numa.all, preferred: false };
  const hint = { nodes: single && nodes === policy.numa.all ? null : nodes, preferred };
  return { hint, admitted: policy.name === "best-effort" || preferred };
}

function* combinations(
  lists: readonly (readonly TopologyHint[])[],
  chosen: readonly TopologyHint[] = [],
): Generator<readonly TopologyHint[]> {
  const list = lists[chosen.length];
  if (list === undefined) yield chosen;
  else for (const hint of list) yield* combinations(lists, [...chosen, hint]);
}
function together(all: NumaMask, combination: readonly TopologyHint[]): Pair {
  const named = combination.flatMap((hint) => (hint.nodes === null ? [] : [hint.nodes]));
  return {
    nodes: named.reduce((common, nodes) => common & nodes, all),
    preferred: combination.every((hint) => hint.preferred) && new Set(named).size <= 1,
  };
}

function better(policy: AligningPolicy, most: number, best: Pair, next: Pair): Pair {
  if (best.preferred !== next.preferred) return best.preferred ? best : next;
  if (best.preferred) return fitter(policy, best, next);
  const has = countNodes(best.nodes);
  const would = countNodes(next.nodes);
  if (has > most) return fitter(policy, best, next);
  if (would > most) return best;
  if (has !== would) return would > has ? next : best;
  return fitter(policy, best, next);
}
function fitter({ distances }: AligningPolicy, a: Pair, b: Pair): Pair {
  const fewer = countNodes(a.nodes) - countNodes(b.nodes);
  if (fewer !== 0) return fewer < 0 ? a : b;
  const closer = distances === null ? 0 : average(distances, a.nodes) - average(distances, b.nodes);
  if (closer !== 0) return closer < 0 ? a : b;
  return a.nodes <= b.nodes ? a : b;
}
function average(distances: readonly (readonly number[])[], mask: NumaMask): number {
  const bits = distances.map((_, i) => i).filter((i) => (mask & (1 << i)) !== 0);
  const sum = bits.flatMap((i) => bits.map((j) => distances[i]?.[j] as number)).reduce((a, b) => a + b, 0);
  return sum / bits.length ** 2;
}
