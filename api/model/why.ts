import * as z from "zod";
import { admissionDecision } from "./admission.ts";
import { cgroupValues } from "./cgroups.ts";
import { claimsDecision } from "./claims.ts";
import { VERDICTS } from "./decision.ts";
import { evictionDecision } from "./eviction.ts";
import { FINDING_CODES, type FindingCode, NUMBERS, numberOrNull, textOrNull, when } from "./finding-numbers.ts";
import { answerText, type Form, integer, numbers, podRef } from "./forms.ts";
import { imageGcDecision } from "./image-gc.ts";
import { comparison } from "./outcome.ts";
import { probesDecision } from "./probes-decision.ts";
import { resizeDecision } from "./resize.ts";

/** Where a message of the kubelet, the scheduler or the runtime was found; `outcome`: an act of a kubelet that a collector observed. */
const WORD_SOURCES = ["status", "condition", "container", "event", "outcome", "decision"] as const;
const word = () =>
  z
    .strictObject({
      from: z.enum(WORD_SOURCES),
      reason: answerText,
      message: answerText,
      at: when,
      count: integer.describe("how often the message was reported"),
    })
    .describe("a message of the kubelet or of another component, word for word");
export type Word = Form<typeof word>;
/** Whether only a recorded decision is known, with no message about what a kubelet did. */
export const isOnlyDecided = (words: readonly Word[]): boolean =>
  words.length > 0 && words.every(({ from }) => from === "decision");

export const admissionExcerptForm = () =>
  admissionDecision.unwrap().pick({
    pod: true,
    onNode: true,
    admit: true,
    reason: true,
    message: true,
    preempt: true,
    wouldRefuse: true,
    resources: true,
    counterfactuals: true,
  });

/** The part of each kind's decision that an explanation contains. */
const EXCERPTS = {
  claims: () => {
    const { pods, allocationFaults } = claimsDecision.unwrap().shape;
    return pods.element.extend({ allocationFaults });
  },
  admission: admissionExcerptForm,
  resize: () =>
    resizeDecision
      .unwrap()
      .shape.resizes.element.omit({ actuation: true })
      .extend({
        place: integer.describe(
          "the position of the resize among those that wait on the node, in the kubelet's order; 1: the first",
        ),
        of: integer.describe("the number of resizes that wait on the node"),
      }),
  eviction: () =>
    z.strictObject({
      ...evictionDecision.unwrap().pick({ thresholds: true, evicted: true, forecast: true }).shape,
      ranking: evictionDecision
        .unwrap()
        .shape.rankings.element.nullable()
        .describe("the eviction ranking for the resource of the finding: its first pods, and the explained pod"),
    }),
  cgroups: () =>
    z.strictObject({
      container: textOrNull.describe("the container's name; null: the cgroup of the pod"),
      values: cgroupValues,
    }),
  probes: () => {
    const { containers, findings } = probesDecision.unwrap().shape;
    const container = containers.element;
    return z.strictObject({
      container: answerText,
      firstRestartAtMs: container.shape.firstRestartAtMs.describe(
        "the time of the first restart in milliseconds after the start, if every attempt fails",
      ),
      probes: z.array(container.shape.probes.element.omit({ attempts: true, results: true, onHold: true })),
      findings,
    });
  },
  "image-gc": () => {
    const { policy, fileSystem, remove, keep } = imageGcDecision.unwrap().shape;
    return z.strictObject({
      policy,
      fileSystem,
      image: z
        .union([remove.element, keep.element])
        .nullable()
        .describe("the image as image garbage collection lists it; null: the node does not have the image"),
      removes: integer.describe("the number of images that image garbage collection would remove now"),
    });
  },
};
type DecisionName = keyof typeof EXCERPTS;
const decisionHead = () => ({
  node: textOrNull,
  policyVersion: answerText,
  verdict: z.enum(VERDICTS),
  basis: z
    .enum(["documents", "snapshot", "recorded"])
    .describe(
      "what the decision was made on; documents: the posted documents, which give the node's state at `at` as far as they contain it; snapshot: a NodeSnapshot of that time; recorded: the history contains the decision",
    ),
  at: when.describe("the time of the state that the decision is about, RFC 3339"),
  agrees: z
    .boolean()
    .nullable()
    .describe("true: the decision agrees with what the kubelet did; null: there is nothing to compare it with"),
  differs: textOrNull.describe(
    "the first difference from what the kubelet did, which may be a number although `agrees` is true; null: there is none",
  ),
  assumed: z.array(answerText).describe("the inputs that were assumed because no document contains them"),
});
type Head = Form<typeof headForm>;
const headForm = () => z.strictObject(decisionHead());
/** A decision behind a finding: its kind, its result, and the part of it that is about the pod. */
export type PodExplanationDecision = {
  readonly [K in DecisionName]: Head & { readonly kind: K; readonly excerpt: Form<(typeof EXCERPTS)[K]> };
}[DecisionName];
export type ExcerptOf<K extends DecisionName> = Extract<PodExplanationDecision, { readonly kind: K }>["excerpt"];

const CHANGE_CODES = [
  "fewer_pods_would_do",
  "smaller_pods_would_do",
  "lower_request_admits",
  "lower_request_spares_all",
  "no_request_helps",
  "fits_now",
  "rank_of_pod",
  "request_covers_usage",
  "storage_limit",
  "memory_limit",
  "cpu_limit",
  "no_cpu_limit",
  "critical_only_by_critical",
  "probe_timeout",
  "probe_threshold",
  "startup_probe",
  "probe_setting",
  "image_pull_policy",
  "image_gc_threshold",
  "resize_at_most",
  "resize_terminating",
  "resize_shrinks",
  "resize_leave",
  "resize_setting",
  "resize_restart_policy",
  "resize_anew",
  "claim_made",
  "claim_allocated",
  "claim_devices",
  "claim_reserved",
  "claim_of_pod",
  "driver_registered",
  "older_claim_ends",
  "driver_answers",
  "pressure_ends",
] as const;
const change = () => z.strictObject({ code: z.enum(CHANGE_CODES), numbers });
/** A change that would change the finding: a stable code and its numbers. */
export type Change = Form<typeof change>;

const next = () =>
  z
    .strictObject({
      pod: podRef,
      fate: z.enum(["evicted", "preempted"]),
      place: integer.describe("the position in the order of eviction or preemption; 1: the first"),
      resource: textOrNull,
      usage: numberOrNull,
      request: numberOrNull,
    })
    .describe("a pod that would be evicted or preempted next for the same reason");
export type Next = Form<typeof next>;

/** The documents that may be missing. */
const PIECES = [
  "pod",
  "pods",
  "node",
  "events",
  "kubeletConfiguration",
  "stats",
  "cpu.stat",
  "memory.peak",
  "images",
  "containers",
  "resourceClaims",
  "resourceSlices",
  "deviceClasses",
  "state files",
  "machine",
  "history",
] as const;
export type Piece = (typeof PIECES)[number];
const missing = () =>
  z.strictObject({
    piece: z.enum(PIECES),
    why: answerText.describe("what the missing document would show"),
    command: answerText.describe("the command that prints the missing document"),
  });
export type Missing = Form<typeof missing>;

const FINDING = () => ({
  since: when,
  container: textOrNull,
  words: z.array(word()),
  compared: comparison
    .nullable()
    .describe(
      "the history's comparison of what the kubelet did with the decision at that time; null: the history has none",
    ),
  whatWouldChange: z.array(change()),
  next: z.array(next()),
  missing: z.array(missing()),
});
const findingHead = () => z.strictObject(FINDING());
/** One state of the pod, since when, the messages about it, the decisions behind it, what would change it, and which pods are next. */
export type Finding = {
  readonly [C in FindingCode]: Form<typeof findingHead> & {
    readonly code: C;
    readonly numbers: Readonly<{
      [N in keyof ReturnType<(typeof NUMBERS)[C]>]: NumberOf<ReturnType<(typeof NUMBERS)[C]>[N]>;
    }>;
    readonly decisions: readonly PodExplanationDecision[];
  };
}[FindingCode];
type NumberOf<S> = S extends z.ZodType ? Form<S> : never;
export type FindingOf<C extends FindingCode> = Extract<Finding, { readonly code: C }>;

/** Findings about a pod without problems. */
export const CALM_CODES: ReadonlySet<FindingCode> = new Set(["completed", "healthy", "restarted"]);
/** Whether a finding needs no action. A terminating pod needs none until it is overdue. */
export const isCalm = (finding: Finding): boolean =>
  CALM_CODES.has(finding.code) || (finding.code === "terminating" && finding.numbers.overdueSeconds === null);

const unused = () =>
  z.strictObject({
    origin: answerText.describe("the document that was not used, such as pods.json: items[3]"),
    what: answerText,
    why: answerText,
  });
export type Unused = Form<typeof unused>;

const explainedPod = () =>
  z.strictObject({
    ...podRef.shape,
    node: textOrNull,
    phase: textOrNull,
    qosClass: textOrNull,
    priority: integer.nullable(),
    owner: textOrNull.describe("the pod's controller, such as ReplicaSet/web-7d9f"),
    createdAt: when,
    restarts: integer,
  });
export type ExplainedPod = Form<typeof explainedPod>;
const podExplanationHead = () =>
  z.strictObject({
    pod: explainedPod(),
    asOf: when.describe("the time at which the live cluster was read, else the latest time in the documents"),
    missing: z.array(missing()).describe("the documents that are missing, over all findings"),
    notes: z.array(answerText).describe("how the documents were read"),
    unused: z.array(unused()),
  });
/** Everything known about a pod; at least one finding, the worst first. */
export type PodExplanation = Form<typeof podExplanationHead> & { readonly findings: readonly Finding[] };

const listed = () =>
  z.strictObject({
    pod: explainedPod(),
    code: z.enum(FINDING_CODES),
    since: when,
    container: textOrNull,
    reason: answerText,
    message: answerText,
    more: integer.describe("the number of further findings about the pod"),
  });
export type ListedPodExplanation = Form<typeof listed>;
const podExplanationList = () =>
  z.strictObject({
    stories: z.array(listed()).describe("the pods that have findings, the worst finding first"),
    pods: integer.describe("the number of pods that were checked"),
    calm: integer.describe("the number of checked pods without a problem"),
    unknown: integer.describe(
      "the number of checked pods without a problem in the inputs that were available, which were not all inputs",
    ),
    missing: z.array(missing()).describe("the documents that are missing"),
    asOf: when,
    unused: z.array(unused()),
  });
export type PodExplanationList = Form<typeof podExplanationList>;

/** The forms of the responses, for the API's document and for checks of real responses. */
export const podExplanationDecisionForm = z.lazy(() => {
  const head = decisionHead();
  const excerpts = Object.entries(EXCERPTS).map(([kind, excerpt]) =>
    z.strictObject({ kind: z.literal(kind), ...head, excerpt: excerpt() }),
  );
  return z.discriminatedUnion("kind", excerpts as [(typeof excerpts)[0], ...typeof excerpts]);
});
const podExplanation = z.lazy(() => {
  const common = { ...FINDING(), decisions: z.array(podExplanationDecisionForm) };
  const findings = FINDING_CODES.map((code) =>
    z.strictObject({ code: z.literal(code), ...common, numbers: z.strictObject(NUMBERS[code]()) }),
  );
  const finding = z.discriminatedUnion("code", findings as [(typeof findings)[0], ...typeof findings]);
  return z.strictObject({ ...podExplanationHead().shape, findings: z.array(finding).min(1) });
});
/** The numbers of a finding depend on its code, which zod cannot express. */
export const podExplanationForm = podExplanation as unknown as z.ZodType<PodExplanation>;
export const podExplanationListForm = z.lazy(podExplanationList);
