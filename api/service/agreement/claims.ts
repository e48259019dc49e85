import type { Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { type ClaimsDecision, PREPARE_FAILED, type PrepareWords, prepareWords } from "../../model/claims.ts";
import type { DecidedOf, Refusal } from "../../model/decision.ts";
import type { NotComparable, OutcomeOf, Side } from "../../model/outcome.ts";
import { type Pod, podUid } from "../../model/pod.ts";
import type { Dra, ResourceClaim } from "../../model/resource-claim.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { type Comparer, notComparable, sides, undecided } from "./compared.ts";

/**
 * Compares prepared claims, or a pod that did not start because of its claims, by the kubelet's exact message. A driver's message
 * is reported, not compared. The claims are the outcome's, since an earlier snapshot may have older ones.
 */
export const compareClaims: Comparer<OutcomeOf<"claims">> = (outcome, state) => {
  const { prepared, message, claims, object, pod: ref } = outcome;
  const said = prepareWords(message);
  const kubelet = sideOf(prepared ? null : said);
  const pod = object ?? (state.pods ?? []).find((one) => podUid(one) === ref.uid);
  if (pod === undefined) return notComparable("pod_not_known", kubelet, { missing: ["object"] });
  if (claims === undefined) return notComparable("claims_not_known", kubelet, { missing: ["claims"] });
  const unknown = UNKNOWN.find(({ words, has }) => words.test(said.own) && !has?.(state));
  if (unknown !== undefined) return notComparable(unknown.why, kubelet, { missing: unknown.missing });
  const answer = decisionOn(state, pod, claims);
  if (!answer.ok) return undecided(answer.error, kubelet);
  const { decision } = answer.value;
  const decided = decision.refusal === null ? null : prepareWords(decision.refusal.message);
  // a driver is called only if everything else succeeded
  const isCalled = said.driver !== null && decided === null && calls(decision, said.claim);
  const nodewise = { ...sideOf(isCalled ? said : decided), starts: decision.startErrors.length === 0 };
  const measured = said.driver === null ? [] : [{ field: "driver", kubelet: said.driver, nodewise: null }];
  return sides(kubelet, nodewise, measured);
};

/** `words`: null if the claims are prepared. */
const sideOf = (words: PrepareWords | null): Side => ({
  starts: true,
  prepared: words === null,
  ...(words === null ? {} : { reason: PREPARE_FAILED, message: words.own }),
});

/** Messages with a cause that no document of a cluster shows. kubelet 1.37: prepareResources. */
const UNKNOWN: readonly {
  readonly words: RegExp;
  readonly why: NotComparable;
  readonly missing: readonly string[];
  /** Whether a snapshot has the cause; absent if none can. */
  readonly has?: (state: EffectiveSnapshot) => boolean;
}[] = [
  {
    words: /: DRA driver \S+ is not registered$/,
    why: "input_not_known",
    missing: ["dra.drivers"],
    has: ({ dra }) => dra?.drivers !== undefined,
  },
  {
    words: /: old ResourceClaim with same name \S+ and different UID |: ResourceClaim \S+ is being unprepared$/,
    why: "state_files",
    missing: ["assignments.dra_manager_state"],
    has: ({ assignments }) => assignments?.dra_manager_state !== undefined,
  },
  // an error of the API server, or of the kubelet's disk
  {
    words: /: fetch ResourceClaim \S+: (?!.*" not found$)|: checkpoint ResourceClaim /s,
    why: "not_decided_here",
    missing: [],
  },
];

/**
 * The decision on the claims as the kubelet read them, with drivers that never fail, since their errors cannot be
 * predicted.
 */
function decisionOn(
  state: EffectiveSnapshot,
  pod: Pod,
  resourceClaims: readonly ResourceClaim[],
): Result<DecidedOf<"claims">, Refusal> {
  const drivers = state.dra?.drivers?.map(({ answers: _, ...driver }) => driver);
  const dra: Dra = { ...state.dra, resourceClaims: [...resourceClaims], ...(drivers && { drivers }) };
  const asked = { snapshot: { ...state, dra }, facts: {}, ask: { pod }, explain: "off" } as const;
  return decideKind("claims", asked) as Result<DecidedOf<"claims">, Refusal>;
}

/** Whether a driver is called for the pod's claim, or for any claim if `claim` is null. */
const calls = ({ pods }: ClaimsDecision, claim: string | null): boolean =>
  (pods[0]?.claims ?? []).some(
    (one) => (claim === null || one.claim === claim) && one.drivers.some(({ call }) => call !== "left-out"),
  );
