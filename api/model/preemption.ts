import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import { decodeForm } from "./decode.ts";
import { oneOfForms, optional, resourceName, text, wholeNumber } from "./fields.ts";
import { type Form, integer, numbers, podRef, REASONS_OF_PODS } from "./forms.ts";
import { type KindSpec, PLAIN, type PodPart } from "./kind-spec.ts";
import { decodePodAsk, type PodAsk, podAskForm } from "./pod-ask.ts";

/** A resource that is short (thousandths of a CPU, else whole units), or a predicate that nobody's end can help. */
type FailureReason =
  | { readonly resourceName: string; readonly requested: number; readonly used: number; readonly capacity: number }
  | { readonly predicateName: string };

/** A pod that is to fit, and why it does not. */
export interface PreemptionAsk extends PodAsk {
  /** The failures of the kubelet's predicates; absent: the predicates are asked. */
  readonly failureReasons?: readonly FailureReason[];
}

/** The sum of such amounts is exact. */
const LARGEST_FAILURE_AMOUNT = Math.floor(LIMITS.units / 4);
const amount = optional(wholeNumber(0, LARGEST_FAILURE_AMOUNT));
const reasonMembers = z.strictObject({
  resourceName: optional(resourceName),
  requested: amount,
  used: amount,
  capacity: amount,
  predicateName: optional(text),
});
const failureReason = reasonMembers.transform((r, ctx): FailureReason => {
  const { resourceName, requested, used, capacity, predicateName } = r;
  const named = resourceName !== undefined && requested !== undefined && used !== undefined && capacity !== undefined;
  if (named && predicateName === undefined) return { resourceName, requested, used, capacity };
  if (predicateName !== undefined && Object.keys(r).length === 1) return { predicateName };
  ctx.addIssue({
    code: "custom",
    message: "must be a resourceName with requested, used and capacity, or a predicateName alone",
  });
  return z.NEVER;
});
const listOfReasons = <S extends z.ZodType>(reason: S) => z.array(reason).max(LIMITS.resourcesPerList);
const failureReasons = listOfReasons(failureReason);
const OF_RESOURCE = ["resourceName", "requested", "used", "capacity"] as const;
const ask = podAskForm("Pod").extend({
  failureReasons: optional(
    listOfReasons(
      z.union(
        oneOfForms(reasonMembers, [
          { needs: OF_RESOURCE, lacks: ["predicateName"] },
          { needs: ["predicateName"], lacks: OF_RESOURCE },
        ]),
      ),
    ),
  ).describe("the failures of the kubelet's predicates; absent: the decision checks the predicates itself"),
});

/** Checks a posted ask and parses it once. Errors: every issue with its path. */
export function decodePreemptionAsk(input: unknown, at = "ask"): Result<PreemptionAsk, readonly InputIssue[]> {
  if (!isObject(input)) return decodePodAsk(input, at);
  const { failureReasons: posted, ...rest } = input;
  const asked = decodePodAsk(rest, at);
  if (!asked.ok || posted === undefined || posted === null) return asked;
  const parsed = decodeForm(failureReasons, posted, joinPath(at, ["failureReasons"]));
  return parsed.ok ? ok({ ...asked.value, failureReasons: parsed.value }) : parsed;
}

/** Amounts are thousandths of a CPU for `cpu`, a number of pods for `pods`, and else whole units (bytes, devices). */
export const resourceAmounts = () => z.array(z.strictObject({ resource: z.string(), quantity: integer }));
export type ResourceAmount = Form<typeof resourceAmounts>[number];
export const shortage = () =>
  z.strictObject({ resource: z.string(), requested: integer, used: integer, capacity: integer });
/** A resource that the asked pod lacks: `requested` is more than `capacity` less `used`. */
export type Shortage = Form<typeof shortage>;

const qosClass = () => z.enum(["Guaranteed", "Burstable", "BestEffort"]);
export type PodQos = Form<typeof qosClass>;

export const victim = () =>
  z.strictObject({
    ...podRef.shape,
    qos: qosClass(),
    priority: integer.nullable().describe("spec.priority of the pod; null: the pod has none, which differs from 0"),
    frees: resourceAmounts().describe(
      "for each resource that is short, the amount that the preemption of the pod frees according to the kubelet's calculation",
    ),
  });
/** A pod whose end would free something. */
export type Victim = Form<typeof victim>;

/** The maximum number of distances in one answer. */
export const MAX_DISTANCES = 10_000;
const pick = () =>
  z
    .strictObject({
      open: resourceAmounts().describe("the amounts that were still to be freed before this choice"),
      chosen: podRef,
      distance: z
        .number()
        .describe(
          "the sum over the resources in `open` of (the amount that is still open after the pod is preempted / the open amount)^2; 0: the pod frees all amounts",
        ),
      tied: z
        .array(podRef)
        .describe(
          "the pods with the same distance as the chosen pod, from which only the order of the list distinguishes it (in the kubelet, the random order of a Go map)",
        ),
      distances: z
        .array(z.number().nullable())
        .nullable()
        .describe(
          `the distance of each candidate of the round, null for a candidate that is already chosen; null in place of the list: the answer already has ${MAX_DISTANCES} distances`,
        ),
    })
    .describe("the choice of one pod to preempt");
export type PreemptionPick = Form<typeof pick>;
const round = () =>
  z.strictObject({
    qos: qosClass(),
    assumedGone: z.array(qosClass()).describe("the QoS classes all of whose pods this round assumes to be removed"),
    need: resourceAmounts().describe("the amounts that the round has to free"),
    candidates: z
      .array(z.strictObject({ ...podRef.shape, memory: integer, cpu: integer }))
      .describe(
        "the candidates of the round; empty if there was nothing to free. Of candidates with the same distance, the one with less memory is chosen, then the one with less CPU, then the one listed last",
      ),
    picks: z.array(pick()),
  });
export type PreemptionRound = Form<typeof round>;
export type PreemptionCandidate = PreemptionRound["candidates"][number];

const victimSet = () =>
  z.strictObject({
    pods: z.array(victim()),
    frees: resourceAmounts().describe("the amounts that the pods free together"),
    cost: z
      .number()
      .describe(
        "the cost of the set in requests: the sum of freed / needed over the needed resources, without the resource pods",
      ),
  });
export type VictimSet = Form<typeof victimSet>;
const betterSets = () =>
  z
    .strictObject({
      fewestPods: victimSet()
        .nullable()
        .describe(
          "the set with the fewest pods and, among these, the lowest cost; null: it is no better than the kubelet's set",
        ),
      leastRequests: victimSet()
        .nullable()
        .describe(
          "the set with the lowest cost and, among these, the fewest pods; null: it is no better than the kubelet's set",
        ),
      exact: z
        .strictObject({ fewestPods: z.boolean(), leastRequests: z.boolean() })
        .describe("false: the search ended after `bound` steps, and a better set may exist"),
      bound: integer,
    })
    .describe("better sets of pods to preempt, chosen without regard to QoS classes; null: there is none");
export type BetterSets = Form<typeof betterSets>;

export const counterfactuals = () =>
  z
    .array(
      z.strictObject({
        code: z.enum([
          "fewer_pods_would_do",
          "smaller_pods_would_do",
          "lower_request_admits",
          "lower_request_spares_all",
          "no_request_helps",
        ]),
        numbers,
      }),
    )
    .describe("the smallest changes that change the answer");
/** A change that would change the answer: a stable code and its numbers. */
export type Counterfactual = Form<typeof counterfactuals>[number];

/** The reason of a critical pod for which no room can be made. kubelet 1.36: predicateAdmitHandler.Admit. */
export const NOT_RECOVERED = "UnexpectedAdmissionError";

export const PREEMPTION_REASONS = [
  ...REASONS_OF_PODS,
  "asked_again",
  "candidates",
  "ended_pods",
  "extended_resource_not_counted",
  "host_port_taken",
  "nearest",
  "not_allocated",
  "not_critical",
  "part_of_claims",
  "pod_has_ended",
  "priority_of_class",
  "resource_fits",
  "resource_short",
  "search_cut_short",
  "taint_not_tolerated",
  "tied",
] as const;
export const ofPreemption = () =>
  z.strictObject({
    critical: z.boolean(),
    need: resourceAmounts(),
    preempt: z
      .array(victim())
      .describe(
        "the preempted pods in the order in which the kubelet kills them: BestEffort, Burstable, Guaranteed; empty if `error` is set",
      ),
    error: z
      .string()
      .nullable()
      .describe("the kubelet's message if not enough can be freed; null: enough can be freed"),
    unmet: resourceAmounts().describe("the amounts that are not freed even if every candidate is preempted"),
    candidates: integer.describe("the number of pods that may be preempted"),
    rounds: z.array(round()),
    better: betterSets().nullable(),
  });
/** How the kubelet makes room for a critical pod. */
export type Preemption = Form<typeof ofPreemption>;

/** The decision of the kind `preemption`. */
const preemptionDecision = z.lazy(() =>
  z.strictObject({
    ...ofPreemption().shape,
    pod: podRef,
    admit: z.boolean(),
    shortages: z.array(shortage()),
    remainingReasons: z
      .array(z.string())
      .describe(
        "the reasons for which the pod is refused whatever is freed; for a pod that is not critical, all reasons",
      ),
    counterfactuals: counterfactuals(),
  }),
);
export type PreemptionDecision = Form<typeof preemptionDecision>;

/** Who is ended for the asked pod. */
export const preemptedPods = ({ preempt }: Pick<Preemption, "preempt">): readonly PodPart[] =>
  preempt.map(({ namespace, name, uid }) => ({ pod: { namespace, name, uid } }));

/** The reason in the event and the status of each pod that is ended for another. kubelet 1.36: events.PreemptContainer. */
const PREEMPTING = "Preempting";
export const preemptingReason = (preempt: readonly unknown[]): string | null =>
  preempt.length > 0 ? PREEMPTING : null;

export const preemption = {
  decides: "which pods are preempted for a critical pod, and which others would have sufficed",
  ask: {
    decode: decodePreemptionAsk,
    schema: { name: "PreemptionAsk", form: ask },
    pod: "object",
  },
  decision: preemptionDecision,
  reasons: PREEMPTION_REASONS,
  reasonOf: ({ admit, preempt, remainingReasons: [first = NOT_RECOVERED] }: PreemptionDecision) =>
    admit ? preemptingReason(preempt) : first,
  podPartsOf: preemptedPods,
  facts: null,
  traits: { ...PLAIN, pods: "overhead", whatIf: "not-asked", nodePage: "not-drawn", up: "not-asked", collected: null },
} as const satisfies KindSpec;
