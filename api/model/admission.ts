import * as z from "zod";
import { answerText, type Form, integer, podRef, texts } from "./forms.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";
import { podAsk } from "./pod-ask.ts";
import {
  counterfactuals,
  ofPreemption,
  PREEMPTION_REASONS,
  preemptedPods,
  preemptingReason,
  shortage,
  victim,
} from "./preemption.ts";
import { managersAssigned } from "./topology.ts";

/** The kubelet's admission handlers in their order; the one for resizes is not asked when a pod is admitted. */
const ADMISSION_HANDLERS = [
  "eviction",
  "sysctl",
  "resources",
  "predicates",
  "app-armor",
  "pod-features",
  "declared-features",
  "shutdown",
] as const;
export type AdmissionHandler = (typeof ADMISSION_HANDLERS)[number];

const ADMISSION_REASONS = [
  ...PREEMPTION_REASONS,
  "kubelet_does_not_start",
  "node_under_pressure",
  "preempted_in_vain",
  "safe_since_kernel",
] as const;

export const wouldRefuse = () =>
  z.strictObject({
    handler: z.enum(ADMISSION_HANDLERS),
    reason: z.string(),
    message: z
      .string()
      .describe("the kubelet's message, as in the pod's event; the pod's status has `Pod was rejected: ` before it"),
    shown: z.boolean().describe("true: the kubelet reports this reason, which is the first"),
  });
export type WouldRefuse = Form<typeof wouldRefuse>;
export const testedResource = () =>
  z.strictObject({
    ...shortage().shape,
    insufficient: integer.describe("the amount that is missing; 0: the resource fits"),
  });
/** A resource that was tested. */
export type TestedResource = Form<typeof testedResource>;

/** The decision of the kind `admission`. */
export const admissionDecision = z.lazy(() =>
  z.strictObject({
    pod: podRef,
    onNode: z
      .boolean()
      .describe(
        "true: the pod is already on the node; the decision is that of the kubelet after a restart, with the pod's allocated resources, and the pod is not counted twice",
      ),
    startErrors: texts.describe(
      "the kubelet's messages if a kubelet with these resource managers does not start; it then admits no pod",
    ),
    critical: z.boolean(),
    admit: z.boolean(),
    reason: answerText.describe("the reason in the pod's status and event; empty: the pod is admitted"),
    message: answerText.describe("the kubelet's message; empty: the pod is admitted"),
    preempt: z
      .array(victim())
      .describe(
        "the pods that the kubelet preempts for the pod, in the order in which it kills them, even if a later handler refuses the pod",
      ),
    wouldRefuse: z
      .array(wouldRefuse())
      .describe(
        "every reason of every admission handler, in the kubelet's order; each of them is enough to refuse the pod",
      ),
    resources: z.array(testedResource()),
    preemption: ofPreemption()
      .nullable()
      .describe(
        "how preemption makes room for the pod, or why it cannot; null: the pod is not critical, or no resource is short",
      ),
    counterfactuals: counterfactuals(),
    assigned: managersAssigned()
      .nullable()
      .describe(
        "what the resource managers assign to the pod's containers; null: the managers were not asked, or refuse the pod",
      ),
  }),
);
export type AdmissionDecision = Form<typeof admissionDecision>;

export const admission = {
  decides: "whether the kubelet admits a pod, with every reason to refuse it",
  ask: podAsk,
  decision: admissionDecision,
  reasons: ADMISSION_REASONS,
  reasonOf: ({ reason, preempt }: AdmissionDecision) => (reason === "" ? preemptingReason(preempt) : reason),
  podPartsOf: preemptedPods,
  facts: null,
  traits: {
    ...PLAIN,
    pods: "overhead",
    defaultsConfiguration: true,
    managers: "asked",
    assumesNoDevices: "unlisted",
    whatIf: "admission",
    nodePage: "not-drawn",
    up: "not-asked",
    collected: null,
  },
} as const satisfies KindSpec;
