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
      .describe("the kubelet's words, as in the pod's event; the status puts `Pod was rejected: ` before them"),
    shown: z.boolean().describe("it is the one that the kubelet shows: the first"),
  });
export type WouldRefuse = Form<typeof wouldRefuse>;
export const testedResource = () =>
  z.strictObject({ ...shortage().shape, insufficient: integer.describe("0: it fits") });
/** A resource that was tested. */
export type TestedResource = Form<typeof testedResource>;

/** The decision of the kind `admission`. */
export const admissionDecision = z.lazy(() =>
  z.strictObject({
    pod: podRef,
    onNode: z
      .boolean()
      .describe(
        "it is on the node already: answered as at the kubelet's restart, with its allocated resources, and not counted twice",
      ),
    startErrors: texts.describe(
      "why a kubelet with these managers would not start, in its words; then nobody is admitted",
    ),
    critical: z.boolean(),
    admit: z.boolean(),
    reason: answerText.describe("of the pod's status and event; empty when it is admitted"),
    message: answerText.describe("the kubelet's words; empty when it is admitted"),
    preempt: z
      .array(victim())
      .describe("pods that are ended for it, in kill order; also where a later handler refuses it all the same"),
    wouldRefuse: z
      .array(wouldRefuse())
      .describe("every reason of every handler, in the kubelet's order; each of them alone refuses"),
    resources: z.array(testedResource()),
    preemption: ofPreemption()
      .nullable()
      .describe(
        "how room was made, or why it could not be; null for a pod that is not critical, and where nothing is short",
      ),
    counterfactuals: counterfactuals(),
    assigned: managersAssigned()
      .nullable()
      .describe("what the resource managers would give its containers; null where they were not asked, or refuse"),
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
