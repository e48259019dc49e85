import type { EvictionDecision, NodeReclaimFunction } from "../../api/model/eviction.ts";
import type { DecisionAnswer, Problem } from "../ports.ts";
import type { Look } from "./look.ts";
import type { GcKind, GcPorts, ReclaimReport } from "./ports.ts";

const RUNS: Readonly<Record<NodeReclaimFunction, GcKind>> = {
  "delete-unused-containers": "container-gc",
  "delete-unused-images": "image-gc",
};

export interface Reclaimed {
  readonly report: ReclaimReport | null;
  readonly problems: readonly Problem[];
}

/**
 * kubelet 1.36: reclaimNodeLevelResources. Asks `eviction` whether a disk signal is below its threshold, runs what it
 * names, containers first, and asks again with the disks as they are then. Pods are nobody's business here.
 */
export async function reclaim(
  { client, evictionClock }: GcPorts,
  { snapshot: seen, space, moment }: Look,
  dryRun: boolean,
  run: (kind: GcKind) => Promise<void>,
  lookAgain: () => Promise<Look | null>,
): Promise<Reclaimed> {
  if (space === null) return { report: null, problems: [] };
  // by how much the clock was set since the last pass over images is another kind's
  const otherwise = { clockSteppedMs: undefined, clockSteppedSince: undefined };
  const snapshot = { ...seen, ...otherwise, ...evictionClock.told(moment) };
  const settle = async (answer: DecisionAnswer, isTold: boolean): Promise<Problem[]> => {
    await client.settle(answer, isTold);
    const kept = evictionClock.keep(moment);
    return kept.ok ? [] : [{ from: "memory", message: kept.error.message }];
  };
  const asked = await client.decide("eviction", snapshot);
  if (!asked.ok) return { report: null, problems: [asked.error] };
  const ran = (asked.value.decision as EvictionDecision).reclaim?.nodeLevel ?? [];
  for (const name of ran) await run(RUNS[name]);
  const after = ran.length === 0 || dryRun ? null : await lookAgain();
  if (after === null) {
    // a minute in which nothing was reclaimed is nothing to send later
    const problems = await settle(asked.value, false);
    return { report: { answer: asked.value, ran }, problems };
  }
  const again = await client.decide("eviction", snapshot, { statsAfterReclaim: after.snapshot["stats"] });
  if (!again.ok) return { report: { answer: asked.value, ran }, problems: [again.error] };
  const problems = await settle(again.value, true);
  return { report: { answer: again.value, ran }, problems };
}
