import { fieldsOf } from "../../base/own.ts";
import { PREEMPTED, SHUTDOWN } from "../../model/end-reasons.ts";
import { BY_KUBELET, type StarvedResource } from "../../model/eviction.ts";
import type { EVICTION_CAUSES } from "../../model/finding-numbers.ts";
import type { ObservedEvent } from "../../model/observed.ts";
import type { Change, Finding, FindingOf, Missing, Next, PodExplanationDecision, Word } from "../../model/why.ts";
import { effectiveSnapshot } from "../../profiles/effective.ts";
import { statusWithinMs } from "../agreement/node-state.ts";
import { rfc3339 } from "../timestamp.ts";
import { type LocatedSnapshot, snapshotOf } from "./evidence.ts";
import { evictionExcerpt, listsSubject, nextOf, rankChanges } from "./excerpts.ts";
import { ask, nodeAt } from "./node-at.ts";
import {
  conditionOf,
  containersNow,
  finding,
  isSubject,
  latest,
  missing,
  statsOf,
  summaryOf,
  timeOf,
  type WhyContext,
  wordOf,
  wordOfCondition,
  wordOfEvent,
} from "./why-context.ts";

type Cause = (typeof EVICTION_CAUSES)[number];
type Numbers = FindingOf<"evicted">["numbers"];

/** Parses the kubelet's message about an eviction. kubelet 1.36: evictionMessage, and the formats of local storage. */
function numbersIn(message: string): Numbers {
  const resource = /low on resource: ([\w-]+)\./.exec(message)?.[1] ?? null;
  const [, threshold = null, available = null] =
    /Threshold quantity: ([^,]+), available: (\S+)\. /.exec(`${message} `) ?? [];
  const containers = Array.from(
    message.matchAll(/(?:Container|Pod) (\S+) was using ([^,]+), request is ([^,]+), has larger consumption/g),
    ([, name = "", usage = "", request = ""]) => ({ name, usage, request }),
  );
  const none = { resource, threshold, available, containers };
  if (resource !== null) return { cause: "node-resource", limit: null, ...none };
  const limits: readonly (readonly [Cause, RegExp])[] = [
    ["emptyDir", /^Usage of EmptyDir volume "([^"]*)" exceeds the limit "([^"]*)"/],
    [
      "pod-ephemeral-storage",
      /^Pod ephemeral local storage usage exceeds the total limit of containers()\s+(\S+)\.\s*$/,
    ],
    ["container-ephemeral-storage", /^Container (\S+) exceeded its local ephemeral storage limit "([^"]*)"/],
  ];
  for (const [cause, form] of limits) {
    const [, name, limit] = form.exec(message) ?? [];
    if (limit === undefined) continue;
    const over = name === undefined || name === "" ? [] : [{ name, usage: "", request: "" }];
    return { cause, ...none, resource: "ephemeral-storage", limit, containers: over };
  }
  return { cause: "unknown", limit: null, ...none };
}

interface Eviction {
  readonly message: string;
  readonly since: string | null;
  readonly words: readonly Word[];
  /** The snapshot that the recorded decision was made on; null if the history has none. */
  readonly stored: LocatedSnapshot | null;
}

const isEviction = ({ reason, message, type }: ObservedEvent): boolean =>
  reason === "Evicted" && type !== "Normal" && !message.startsWith("The node had condition: ");

/** Other reasons that the condition DisruptionTarget also reports. */
const OTHER_ENDS: readonly string[] = [PREEMPTED, SHUTDOWN];

/** A pod whose containers exit with 0 has no reason in its status; its event and its condition show the eviction. */
function evictionOf(of: WhyContext): Eviction | null {
  const { status } = of.subject.pod ?? {};
  const event = of.subject.events.findLast(isEviction);
  const condition = disruptionOf(of);
  // a snapshot keeps the condition without its message, so the condition does not show the resource
  const byKubelet =
    condition?.reason === BY_KUBELET &&
    (condition.message ?? "") !== "" &&
    !OTHER_ENDS.includes(condition.message ?? "");
  const message = status?.message ?? "";
  const isReported = status?.reason === "Evicted" && !/^(?:Pod was rejected: )?The node had condition: /.test(message);
  const recorded = recordedEviction(of);
  if (event === undefined && !byKubelet && !isReported && recorded === null) return null;
  if (!isReported && !byKubelet && hasRunSince(of, event?.last ?? recorded?.since ?? null)) return null;
  const words = [
    ...(isReported ? [wordOf("status", "Evicted", message)] : []),
    ...(event === undefined ? [] : [wordOfEvent(event)]),
    ...(byKubelet && condition !== undefined ? [wordOfCondition(condition)] : []),
    ...(recorded === null ? [] : recorded.words),
  ];
  return {
    message:
      event?.message ?? (isReported ? message : byKubelet ? (condition?.message ?? "") : (recorded?.message ?? "")),
    since: event?.last ?? (byKubelet ? condition?.lastTransitionTime : undefined) ?? recorded?.since ?? endOf(of),
    words,
    stored: recorded?.stored ?? null,
  };
}

export const disruptionOf = (of: WhyContext) => {
  const condition = conditionOf(of, "DisruptionTarget");
  return condition?.status === "True" ? condition : undefined;
};

/** Longer than a pod takes to terminate, ms. */
const ENDED_WITHIN_MS = 120_000;

/**
 * Whether the pod ran after `since`. A static pod comes back under the same uid, so what happened before it started is over. A pod
 * that runs in a snapshot taken minutes later was not evicted, whatever was decided here.
 */
export function hasRunSince(of: WhyContext, since: string | null): boolean {
  const { pod, held } = of.subject;
  if (pod?.status?.phase !== "Running") return false;
  const seenMs = disruptionOf(of) === undefined ? (held?.snapshot?.atMs ?? 0) : 0;
  if (seenMs > timeOf(since) + ENDED_WITHIN_MS) return true;
  return containersNow(of).some(({ status }) => timeOf(status?.state?.running?.startedAt) > timeOf(since));
}

const endOf = (of: WhyContext): string | null =>
  latest(...containersNow(of).map(({ status }) => status?.state?.terminated?.finishedAt));

function recordedEviction(of: WhyContext): Eviction | null {
  for (const record of of.evidence.decisions.toReversed()) {
    const evicted = record.kind === "eviction" ? record.decision["evicted"] : undefined;
    const own = (Array.isArray(evicted) ? evicted.map(fieldsOf) : []).find(({ pod }) => listsSubject(of, [pod]));
    if (own === undefined) continue;
    const message = String(own["message"] ?? "");
    const stored = snapshotOf(of.evidence, record);
    const since = stored?.atMs == null ? record.decidedAt : rfc3339(stored.atMs);
    return { message, since, words: [wordOf("decision", "Evicted", message, since)], stored };
  }
  return null;
}

/** The finding for a pod that the kubelet evicted: its message and numbers, and the ranking at that time if stats of that time exist. */
export function evicted(of: WhyContext): Finding | null {
  const eviction = evictionOf(of);
  if (eviction === null) return null;
  const numbers = numbersIn(eviction.message);
  const asked = of.decides
    ? askRanking(of, eviction, numbers)
    : { decisions: [], whatWouldChange: [], next: [], missing: [] };
  return finding("evicted", { since: eviction.since, words: eviction.words, numbers, ...asked });
}

interface Ranked {
  readonly decisions: readonly PodExplanationDecision[];
  readonly whatWouldChange: readonly Change[];
  readonly next: readonly Next[];
  readonly missing: readonly Missing[];
}

function askRanking(of: WhyContext, { since, stored }: Eviction, numbers: Numbers): Ranked {
  const { cause, resource, limit, containers } = numbers;
  const ofLimit: readonly Change[] =
    limit === null
      ? []
      : [{ code: "storage_limit", numbers: { cause, limit, ...(containers[0] && { name: containers[0].name }) } }];
  const ofRequest = containers
    .filter(({ usage }) => usage !== "")
    .map(({ name, usage, request }) => ({
      code: "request_covers_usage" as const,
      numbers: { name, usage, request, resource: resource ?? "" },
    }));
  const without: Ranked = {
    decisions: [],
    whatWouldChange: [...ofRequest, ...ofLimit],
    next: [],
    missing: eventsMissing(of),
  };
  const compares = cause === "node-resource" ? "rank" : "limit";
  const ranked = rankingAt(of, { atMs: timeOf(since), resource, compares, stored });
  if ("missing" in ranked) return { ...without, missing: [...without.missing, ...ranked.missing] };
  const { decision, isOfThen, next, changes } = ranked;
  return {
    decisions: isOfThen ? [decision] : [],
    whatWouldChange: [...without.whatWouldChange, ...(isOfThen ? changes : [])],
    next,
    missing: isOfThen
      ? without.missing
      : [...without.missing, missing(of, "history", "the stats of then, and with them the ranking")],
  };
}

const eventsMissing = (of: WhyContext): readonly Missing[] =>
  of.subject.events.length > 0 ? [] : [missing(of, "events", "when it was, with the kubelet's numbers")];

export interface Ranking {
  readonly decision: Extract<PodExplanationDecision, { readonly kind: "eviction" }>;
  /** The stats were taken before the pod ended, so the ranking has the pod. */
  readonly isOfThen: boolean;
  /** The kubelet reports what it found on the node within this time, ms. */
  readonly reportedWithinMs: number;
  readonly next: readonly Next[];
  readonly changes: readonly Change[];
}

interface RankingAsked {
  /** Epoch ms; null for now. */
  readonly atMs: number | null;
  readonly resource: string | null;
  /** What the ranking is compared with: an eviction by rank, or for a limit of the pod's own; null if nothing was evicted. */
  readonly compares: "rank" | "limit" | null;
  readonly stored: LocatedSnapshot | null;
}
/** The current eviction order, for a pod that was not evicted. */
export const rankingNow = (of: WhyContext, resource: string | null): ReturnType<typeof rankingAt> =>
  rankingAt(of, { atMs: null, resource, compares: null, stored: null });

/**
 * Decides the eviction order from the latest stats before a time (from a snapshot or a separate document), or else from any stats
 * there are.
 */
function rankingAt(
  of: WhyContext,
  { atMs, resource, compares, stored: snapshot }: RankingAsked,
): Ranking | { readonly missing: readonly Missing[] } {
  const { evidence, subject } = of;
  const { node } = subject;
  if (node === null) return { missing: [missing(of, "pod", "on which node it was")] };
  const stats = statsAt(of);
  const stored = nodeAt(evidence, { node, atMs, with: subject.ref, stored: snapshot });
  const isStored = stored.ok && stored.value.basis === "snapshot";
  if (stats === null && !isStored)
    return { missing: [missing(of, "stats", "the usage of each pod, and which pod is evicted next")] };
  const isOfThen = isStored || stats?.hasSubject === true;
  const statsMs = stats?.atMs ?? null;
  const nodeState = isStored
    ? stored
    : nodeAt(evidence, { node, atMs: statsMs, ...(isOfThen ? { with: subject.ref } : { without: subject.ref }) });
  if (!nodeState.ok) return { missing: [missing(of, "stats", `it cannot be decided on: ${nodeState.error}`)] };
  const { observedAt = statsMs === null ? undefined : rfc3339(statsMs), ...rest } = nodeState.value.snapshot;
  const timed = observedAt === undefined ? nodeState.value : { ...nodeState.value, snapshot: { ...rest, observedAt } };
  const name = `${subject.ref.namespace}/${subject.ref.name}`;
  const asked = ask("eviction", timed, isOfThen ? { pod: name } : undefined);
  const answered = asked.ok ? asked : ask("eviction", timed, undefined);
  if (!answered.ok) return { missing: [missing(of, "stats", answered.error.message)] };
  const { decided, head } = answered.value;
  const excerpt = evictionExcerpt(of, decided.decision, resource);
  const lacks = [...nodeState.value.lacks].flatMap((piece) =>
    piece === "pods" || piece === "kubeletConfiguration" ? [piece] : [],
  );
  const isCompared = compares !== null && isOfThen && !lacks.includes("pods");
  const first = excerpt.ranking?.pods.find(({ critical }) => !critical)?.pod;
  const chosen = compares === "limit" ? excerpt.evicted.find(({ pod }) => isSubject(of, pod))?.pod : first;
  const agrees = isCompared ? chosen !== undefined && isSubject(of, chosen) : null;
  const other = first === undefined ? "no pod" : `${first.namespace}/${first.name}`;
  const differs =
    agrees === false
      ? compares === "limit"
        ? "its limits were not passed by these stats"
        : `${other} would have been evicted first`
      : null;
  return {
    decision: { kind: "eviction", ...head, agrees, differs, excerpt },
    isOfThen,
    reportedWithinMs: statusWithinMs(effectiveSnapshot(nodeState.value.snapshot)),
    next: nextOf(of, excerpt.ranking),
    changes: rankChanges(excerpt.ranking),
  };
}

/** When the node's stats were taken, and whether they include the pod. */
function statsAt(of: WhyContext): { readonly atMs: number; readonly hasSubject: boolean } | null {
  const summary = summaryOf(of);
  if (summary === null) return null;
  const atMs = timeOf(summary.node?.memory?.time) || timeOf(summary.node?.cpu?.time);
  return { atMs, hasSubject: statsOf(of) !== null };
}

/** The resource that each node condition is about. */
export const RESOURCE_OF: Readonly<Record<string, StarvedResource>> = {
  MemoryPressure: "memory",
  DiskPressure: "ephemeral-storage",
  PIDPressure: "pids",
};
