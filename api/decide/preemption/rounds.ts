import { MOST_DISTANCES, type PodQos, type PreemptionPick, type PreemptionRound } from "../../model/preemption.ts";
import type { Candidate } from "./candidate.ts";
import { amountsOf, distance, type Requirement, subtract } from "./requirement.ts";

/** How many distances may still be told. */
interface Space {
  left: number;
}
interface Tier {
  readonly qos: PodQos;
  readonly candidates: readonly Candidate[];
}

/** Which pods the kubelet takes in kill order, and why. INVARIANT: all candidates together free what is needed. */
export function chooseVictims(
  need: readonly Requirement[],
  candidates: readonly Candidate[],
): { readonly victims: readonly Candidate[]; readonly rounds: readonly PreemptionRound[] } {
  const tier = (qos: PodQos): Tier => ({ qos, candidates: candidates.filter((c) => c.qos === qos) });
  const [bestEffort, burstable, guaranteed] = [tier("BestEffort"), tier("Burstable"), tier("Guaranteed")];
  const space = { left: MOST_DISTANCES };
  const lower = [...bestEffort.candidates, ...burstable.candidates];
  const first = round(guaranteed, subtract(need, lower), ["BestEffort", "Burstable"], space);
  const second = round(burstable, subtract(need, [...bestEffort.candidates, ...first.victims]), ["BestEffort"], space);
  const third = round(bestEffort, subtract(need, [...second.victims, ...first.victims]), [], space);
  return {
    victims: [...third.victims, ...second.victims, ...first.victims],
    rounds: [first.told, second.told, third.told],
  };
}

interface Round {
  readonly victims: readonly Candidate[];
  readonly told: PreemptionRound;
}
/** kubelet 1.36: getPodsToPreemptByDistance. */
function round(tier: Tier, need: readonly Requirement[], assumedGone: readonly PodQos[], space: Space): Round {
  const left = tier.candidates.map((_, place) => place);
  const victims: Candidate[] = [];
  const picks: PreemptionPick[] = [];
  for (let open = need; open.length > 0; ) {
    const distances = new Float64Array(tier.candidates.length).fill(Number.NaN);
    const best = nearest(open, tier.candidates, left, distances);
    const place = left[best];
    if (place === undefined) throw new Error("the tiers together free less than the candidates");
    picks.push(told(open, tier.candidates, place, distances, space));
    const victim = tier.candidates[place] as Candidate;
    victims.push(victim);
    open = subtract(open, [victim]);
    // the kubelet moves the last one into the gap, which the next tie may show
    left[best] = left[left.length - 1] as number;
    left.pop();
  }
  const candidates = need.length === 0 ? [] : tier.candidates.map((c) => ({ ...c.ref, memory: c.memory, cpu: c.cpu }));
  return { victims, told: { qos: tier.qos, assumedGone, need: amountsOf(need), candidates, picks } };
}

/** Where in `left` the nearest one is; of equals the smaller, of those the last. Fills `distances` by candidate. */
function nearest(
  open: readonly Requirement[],
  candidates: readonly Candidate[],
  left: readonly number[],
  distances: Float64Array,
): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < left.length; i++) {
    const candidate = candidates[left[i] as number] as Candidate;
    const away = distance(open, candidate);
    distances[left[i] as number] = away;
    if (away < least || (away === least && bySize(candidate, candidates[left[best] as number] as Candidate) <= 0)) {
      best = i;
      least = away;
    }
  }
  return best;
}
/** kubelet 1.36: smallerResourceRequest. */
const bySize = (a: Candidate, b: Candidate): number => a.memory - b.memory || a.cpu - b.cpu;

function told(
  open: readonly Requirement[],
  candidates: readonly Candidate[],
  place: number,
  distances: Float64Array,
  space: Space,
): PreemptionPick {
  const chosen = candidates[place] as Candidate;
  const away = distances[place] as number;
  const tied = candidates.filter((c, i) => distances[i] === away && i !== place && bySize(c, chosen) === 0);
  space.left -= distances.length;
  return {
    open: amountsOf(open),
    chosen: chosen.ref,
    distance: away,
    tied: tied.map(({ ref }) => ref),
    distances: space.left < 0 ? null : Array.from(distances, (d) => (Number.isNaN(d) ? null : d)),
  };
}
