import { PREEMPTED, SHUTDOWN } from "../../model/end-reasons.ts";
import { BY_KUBELET } from "../../model/eviction.ts";
import { namespacedName } from "../../model/forms.ts";
import { SYSTEM_PRIORITY_CLASSES } from "../../model/pod.ts";
import type { Finding, Missing, PodExplanationDecision } from "../../model/why.ts";
import { rfc3339 } from "../timestamp.ts";
import { disruptionOf, hasRunSince } from "./evicted.ts";
import type { Evidence, ObservedPodAt } from "./evidence.ts";
import { admissionExcerpt, listsSubject, recordedAdmission } from "./excerpts.ts";
import { podsIn } from "./find-pod.ts";
import { ask, nodeAt, readyOf } from "./node-at.ts";
import { asNew } from "./refused.ts";
import {
  cut,
  eventsOf,
  finding,
  isSubject,
  isWord,
  missing,
  observed,
  timeOf,
  type WhyContext,
  wordOf,
  wordOfCondition,
  wordOfEvent,
} from "./why-context.ts";

/** kubelet 1.36: CriticalPodAdmissionHandler. The status has this reason unless all containers exited with 0. */
const PREEMPTING = "Preempting";

/** A pod that the kubelet preempted for a critical pod, and for which one: decided again for each critical pod that came at that time. */
export function preempted(of: WhyContext): Finding | null {
  const { status } = of.subject.pod ?? {};
  const event = eventsOf(of, PREEMPTING).at(-1);
  const condition = disruptionOf(of);
  const isReported = condition?.reason === BY_KUBELET && condition.message === PREEMPTED;
  const isReason = status?.reason === PREEMPTING;
  if (event === undefined && !isReported && !isReason) return recordedPreemption(of);
  const since = event?.last ?? (isReported ? (condition?.lastTransitionTime ?? null) : null);
  if (!isReported && !isReason && hasRunSince(of, since)) return null;
  const words = [
    ...(isReason ? [wordOf("status", status?.reason, status?.message)] : []),
    ...(event === undefined ? [] : [wordOfEvent(event)]),
    ...(isReported && condition !== undefined ? [wordOfCondition(condition)] : []),
  ];
  const asked = of.decides ? findPreemptor(of, timeOf(since)) : { by: null, decisions: [], missing: [] };
  const { by, decisions, missing: lacks } = asked;
  const changes = decisions.flatMap(({ kind, excerpt }) => (kind === "admission" ? excerpt.counterfactuals : []));
  return finding("preempted", {
    since,
    words,
    numbers: { by },
    decisions,
    whatWouldChange: [...changes, { code: "critical_only_by_critical", numbers: {} }],
    missing: lacks,
  });
}

/** The preemption in the recorded history, used if no Kubernetes object shows one. */
function recordedPreemption(of: WhyContext): Finding | null {
  const last = of.evidence.decisions.findLast(
    ({ kind, decision }) => kind === "admission" && listsSubject(of, decision["preempt"]),
  );
  if (last === undefined || hasRunSince(of, last.lastDecidedAt)) return null;
  const decision = recordedAdmission(last);
  return finding("preempted", {
    since: last.decidedAt,
    words: [wordOf("decision", PREEMPTING, "Preempted in order to admit critical pod", last.decidedAt)],
    numbers: { by: last.pod },
    decisions: decision === null ? [] : [decision],
    whatWouldChange: decision?.kind === "admission" ? decision.excerpt.counterfactuals : [],
  });
}

interface PreemptorEvidence {
  readonly by: ObservedPodAt["ref"] | null;
  readonly decisions: readonly PodExplanationDecision[];
  readonly missing: readonly Missing[];
}

/** A preemptor starts some seconds after its victims are told to stop: their grace period, and the time until its status is written. */
const SOON_MS = 120_000;

function findPreemptor(of: WhyContext, atMs: number): PreemptorEvidence {
  const { evidence, subject } = of;
  const { node } = subject;
  if (node === null || subject.held === null)
    return { by: null, decisions: [], missing: [missing(of, "pod", "on which node it was")] };
  const critical = podsIn(evidence).flatMap(({ held }) =>
    held !== null && held.node === node && admittedAround(evidence, held, atMs) ? [held] : [],
  );
  if (critical.length === 0) {
    return { by: null, decisions: [], missing: [missing(of, "pods", "which critical pod came in then")] };
  }
  const answers = critical.flatMap((held) => askAbout(of, held, node, atMs));
  const found = answers.find(({ takes }) => takes) ?? answers[0];
  if (found === undefined)
    return { by: critical[0]?.ref ?? null, decisions: [], missing: [missing(of, "node", "what it can give")] };
  return { by: found.takes || critical.length === 1 ? found.by : null, decisions: [found.decision], missing: [] };
}

const CRITICAL = Math.min(...SYSTEM_PRIORITY_CLASSES.values());
/** Whether a pod is critical and came at about that time. */
function admittedAround({ outcomes }: Evidence, held: ObservedPodAt, atMs: number): boolean {
  const read = observed(held);
  if (!read.ok) return false;
  const { metadata, spec, status } = read.value;
  const created = timeOf(metadata.creationTimestamp);
  const admission = outcomes.find(({ outcome: { kind, pod } }) => kind === "admission" && pod.uid === held.ref.uid);
  const started = timeOf(status?.startTime ?? admission?.outcome.at) || created;
  const isCritical = (spec?.priority ?? 0) >= CRITICAL || SYSTEM_PRIORITY_CLASSES.has(spec?.priorityClassName ?? "");
  return isCritical && created <= atMs + 1000 && started >= atMs - 1000 && started <= atMs + SOON_MS;
}

function askAbout(of: WhyContext, held: ObservedPodAt, node: string, atMs: number) {
  const nodeThen = nodeAt(of.evidence, { node, atMs, with: of.subject.ref, without: held.ref });
  if (!nodeThen.ok) return [];
  const asked = ask("admission", nodeThen.value, { pod: asNew(held.value) });
  if (!asked.ok) return [];
  const { decided, head } = asked.value;
  const { preempt, preemption } = decided.decision;
  const named = preempt.map(namespacedName).join(", ");
  const isVictim = preempt.some((victim) => isSubject(of, victim));
  // the order of a Go map decides between pods that are equally close and equally large
  const isTied = (preemption?.rounds ?? []).some(({ picks }) =>
    picks.some(({ tied }) => tied.some((pod) => isSubject(of, pod))),
  );
  const takes = isVictim || isTied;
  const differs = isVictim
    ? null
    : preempt.length === 0
      ? "no pod would have been preempted"
      : isTied
        ? `${named} could have been preempted as well: a kubelet chooses any of them`
        : `${named} would have been preempted instead`;
  const decision: PodExplanationDecision = {
    kind: "admission",
    ...head,
    agrees: takes,
    differs,
    excerpt: admissionExcerpt(decided.decision),
  };
  return [{ by: held.ref, takes, decision }];
}

/** Findings about what ended the pod or is about to. `isExplained`: a finding about the node's resources already explains the end. */
export function ended(of: WhyContext, isExplained: boolean): readonly Finding[] {
  const { pod } = of.subject;
  const { reason = "", message = "", phase } = pod?.status ?? {};
  const said = wordOf("status", reason, message);
  const condition = disruptionOf(of);
  const found: Finding[] = [];
  if (message === SHUTDOWN || condition?.message === SHUTDOWN) {
    const words = [said, ...(condition === undefined ? [] : [wordOfCondition(condition)])].filter(isWord);
    found.push(finding("node-shutdown", { since: condition?.lastTransitionTime ?? null, words, numbers: {} }));
  } else if (
    condition !== undefined &&
    (condition.reason !== BY_KUBELET || (!isExplained && (condition.message ?? "") === ""))
  ) {
    const by = condition.reason ?? "";
    const words = [wordOfCondition(condition), ...eventsOf(of, "Preempted", "TaintManagerEviction").map(wordOfEvent)];
    found.push(finding("disrupted", { since: condition.lastTransitionTime ?? null, words, numbers: { by } }));
  }
  if (reason === "DeadlineExceeded") {
    const activeDeadlineSeconds = pod?.spec?.activeDeadlineSeconds ?? null;
    found.push(finding("deadline-exceeded", { since: null, words: [said], numbers: { activeDeadlineSeconds } }));
  }
  const ready = phase === "Succeeded" || phase === "Failed" ? null : readyOf(of.evidence, of.subject.node);
  if (ready !== null || reason === "NodeLost") {
    const words = [said, wordOf("condition", ready?.reason, ready?.message, ready?.since)].filter(isWord);
    const numbers = { node: of.subject.node ?? "", ready: ready?.status ?? "" };
    found.push(finding("node-lost", { since: ready?.since ?? null, words, numbers }));
  }
  return [...found, ...terminating(of)];
}

function terminating(of: WhyContext): readonly Finding[] {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = of.subject.pod?.metadata ?? {};
  if (deletionTimestamp === undefined) return [];
  const graceSeconds = deletionGracePeriodSeconds ?? null;
  // the API server writes the time by which the pod must be gone
  const overdueMs = of.asOfMs - timeOf(deletionTimestamp);
  const overdueSeconds = of.asOfMs > 0 && overdueMs > 0 ? Math.round(overdueMs / 1000) : null;
  const since = rfc3339(timeOf(deletionTimestamp) - (graceSeconds ?? 0) * 1000);
  const words = eventsOf(of, "Killing", "FailedKillPod", "FailedPreStopHook").slice(-2).map(wordOfEvent);
  const shown = [...finalizers].map(cut);
  return [finding("terminating", { since, words, numbers: { graceSeconds, finalizers: shown, overdueSeconds } })];
}
