import { type Fields, fieldsOf } from "../../base/own.ts";
import type { AdmissionDecision } from "../../model/admission.ts";
import { REJECTED } from "../../model/pod.ts";
import type { Change, Finding, Missing, PodExplanationDecision, Word } from "../../model/why.ts";
import { admissionExcerpt, recordedAdmission } from "./excerpts.ts";
import { ask, type NodeAt, nodeAt } from "./node-at.ts";
import {
  conditionOf,
  containersNow,
  finding,
  isSubject,
  missing,
  timeOf,
  type WhyContext,
  wordOf,
  wordOfEvent,
} from "./why-context.ts";

/** The reasons of the kubelet's admission handlers other than `OutOf...`. */
const REASONS: ReadonlySet<string> = new Set([
  "UnexpectedAdmissionError",
  "NodeAffinity",
  "NodePorts",
  "NodeName",
  "NodeUnschedulable",
  "PodOSNotSupported",
  "PodOSSelectorNodeLabelDoesNotMatch",
  "TaintToleration",
  "SysctlForbidden",
  "TopologyAffinityError",
  "AppArmor",
  "PodLevelResourcesNotSupported",
  "PodFeatureUnsupported",
  "NodeShutdown",
  "InvalidNodeInfo",
  "UnexpectedPredicateFailureType",
]);
const isOfPressure = (message: string): boolean => message.startsWith("The node had condition: ");
const isReason = (reason: string, message: string): boolean =>
  REASONS.has(reason) || /^OutOf[a-z]/.test(reason) || (reason === "Evicted" && isOfPressure(message));

interface Refusal {
  readonly reason: string;
  /** The event's message. */
  readonly message: string;
  readonly since: string | null;
  readonly words: readonly Word[];
  /** The pod had run: a restarted kubelet admits its pods again. */
  readonly again: boolean;
  /** The recorded decision, used if no Kubernetes object shows the refusal. */
  readonly recorded: PodExplanationDecision | null;
}

function refusalOf(of: WhyContext): Refusal | null {
  const { pod } = of.subject;
  const { phase, reason = "", message = "", startTime } = pod?.status ?? {};
  const event = of.subject.events.findLast((one) => one.type !== "Normal" && isReason(one.reason, one.message));
  const detail = message.startsWith(REJECTED) ? message.slice(REJECTED.length) : message;
  const isReported = phase === "Failed" && (message.startsWith(REJECTED) || isReason(reason, detail));
  // a pod that was admitted after all has another explanation; one that ran and whose containers exited with 0 is Succeeded
  const isIn = phase === "Running" || (phase === "Pending" && of.subject.held?.snapshot === null);
  if (!isReported && (event === undefined || isIn)) return isIn ? null : recordedRefusal(of);
  const again = containersNow(of).some(({ status }) => status?.state?.terminated?.startedAt !== undefined);
  const since = event?.last ?? (again ? conditionOf(of, "Ready")?.lastTransitionTime : startTime) ?? null;
  const said = event === undefined ? [] : [wordOfEvent(event)];
  const common = { since, again, recorded: null };
  if (!isReported) return { reason: event?.reason ?? "", message: event?.message ?? "", words: said, ...common };
  return { reason, message: detail, words: [wordOf("status", reason, message, since), ...said], ...common };
}

/** The refusal in the history, if the last recorded decision about the pod is one. */
function recordedRefusal(of: WhyContext): Refusal | null {
  const last = of.evidence.decisions.findLast(
    ({ kind, pod }) => kind === "admission" && pod !== null && isSubject(of, pod),
  );
  if (last?.verdict !== "refused") return null;
  const [reason, message] = [last.decision["reason"], last.decision["message"]].map(String) as [string, string];
  const since = last.decidedAt;
  const words = [wordOf("decision", reason, message, since)];
  return { reason, message, since, words, again: last.decision["onNode"] === true, recorded: recordedAdmission(last) };
}

/** The finding for a pod that the kubelet refused: the decision of its admission handlers, made again for the time of the refusal. */
export function refused(of: WhyContext): Finding | null {
  const refusal = refusalOf(of);
  if (refusal === null) return null;
  const { resource = null, numbers } = shortageIn(refusal.message);
  const asked = of.decides ? (answerOf(refusal.recorded) ?? askAgain(of, refusal)) : NOTHING;
  return finding("refused", {
    since: refusal.since,
    words: refusal.words,
    numbers: { again: refusal.again, resource, ...numbers },
    ...asked,
  });
}

/** `Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 1800`. kubelet 1.36: InsufficientResourceError. */
function shortageIn(message: string) {
  const [, resource, requested, used, capacity] =
    /resource: ([\w./-]+), requested: (\d+), used: (\d+), capacity: (\d+)/.exec(message) ?? [];
  const amount = (text: string | undefined): number | null => (text === undefined ? null : Number(text));
  return {
    ...(resource === undefined ? {} : { resource }),
    numbers: { requested: amount(requested), used: amount(used), capacity: amount(capacity) },
  };
}

interface AskedAgain {
  readonly decisions: readonly PodExplanationDecision[];
  readonly whatWouldChange: readonly Change[];
  readonly missing: readonly Missing[];
}
const NOTHING: AskedAgain = { decisions: [], whatWouldChange: [], missing: [] };

function answerOf(recorded: PodExplanationDecision | null): AskedAgain | null {
  if (recorded?.kind !== "admission") return null;
  return { ...NOTHING, decisions: [recorded], whatWouldChange: recorded.excerpt.counterfactuals };
}

function askAgain(of: WhyContext, { reason, message, since, again }: Refusal): AskedAgain {
  const { subject, evidence } = of;
  const lacks: Missing[] = [];
  if (subject.events.length === 0) lacks.push(missing(of, "events", "when it was, and what else happened"));
  if (subject.held === null) lacks.push(missing(of, "pod", "what it asked for"));
  if (subject.held === null || subject.node === null) return { ...NOTHING, missing: lacks };
  const atMs = since === null ? null : timeOf(since);
  const at = again ? { with: subject.ref } : { without: subject.ref };
  const then = nodeAt(evidence, { node: subject.node, atMs, ...at });
  if (!then.ok)
    return { ...NOTHING, missing: [...lacks, missing(of, "node", `it cannot be decided on: ${then.error}`)] };
  if (then.value.lacks.has("node")) lacks.push(missing(of, "node", "what the node can give"));
  if (then.value.lacks.has("pods")) lacks.push(missing(of, "pods", "what others held then"));
  if (then.value.lacks.has("node")) return { ...NOTHING, missing: lacks };
  const asked = admissionOf(of, then.value, again);
  if (!asked.ok) return { ...NOTHING, missing: [...lacks, missing(of, "node", asked.error)] };
  const { decision } = asked.value;
  const differs = differenceOf({ reason, message }, decision);
  const isSame = isAgreement(reason, decision);
  // the reason is the same but the amounts differ: other pods were there then
  const isOther = isSame && differs !== null;
  if (differs !== null && MANAGED.has(reason)) lacks.push(...stateFilesOf(of, message));
  else if (isOther || decision.admit) lacks.push(missing(of, "history", "which pods were there then"));
  const isOpen = isOther || (!isSame && (then.value.lacks.has("pods") || MANAGED.has(reason)));
  const excerpt = admissionExcerpt(decision);
  return {
    decisions: [
      {
        kind: "admission",
        ...asked.value.head,
        agrees: isOpen ? null : isSame,
        differs,
        excerpt,
      },
    ],
    whatWouldChange: [
      ...pressureEnds(message, subject.pod?.status?.qosClass ?? ""),
      ...(isOther ? smallerRequestByMessage(message, decision.counterfactuals) : decision.counterfactuals),
      ...(MANAGED.has(reason) ? [] : nowOf(of, then.value, again)),
    ],
    missing: lacks,
  };
}

/** The smaller request that fits by the amounts in the kubelet's message; other changes are left out. */
function smallerRequestByMessage(message: string, found: AdmissionDecision["counterfactuals"]): readonly Change[] {
  const { resource, numbers } = shortageIn(message);
  const { requested, used, capacity } = numbers;
  if (requested === null || used === null || capacity === null) return [];
  const atMost = Math.max(0, capacity - used);
  return found
    .filter((one) => one.code === "lower_request_admits" && one.numbers["resource"] === resource)
    .map(({ code, numbers }) => ({ code, numbers: { ...numbers, requested, atMost, less: requested - atMost } }));
}

/** kubelet 1.36: eviction managerImpl.Admit. */
function pressureEnds(message: string, qosClass: string): readonly Change[] {
  const conditions = /^The node had condition: \[([^\]]*)\]/.exec(message)?.[1];
  return conditions === undefined ? [] : [{ code: "pressure_ends", numbers: { conditions, qosClass } }];
}

/** Reasons of refusals by the CPU, memory and device managers, whose state no Kubernetes object shows. */
const MANAGED: ReadonlySet<string> = new Set(["UnexpectedAdmissionError", "TopologyAffinityError"]);

/** The missing state files of the manager that refused, which the message identifies: CPU, memory or device manager. */
function stateFilesOf(of: WhyContext, message: string): readonly Missing[] {
  const why = "what others held (a file on the node)";
  const files: readonly (readonly [RegExp, string])[] = [
    [/\bcpus?\b/, "cpu_manager_state"],
    [/\bmemory\b/, "memory_manager_state"],
    [/\bdevices?\b/, "device-plugins/kubelet_internal_checkpoint"],
  ];
  const named = files.filter(([form]) => form.test(message));
  return (named.length > 0 ? named : files).map(([, file]) => missing(of, "state files", why, file));
}

const isAgreement = (reason: string, decision: { readonly admit: boolean; readonly reason: string }): boolean =>
  !decision.admit && decision.reason === reason;

type StatusReason = { readonly reason: string; readonly message: string };

/** The first difference between a decision and the kubelet's message; null if both are identical. */
export function differenceOf(real: StatusReason, decision: StatusReason & { readonly admit: boolean }): string | null {
  if (decision.admit) return "it would have come in";
  if (decision.reason !== real.reason)
    return `reason ${decision.reason} in place of ${real.reason}: ${decision.message}`;
  if (decision.message.trim() === real.message.trim()) return null;
  const [was, is] = [real.message, decision.message].map((text) => text.split(", "));
  const at = is?.findIndex((part, i) => part !== was?.[i]) ?? -1;
  return `${is?.[at] ?? decision.message} in place of ${was?.[at] ?? real.message}`;
}

/** Decides the admission of the explained pod, as a new pod or as one that a restarted kubelet admits again. */
export function admissionOf(of: WhyContext, then: NodeAt, again: boolean) {
  const { held, ref } = of.subject;
  const asking = again ? `${ref.namespace}/${ref.name}` : asNew(held?.value ?? {});
  const asked = ask("admission", then, { pod: asking });
  if (!asked.ok) return { ok: false, error: asked.error.message } as const;
  const { decided, head } = asked.value;
  return { ok: true, value: { decision: decided.decision, head } } as const;
}

/** The pod as it was before the kubelet admitted it. */
export const asNew = (pod: Fields): Fields => ({
  ...pod,
  status: { phase: "Pending", qosClass: fieldsOf(pod["status"])["qosClass"] },
});

/** Whether the pod would be admitted now, if the documents are later than the refusal. */
function nowOf(of: WhyContext, then: NodeAt, again: boolean): readonly Change[] {
  const { subject, evidence } = of;
  if (again || then.lacks.has("pods")) return [];
  const now = nodeAt(evidence, { node: then.node, atMs: null, without: subject.ref });
  if (!now.ok) return [];
  const asked = admissionOf(of, now.value, false);
  if (!asked.ok || !asked.value.decision.admit) return [];
  return [{ code: "fits_now", numbers: { node: then.node } }];
}
