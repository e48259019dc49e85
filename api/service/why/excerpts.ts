import { type Fields, fieldsOf } from "../../base/own.ts";
import { type DecisionOf, isVerdict } from "../../model/decision.ts";
import type { Ranking } from "../../model/eviction.ts";
import {
  admissionExcerptForm,
  type Change,
  type ExcerptOf,
  type Next,
  type PodExplanationDecision,
} from "../../model/why.ts";
import type { RecordedDecision } from "./evidence.ts";
import { isSubject, type WhyContext } from "./why-context.ts";

/** The parts of an admission decision that are about its pod. */
export const admissionExcerpt = ({
  pod,
  onNode,
  admit,
  reason,
  message,
  preempt,
  wouldRefuse,
  resources,
  counterfactuals,
}: DecisionOf["admission"]): ExcerptOf<"admission"> => ({
  pod,
  onNode,
  admit,
  reason,
  message,
  preempt,
  wouldRefuse,
  resources,
  counterfactuals,
});

/** The part of the decision that is about the explained pod; null if there is none. */
export function resizeExcerpt(of: WhyContext, { resizes }: DecisionOf["resize"]): ExcerptOf<"resize"> | null {
  const place = resizes.findIndex(({ pod }) => isSubject(of, pod));
  const found = resizes[place];
  if (found === undefined) return null;
  const { actuation: _, ...excerpt } = found;
  return { ...excerpt, place: place + 1, of: resizes.length };
}

/** The claims of the explained pod, with the faults of their allocation; null if the decision has none. */
export function claimsExcerpt(
  of: WhyContext,
  { pods, allocationFaults }: DecisionOf["claims"],
): ExcerptOf<"claims"> | null {
  const found = pods.find(({ pod }) => isSubject(of, pod));
  if (found === undefined) return null;
  const names = new Set(found.claims.map(({ claim }) => `${found.pod.namespace}/${claim}`));
  return { ...found, allocationFaults: allocationFaults.filter(({ claim }) => names.has(claim)) };
}

/** How many pods of a ranking are shown in addition to the explained one. */
const FIRST = 5;

/** `resource`: the resource that the explanation is about; null for whichever resource is reclaimed. */
export function evictionExcerpt(
  of: WhyContext,
  decision: DecisionOf["eviction"],
  resource: string | null,
): ExcerptOf<"eviction"> {
  const { thresholds, evicted, forecast, rankings, reclaim } = decision;
  const about = resource ?? reclaim?.resource ?? "memory";
  const ranking = rankings.find((one) => one.resource === about) ?? null;
  const signals: readonly string[] = ranking?.signals ?? [];
  const open = thresholds.filter(({ state }) => state === "below" || state === "unreclaimed");
  return {
    thresholds: open.length > 0 ? open : thresholds.filter(({ signal }) => signals.includes(signal)),
    evicted,
    forecast: forecast.filter(({ threshold }) => signals.includes(threshold.signal)),
    ranking: ranking && {
      ...ranking,
      pods: ranking.pods.filter(({ pod }, i) => i < FIRST || isSubject(of, pod)),
      counterfactuals: ranking.counterfactuals.filter(({ pod }) => isSubject(of, pod)),
    },
  };
}

/** The pods that would be evicted next, except the explained one. */
export function nextOf(of: WhyContext, ranking: Ranking | null): readonly Next[] {
  if (ranking === null) return [];
  return ranking.pods
    .filter(({ pod, critical }) => !critical && !isSubject(of, pod))
    .slice(0, NEXT)
    .map(({ pod, usage, request }, i) => ({
      pod,
      fate: "evicted",
      place: i + 1,
      resource: ranking.resource,
      usage,
      request,
    }));
}
const NEXT = 3;

/**
 * The smallest changes of the pod that move it in the ranking, as changes of an explanation: per value the one that saves the pod, or
 * else the smallest.
 */
export function rankChanges(ranking: Ranking | null): readonly Change[] {
  const groups = Map.groupBy(ranking?.counterfactuals ?? [], ({ change }) => change);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const best = group.find(({ pod, victim }) => victim !== null && victim.uid !== pod.uid) ?? first;
    if (best === undefined) return [];
    const { change, from, to, place, victim, pod } = best;
    const preempted = victim === null ? {} : { victim: `${victim.namespace}/${victim.name}` };
    const saves = victim === null || victim.uid !== pod.uid;
    return [
      {
        code: "rank_of_pod",
        numbers: { change, from, to, place, saves, resource: ranking?.resource ?? "", ...preempted },
      } as const,
    ];
  });
}

/** A recorded admission decision; null if another version wrote it in a different form. */
export function recordedAdmission({
  decision,
  node,
  policyVersion,
  verdict,
  decidedAt,
}: RecordedDecision): PodExplanationDecision | null {
  const names = Object.keys(admissionExcerptForm().shape);
  const picked: Fields = Object.fromEntries(names.map((name) => [name, decision[name]]));
  const read = admissionExcerptForm().safeParse(picked);
  if (!read.success || !isVerdict(verdict)) return null;
  const head = {
    node,
    policyVersion,
    verdict,
    basis: "recorded",
    at: decidedAt,
    agrees: true,
    differs: null,
    assumed: [],
  } as const;
  return { kind: "admission", ...head, excerpt: read.data };
}

/** Whether a recorded list of pods contains the explained pod. */
export const listsSubject = (of: WhyContext, list: unknown): boolean =>
  Array.isArray(list) &&
  list
    .map(fieldsOf)
    .some(({ namespace, name, uid }) =>
      isSubject(of, { namespace: String(namespace), name: String(name), uid: String(uid ?? "") }),
    );
