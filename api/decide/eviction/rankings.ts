import { EVICTION_SIGNALS, type EvictionSignal, type Ranking } from "../../model/eviction.ts";
import { type Pod, podNamespace } from "../../model/pod.ts";
import { counterfactuals } from "./counterfactual.ts";
import { diskParts } from "./file-systems.ts";
import { type Candidate, measureOf, rank, rankedPods } from "./rank.ts";
import { SIGNALS } from "./signals.ts";
import type { Pass } from "./synchronise.ts";

/** Of a longer ranking only these are told unless all are asked for. */
const FIRST = 20;

interface Ranked {
  readonly ranking: Ranking;
  readonly candidates: readonly Candidate[];
}

/** The pods in their order for every signal with a threshold, told once for signals that measure the same. `asked`: `NAMESPACE/NAME`. */
export function rankings(pass: Pass, pods: readonly Pod[], asked: string | null, whole: boolean): readonly Ranked[] {
  const groups = new Map<string, EvictionSignal[]>();
  const inForce = new Set(pass.watched.all.map((t) => t.signal));
  for (const signal of EVICTION_SIGNALS) {
    if (!inForce.has(signal) || !pass.seen.has(signal)) continue;
    const { resource } = SIGNALS[signal];
    const isDisk = resource === "ephemeral-storage" || resource === "inodes";
    const same = isDisk ? `${resource} ${JSON.stringify(diskParts(signal, pass.layout))}` : resource;
    groups.set(same, [...(groups.get(same) ?? []), signal]);
  }
  return [...groups.values()].map((signals) => {
    const measure = measureOf(signals[0] as EvictionSignal, pass.layout);
    const candidates = rank(pods, pass.statsOf, measure);
    const { resource } = measure;
    const ranking = {
      signals,
      resource,
      total: candidates.length,
      pods: rankedPods(candidates, resource, whole ? candidates.length : FIRST),
      counterfactuals: subjects(candidates, asked).flatMap((c) => counterfactuals(candidates, c, resource)),
    };
    return { ranking, candidates };
  });
}

/** The next victim, and the pod that was asked about. */
function subjects(candidates: readonly Candidate[], asked: string | null): readonly Candidate[] {
  const victim = candidates.find((c) => !c.critical);
  const named = candidates.find(({ pod }) => `${podNamespace(pod)}/${pod.metadata.name}` === asked);
  return [...new Set([victim, named])].filter((c) => c !== undefined);
}
