import { err, ok, type Result } from "../../base/result.ts";
import { SIGNALS } from "../../decide/eviction/threshold.ts";
import { prepareWords } from "../../model/claims.ts";
import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import { FINDING_CODES, type FindingCode } from "../../model/finding-numbers.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { OutcomeKind, PodOutcome } from "../../model/outcome.ts";
import {
  type ExplainedPod,
  type Finding,
  isCalm,
  type ListedPodExplanation,
  type Missing,
  type Piece,
  type PodExplanation,
  type PodExplanationDecision,
  type PodExplanationList,
  type Unused,
} from "../../model/why.ts";
import { headline } from "../../text/sentences/why.ts";
import { many } from "../../text/sentences/words.ts";
import { shellWord } from "../../text/shell-word.ts";
import { LONGEST_PASS_MS } from "../agreement/pressure.ts";
import { rfc3339 } from "../timestamp.ts";
import { asOfMs, contradictionIn, notesOf, othersOf } from "./consistency.ts";
import { endsOfContainers } from "./containers.ts";
import { ended, preempted } from "./disrupted.ts";
import { evicted, type Ranking, RESOURCE_OF, rankingNow } from "./evicted.ts";
import {
  type AdditionalEvidence,
  type Contradiction,
  type Evidence,
  evidenceOf,
  observedNode,
  type WhyDocument,
} from "./evidence.ts";
import {
  findPod,
  NO_PODS,
  type NoSubject,
  type PodName,
  podsIn,
  podsOfWorkload,
  type Subject,
  subjectOf,
  type Workload,
} from "./find-pod.ts";
import { isAdverse } from "./outcomes.ts";
import { probingOf } from "./probing.ts";
import { refused } from "./refused.ts";
import { resizeOf } from "./resized.ts";
import { startOf } from "./starting.ts";
import { notChecked, readingsOf, throttledOf } from "./throttled.ts";
import {
  conditionOf,
  containersNow,
  finding,
  isSubject,
  missing,
  summaryOf,
  timeOf,
  type WhyContext,
  wordOf,
  wordOfCondition,
  wordOfEvent,
} from "./why-context.ts";

export type PodExplanationFailure = NoSubject | (Contradiction & { readonly near?: readonly string[] });

/**
 * The explanation of a pod from documents of any kind and order: its state, since when, the decisions behind it, what would change it,
 * and which pods are next. Errors: no such pod, several of that name, or contradicting documents.
 */
export function explainPod(
  documents: readonly WhyDocument[],
  name: PodName,
  additional?: AdditionalEvidence,
): Result<PodExplanation, PodExplanationFailure> {
  const evidence = evidenceOf(documents, additional);
  if (!evidence.ok) return evidence;
  const subject = findPod(evidence.value, name);
  if (!subject.ok) return subject;
  const contradiction = contradictionIn(evidence.value, subject.value);
  if (contradiction !== null) return err({ code: "contradicting_documents", message: contradiction });
  const of: WhyContext = {
    evidence: evidence.value,
    subject: subject.value,
    asOfMs: asOfMs(evidence.value),
    decides: true,
  };
  const findings = findingsOf(of);
  return ok({
    pod: podOf(subject.value),
    asOf: of.asOfMs === 0 ? null : rfc3339(of.asOfMs),
    findings,
    missing: withUnread(of, unique([...findings.flatMap((one) => one.missing), ...podMissing(of)])),
    notes: notesOf(of, findings),
    unused: [...evidence.value.unused, ...othersOf(of), ...readingsOf(of).unused],
  });
}

/** The pods that have an explanation, worst first; with a workload, only its pods. Errors: contradicting documents, or no such pod in them. */
export function explainPods(
  documents: readonly WhyDocument[],
  namespace: string | null,
  additional?: AdditionalEvidence,
  workload: Workload | null = null,
): Result<PodExplanationList, PodExplanationFailure> {
  const evidence = evidenceOf(documents, additional);
  if (!evidence.ok) return evidence;
  const everywhere = podsIn(evidence.value);
  if (everywhere.length === 0) return err(NO_PODS);
  const here = everywhere.filter(({ ref }) => namespace === null || ref.namespace === namespace);
  if (here.length === 0) {
    const near = [...new Set(everywhere.map(({ ref }) => ref.namespace))].sort().slice(0, 3);
    const message = `the documents tell of no pod in namespace ${namespace}; they tell of pods in ${near.join(", ")}`;
    return err({ code: "no_such_pod", message, near });
  }
  const owned = workload === null ? ok(here) : podsOfWorkload(here, workload);
  if (!owned.ok) return owned;
  const all = owned.value;
  const asOf = asOfMs(evidence.value);
  const unreadable: Unused[] = [];
  const cases = all.flatMap((candidate): readonly WhyContext[] => {
    const subject = subjectOf(evidence.value, candidate);
    if (subject.ok) return [{ evidence: evidence.value, subject: subject.value, asOfMs: asOf, decides: false }];
    unreadable.push({ origin: candidate.held?.place ?? "", what: "a v1.Pod", why: subject.error.message });
    return [];
  });
  const subjects = cases.map((of) => ({ of, findings: findingsOf(of) }));
  const quiet = subjects.filter(({ findings }) => findings.every((one) => one.code === "unknown" || isCalm(one)));
  const silent = quiet.filter(({ findings }) => findings.some(({ code }) => code === "unknown")).map(({ of }) => of);
  const limited = quiet.filter(({ of }) => notChecked(of).length > 0).map(({ of }) => of);
  const unknown = new Set([...silent, ...limited]).size;
  return ok({
    stories: subjects.flatMap(({ of, findings }) => listedOf(of, findings)).toSorted(byUrgency),
    pods: all.length,
    calm: quiet.length - unknown,
    unknown,
    missing: [
      ...ofOne("stats", throttlingText(limited.length), limited),
      ...ofOne("events", silentText(silent.length), silent),
    ],
    asOf: asOf === 0 ? null : rfc3339(asOf),
    unused: [...evidence.value.unused, ...unreadable, ...unusedStats(evidence.value, cases)],
  });
}

const throttlingText = (pods: number): string =>
  `throttling was not checked for ${many(pods, "pod")} with a CPU limit: that needs each kubelet's /stats/summary, or a cpu.stat; name one pod`;
const silentText = (pods: number): string =>
  `the input does not show the state of ${many(pods, "pod")}; name one pod to see which input does`;
/** A missing piece that is needed for one pod, if there is such a pod. */
function ofOne(piece: Piece, why: string, [first]: readonly WhyContext[]): readonly Missing[] {
  if (first === undefined) return [];
  const { namespace, name } = first.subject.ref;
  return [{ piece, why, command: `nodewise why ${shellWord(`${namespace}/${name}`)}` }];
}

/** The cpu.stat documents that belong to no pod. */
function unusedStats({ cpuStats }: Evidence, cases: readonly WhyContext[]): readonly Unused[] {
  const all = cases.map((of) => new Map(readingsOf(of).unused.map((one) => [one.origin, one])));
  return cpuStats.flatMap(({ origin }) => {
    const whys = all.map((unused) => unused.get(origin));
    return whys.includes(undefined) ? [] : whys.slice(0, 1).filter((one) => one !== undefined);
  });
}

function byUrgency(a: ListedPodExplanation, b: ListedPodExplanation): number {
  const worse = rank(a.code) - rank(b.code) || timeOf(b.since) - timeOf(a.since);
  const [x, y] = [a, b].map(({ pod }) => `${pod.namespace}/${pod.name}`);
  return worse || ((x as string) < (y as string) ? -1 : 1);
}

/** The pod's worst finding; none if nothing needs action, or nothing is known. */
function listedOf(of: WhyContext, findings: readonly Finding[]): readonly ListedPodExplanation[] {
  const bad = findings.filter((one) => one.code !== "unknown" && !isCalm(one));
  const [first] = bad;
  if (first === undefined) return [];
  const { code, since, container, words } = first;
  // a finding from numbers alone has no message
  const { reason = "", message = headline(first) } = words[0] ?? {};
  return [{ pod: podOf(of.subject), code, since, container, reason, message, more: bad.length - 1 }];
}

const rank = (code: FindingCode): number => FINDING_CODES.indexOf(code);

/** All findings, worst first, without those that are consequences of a worse one. */
function findingsOf(of: WhyContext): readonly Finding[] {
  const fates = [evicted(of), preempted(of), refused(of)].filter((one) => one !== null);
  const isRefused = fates.some(({ code }) => code === "refused");
  const others = isRefused
    ? []
    : [...endsOfContainers(of), ...startOf(of), ...probingOf(of), ...resizeOf(of), ...throttledOf(of)];
  const all = [...fates, ...ended(of, fates.length > 0), ...others, ...(isRefused ? [] : pressureOf(of))];
  const sorted = withoutConsequences(all).toSorted(
    (a, b) => rank(a.code) - rank(b.code) || timeOf(b.since) - timeOf(a.since),
  );
  const isSettled = sorted.some(({ code }) => code !== "restarted");
  // a pod that runs again is not unknown
  const calm = isSettled ? [] : healthyFindings(of).filter(({ code }) => code !== "unknown" || sorted.length === 0);
  const findings = [...sorted, ...calm].toSorted((a, b) => rank(a.code) - rank(b.code));
  return findings.map((one) => withComparison(of, of.evidence.hasAllEvents ? withoutEvents(one) : one));
}

/** Events that were read and do not exist are not reported as missing. */
const withoutEvents = (one: Finding): Finding => ({
  ...one,
  missing: one.missing.filter(({ piece }) => piece !== "events"),
});

/** Removes ends of containers that a probe or the end of the pod caused. */
function withoutConsequences(all: readonly Finding[]): readonly Finding[] {
  const codes = new Set(all.map(({ code }) => code));
  const isEnded = (["evicted", "preempted", "disrupted", "node-shutdown", "deadline-exceeded"] as const).some((code) =>
    codes.has(code),
  );
  const probed = new Set(all.flatMap(({ code, container }) => (code === "restarted-by-probe" ? [container] : [])));
  return all.filter(({ code, container }) => {
    if (code === "failed" || code === "restarted") return !isEnded && !probed.has(container);
    return code !== "not-ready" || !codes.has("node-lost");
  });
}

function pressureOf(of: WhyContext): readonly Finding[] {
  const { node, pod } = of.subject;
  const phase = pod?.status?.phase;
  const held = node === null ? undefined : of.evidence.nodes.get(node);
  const read = held === undefined ? undefined : observedNode(held);
  if (pod === null || phase === "Succeeded" || phase === "Failed" || read?.ok !== true) return [];
  const conditions = (read.value.status?.conditions ?? []).filter(
    ({ type, status }) => (PRESSURE_CONDITIONS as readonly string[]).includes(type) && status === "True",
  );
  const [first] = conditions;
  if (first === undefined) return [];
  const ranked = of.decides ? rankingNow(of, RESOURCE_OF[first.type] ?? null) : { missing: [] };
  return [
    finding("under-pressure", {
      since: first.lastTransitionTime ?? null,
      words: conditions.map(wordOfCondition),
      numbers: { conditions: conditions.map(({ type }) => type) },
      ...("missing" in ranked ? { missing: ranked.missing } : rankingParts(ranked)),
    }),
  ];
}
const rankingParts = ({ decision, next, changes }: Ranking) => ({
  decisions: [decision],
  next,
  whatWouldChange: changes,
});

/** The conditions that the kubelet's next pass finds and has not reported yet; none if it finds no pressure. */
const conditionsSoon = (
  { asOfMs }: WhyContext,
  { decision: { verdict, at, excerpt }, reportedWithinMs }: Ranking,
): readonly string[] =>
  // with older stats, the kubelet would have reported it by now
  verdict === "calm" || asOfMs - timeOf(at) > LONGEST_PASS_MS + reportedWithinMs
    ? []
    : [...new Set(excerpt.thresholds.map(({ signal }) => SIGNALS[signal].condition))];

/** Findings about a pod without problems. */
function healthyFindings(of: WhyContext): readonly Finding[] {
  const { pod, events } = of.subject;
  const phase = pod?.status?.phase;
  const warned = events
    .filter(({ type }) => type === "Warning")
    .slice(-3)
    .map(wordOfEvent);
  const containers = containersNow(of).filter(({ isInit }) => !isInit);
  if (phase === "Succeeded") {
    const end = containers.flatMap(({ status }) => status?.state?.terminated ?? []).at(-1);
    const words = [wordOf("container", end?.reason, end?.message, end?.finishedAt ?? null)];
    return [finding("completed", { since: end?.finishedAt ?? null, words, numbers: {} })];
  }
  const ready = containers.filter(({ status }) => status?.ready === true).length;
  if (
    phase === "Running" &&
    (ready === containers.length || pod?.status?.containerStatuses?.[0]?.ready === undefined)
  ) {
    const ranked = of.decides && summaryOf(of) !== null ? rankingNow(of, "memory") : { missing: [] };
    const conditions = "missing" in ranked ? [] : conditionsSoon(of, ranked);
    if (!("missing" in ranked) && conditions.length > 0)
      return [finding("under-pressure", { since: null, numbers: { conditions }, ...rankingParts(ranked) })];
    return [
      finding("healthy", {
        since: conditionOf(of, "Ready")?.lastTransitionTime ?? pod?.status?.startTime ?? null,
        words: warned,
        numbers: { ready, containers: containers.length },
        ...("missing" in ranked ? {} : { decisions: [ranked.decision] }),
        missing: notChecked(of).map(({ name }) =>
          missing(of, "cpu.stat", `whether container ${name} is stopped at its CPU limit`, name),
        ),
      }),
    ];
  }
  const { reason, message } = pod?.status ?? {};
  const words = [wordOf("status", reason, message), ...warned].filter(
    (word) => word.reason !== "" || word.message !== "",
  );
  const lacks: readonly Missing[] = [
    ...(pod === null ? [missing(of, "pod", "its status")] : []),
    ...(events.length === 0 ? [missing(of, "events", "what happened to it")] : []),
  ];
  return [finding("unknown", { since: null, words, numbers: {}, missing: lacks })];
}

function podOf({ ref, pod, node }: Subject): ExplainedPod {
  const { metadata, spec, status } = pod ?? ({} as Partial<ObservedPod>);
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return {
    ...ref,
    node,
    phase: status?.phase ?? null,
    qosClass: status?.qosClass ?? null,
    priority: spec?.priority ?? null,
    owner: owner === undefined ? null : `${owner.kind}/${owner.name}`,
    createdAt: metadata?.creationTimestamp ?? null,
    restarts: statuses.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
  };
}

const podMissing = (of: WhyContext): readonly Missing[] =>
  of.subject.held === null ? [missing(of, "pod", "its status, and what it asks for")] : [];

/** Pieces that could not be read are listed with the reason, even if no finding needs them. */
function withUnread(of: WhyContext, lacks: readonly Missing[]): readonly Missing[] {
  const unread = of.evidence.unread.map(({ piece, why }) => missing(of, piece, `it could not be read: ${why}`));
  const explained = lacks.map((one) => {
    const why = unread.find(({ command }) => command === one.command)?.why;
    return why === undefined ? one : { ...one, why: `${one.why}; ${why}` };
  });
  return unique([...explained, ...unread]);
}

const unique = (all: readonly Missing[]): readonly Missing[] =>
  all.filter(({ command }, i) => all.findIndex((other) => other.command === command) === i);

/** The kind of outcome that each finding is about. */
const KIND_OF: Partial<Readonly<Record<FindingCode, OutcomeKind>>> = {
  evicted: "eviction",
  preempted: "preemption",
  refused: "admission",
  "resize-deferred": "resize",
  "resize-infeasible": "resize",
  "claims-not-prepared": "claims",
  "restarted-by-probe": "probes",
};

/**
 * The finding with the comparison recorded at that time, which had more information than a decision made now. If the new decision
 * gives a different result, whether it agrees is left open.
 */
function withComparison(of: WhyContext, finding: Finding): Finding {
  const kind = KIND_OF[finding.code];
  if (kind === undefined) return finding;
  const seen = of.evidence.outcomes.findLast(
    ({ outcome }) =>
      outcome.kind === kind && isAdverse(outcome) && isOf(finding, outcome) && isSubject(of, outcome.pod),
  );
  if (seen === undefined) return finding;
  const { comparison: compared } = seen;
  const isSame = ({ agrees }: PodExplanationDecision): boolean =>
    compared.verdict !== "not-comparable" && agrees === (compared.verdict === "agrees");
  const decisions = finding.decisions.map((one) => (isSame(one) ? one : { ...one, agrees: null, differs: null }));
  return { ...finding, compared, decisions } as Finding;
}

function isOf({ code, container, words }: Finding, outcome: PodOutcome): boolean {
  if (outcome.kind === "claims") {
    const { own } = prepareWords(outcome.message);
    return words.some(({ message }) => prepareWords(message).own === own);
  }
  if (outcome.kind === "resize") return code === `resize-${outcome.reason.toLowerCase()}`;
  return outcome.kind !== "probes" || outcome.container === container;
}
