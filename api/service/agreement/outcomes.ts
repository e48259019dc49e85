import * as z from "zod";
import { withoutNulls } from "../../base/nulls.ts";
import { fieldsOf } from "../../base/own.ts";
import { PREPARE_FAILED } from "../../model/claims.ts";
import { POD_REFUSALS, PREEMPTED, PREEMPTING } from "../../model/end-reasons.ts";
import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import { isTimestamp } from "../../model/fields.ts";
import type { PodRef } from "../../model/forms.ts";
import type { Outcome, OutcomeOf } from "../../model/outcome.ts";
import { MIRROR_ANNOTATION, type Pod, pod as podForm, REJECTED } from "../../model/pod.ts";
import { withDefaultRequests } from "../../model/pod-defaults.ts";
import { usesClaims } from "../../model/resource-claim.ts";

/**
 * Finds a kubelet's outcomes in what a watch reports: pods and nodes before and after a change, events, and image lists. An
 * outcome keeps of a pod only what decisions read: no environment variables, no commands. Objects that do not have the form of
 * their kind are ignored.
 */

const time = z.string().refine(isTimestamp);
const maybe = <S extends z.ZodType>(schema: S) => schema.nullish().catch(null);
const words = z.string().catch("");

const condition = z.object({
  type: z.string(),
  status: words,
  reason: words,
  message: words,
  lastTransitionTime: maybe(time),
  observedGeneration: maybe(z.number()),
});
const containerStatus = z.object({
  name: z.string(),
  state: maybe(z.object({ running: maybe(z.object({ startedAt: maybe(time) })) })),
});
const watchedPod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string().catch("default"),
    uid: z.string(),
    annotations: maybe(z.record(z.string(), z.string())),
  }),
  status: z.object({
    phase: words,
    reason: words,
    message: words,
    startTime: maybe(time),
    conditions: maybe(z.array(condition)),
    containerStatuses: maybe(z.array(containerStatus)),
    initContainerStatuses: maybe(z.array(containerStatus)),
  }),
});
type WatchedPod = z.output<typeof watchedPod>;

const REFUSALS: ReadonlySet<string> = new Set(POD_REFUSALS);
/** A refusal because of pressure has the same reason as an eviction. kubelet 1.36: nodeConditionMessageFmt. */
const UNDER_PRESSURE = "The node had condition: ";
const EVICTED =
  /^(?:The node was low on resource: |Container \S+ exceeded its local ephemeral storage limit |Pod ephemeral local storage usage |Usage of EmptyDir volume )/;
const KILLED = /^(?:Init container|Container) (\S+) failed (liveness|startup) probe(?:, will be restarted)?$/;

const objectOf = (raw: unknown): { readonly object: Pod } | undefined => {
  const parsed = podForm.safeParse(withoutNulls(raw));
  return parsed.success ? { object: withDefaultRequests(parsed.data) } : undefined;
};
const refOf = ({ metadata: { namespace, name, uid, annotations } }: WatchedPod): PodRef => ({
  namespace,
  name,
  uid: annotations?.[MIRROR_ANNOTATION] ?? uid,
});
const latestOf = (times: readonly (string | null | undefined)[]): string | undefined =>
  times
    .filter((one) => typeof one === "string")
    .sort((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);

/**
 * The outcomes in a change of a pod. `before`: null if the watch saw the pod's creation, but not if the pod existed when the watch
 * began.
 */
export function podOutcomes(before: unknown, after: unknown): readonly Outcome[] {
  const now = watchedPod.safeParse(after);
  if (!now.success) return [];
  const then = watchedPod.safeParse(before);
  const was = then.success && then.data.metadata.uid === now.data.metadata.uid ? then.data : null;
  const shared = { pod: refOf(now.data), ...objectOf(after), seenIn: ["pod-status" as const] };
  return [
    ...admissionsIn(was, now.data).map((one) => ({ ...shared, ...one })),
    ...endsIn(was, now.data).map((one) => ({ ...shared, ...one })),
    ...resizesIn(was, now.data).map((one) => ({ ...shared, ...one })),
    ...(usesClaims(fieldsOf(after)) ? preparedIn(was, now.data) : []).map((one) => ({ ...shared, ...one })),
  ];
}
/** An outcome without the fields that all outcomes of one change share. */
type OutcomeFields<K extends Outcome["kind"]> = K extends unknown
  ? Omit<OutcomeOf<K>, "pod" | "object" | "seenIn">
  : never;

/** A refused pod gets no condition unless it ran before. kubelet 1.36: rejectPod. */
function admissionsIn(was: WatchedPod | null, { status }: WatchedPod): readonly OutcomeFields<"admission">[] {
  const { startTime, reason, message } = status;
  const isRefused = status.phase === "Failed" && message.startsWith(REJECTED);
  if (isRefused) {
    if (was?.status.phase === "Failed") return [];
    const ran = (status.conditions ?? []).length > 0;
    const at = ran ? latestOf((status.conditions ?? []).map((c) => c.lastTransitionTime)) : startTime;
    if (at === undefined || at === null || reason === "") return [];
    return [{ kind: "admission", at, admitted: false, reason, message: message.slice(REJECTED.length) }];
  }
  if (startTime === null || startTime === undefined || (was?.status.startTime ?? null) !== null) return [];
  return [{ kind: "admission", at: startTime, admitted: true, reason: "", message: "" }];
}

/** The end of a pod; a pod whose containers exit with 0 succeeds without a reason, but still has the condition. */
function endsIn(was: WatchedPod | null, now: WatchedPod): readonly OutcomeFields<"eviction" | "preemption">[] {
  const [before, after] = [was === null ? null : endOf(was), endOf(now)];
  if (after === null || before?.kind === after.kind || after.at === undefined) return [];
  return [{ kind: after.kind, at: after.at, message: after.message }];
}
interface End {
  readonly kind: "eviction" | "preemption";
  readonly at: string | undefined;
  readonly message: string;
}
function endOf({ status }: WatchedPod): End | null {
  const conditions = status.conditions ?? [];
  const target = conditions.find(({ type, status: is }) => type === "DisruptionTarget" && is === "True");
  const at = latestOf(target === undefined ? conditions.map((c) => c.lastTransitionTime) : [target.lastTransitionTime]);
  if (target?.message === PREEMPTED || status.reason === "Preempting")
    return { kind: "preemption", at, message: PREEMPTING };
  const message = [status.message, target?.message ?? ""].find((text) => EVICTED.test(text));
  return message === undefined ? null : { kind: "eviction", at, message };
}

function resizesIn(was: WatchedPod | null, now: WatchedPod): readonly OutcomeFields<"resize">[] {
  const pending = pendingIn(now);
  const before = was === null ? undefined : pendingIn(was);
  if (pending === undefined) return [];
  const { reason, message, lastTransitionTime: at, observedGeneration: generation } = pending;
  if (before?.reason === reason && before.observedGeneration === generation) return [];
  if ((reason !== "Deferred" && reason !== "Infeasible") || typeof at !== "string") return [];
  return [{ kind: "resize", at, reason, message, ...(typeof generation === "number" && { generation }) }];
}
const pendingIn = ({ status }: WatchedPod) =>
  status.conditions?.find(({ type, status: is }) => type === "PodResizePending" && is === "True");

/**
 * A kubelet prepares a pod's claims right before it creates the sandbox. kubelet 1.37: SyncPod,
 * GeneratePodReadyToStartContainersCondition.
 */
function preparedIn(was: WatchedPod | null, now: WatchedPod): readonly OutcomeFields<"claims">[] {
  const at = sandboxSince(now);
  if (at === undefined || (was !== null && sandboxSince(was) !== undefined)) return [];
  return [{ kind: "claims", at, prepared: true, message: "" }];
}
/** Since when the pod has a sandbox or a running container; undefined if it has none or does not report it. */
function sandboxSince({ status }: WatchedPod): string | undefined {
  const ready = status.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  if (ready?.status === "True") return ready.lastTransitionTime ?? undefined;
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return latestOf(all.map(({ state }) => state?.running?.startedAt));
}

const eventForm = z.object({
  reason: z.string(),
  message: maybe(z.string()),
  note: maybe(z.string()),
  involvedObject: maybe(z.unknown()),
  regarding: maybe(z.unknown()),
  firstTimestamp: maybe(time),
  lastTimestamp: maybe(time),
  deprecatedFirstTimestamp: maybe(time),
  deprecatedLastTimestamp: maybe(time),
  eventTime: maybe(time),
  source: maybe(z.object({ component: maybe(z.string()) })),
  reportingComponent: maybe(z.string()),
  reportingController: maybe(z.string()),
});
const involvedPod = z.object({
  kind: z.literal("Pod"),
  namespace: z.string().catch("default"),
  name: z.string(),
  uid: z.string(),
});

/** What is known about an event's pod when the event arrives. */
interface EventContext {
  /** The pod before the event, a v1.Pod. */
  readonly pod?: unknown;
  /** See `probeFailures`; null if unknown. */
  readonly failures?: number | null;
}

/** The outcomes in an event (v1.Event or events.k8s.io/v1); events of components other than the kubelet have none. */
export function eventOutcomes(event: unknown, { pod, failures }: EventContext = {}): readonly Outcome[] {
  const parsed = eventForm.safeParse(event);
  if (!parsed.success) return [];
  const { reason, source, reportingComponent, reportingController, ...rest } = parsed.data;
  const by = source?.component || reportingComponent || reportingController || "kubelet";
  const about = involvedPod.safeParse(rest.involvedObject ?? rest.regarding);
  if (by !== "kubelet" || !about.success) return [];
  const message = rest.message ?? rest.note ?? "";
  const first = rest.firstTimestamp ?? rest.deprecatedFirstTimestamp ?? rest.eventTime;
  const last = rest.lastTimestamp ?? rest.deprecatedLastTimestamp ?? rest.eventTime ?? first;
  if (typeof first !== "string" || typeof last !== "string") return [];
  const { namespace, name, uid } = about.data;
  const shared = { pod: { namespace, name, uid }, ...objectOf(pod), seenIn: ["event" as const] };
  const outcome =
    reasonReportedBy(reason, message, first) ??
    unpreparedBy(reason, message, last) ??
    killOf(reason, message, last, pod, failures ?? null);
  return outcome === null ? [] : [{ ...shared, ...outcome }];
}

function reasonReportedBy(
  reason: string,
  message: string,
  at: string,
): OutcomeFields<"admission" | "eviction" | "preemption" | "resize"> | null {
  if (reason === "Preempting") return { kind: "preemption", at, message };
  if (reason === "Evicted" && !message.startsWith(UNDER_PRESSURE)) return { kind: "eviction", at, message };
  if (reason === "Evicted" || REFUSALS.has(reason) || reason.startsWith("OutOf"))
    return { kind: "admission", at, admitted: false, reason, message };
  if (reason !== "ResizeDeferred" && reason !== "ResizeInfeasible") return null;
  return {
    kind: "resize",
    at,
    reason: reason === "ResizeDeferred" ? "Deferred" : "Infeasible",
    ...resizeText(message),
  };
}

/** `Pod resize OutOfcpu: {"containers":[...],"generation":2,"error":"Node didn't have ..."}`. kubelet 1.36: PodResizePendingMsg. */
function resizeText(message: string): { readonly message: string; readonly generation?: number } {
  try {
    const { error, generation } = JSON.parse(message.slice(message.indexOf("{"))) as Record<string, unknown>;
    return {
      message: typeof error === "string" ? error : "",
      ...(typeof generation === "number" && { generation }),
    };
  } catch {
    return { message };
  }
}

/** A kubelet retries, so the last time counts. The recorder combines more than ten messages into one event. client-go: EventAggregator. */
function unpreparedBy(reason: string, message: string, at: string): OutcomeFields<"claims"> | null {
  const own = message.replace(/^\(combined from similar events\): /, "");
  return reason === PREPARE_FAILED && own !== "" ? { kind: "claims", at, prepared: false, message: own } : null;
}

/** A kill in an event; a repeated message is the same event with a new time and a higher count. */
function killOf(
  reason: string,
  message: string,
  at: string,
  pod: unknown,
  failures: number | null,
): OutcomeFields<"probes"> | null {
  const [, container, probe] = (reason === "Killing" && KILLED.exec(message)) || [];
  if (container === undefined) return null;
  const known = watchedPod.safeParse(pod);
  const all = known.success
    ? [...(known.data.status.containerStatuses ?? []), ...(known.data.status.initContainerStatuses ?? [])]
    : [];
  const startedAt = all.find((one) => one.name === container)?.state?.running?.startedAt;
  const isEarlier = typeof startedAt === "string" && Date.parse(startedAt) <= Date.parse(at);
  return {
    kind: "probes",
    at,
    container,
    probe: probe as "liveness" | "startup",
    message,
    ...(failures !== null && { failures }),
    ...(isEarlier && { startedAt }),
  };
}

/** One state of an `Unhealthy` event, as the watch saw it. */
export interface Unhealthy {
  readonly message: string;
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}
const PROBE_WORD = { liveness: "Liveness", startup: "Startup" } as const;

/**
 * How often a probe failed since `sinceMs`, from the states of its `Unhealthy` events in any order. Null if an event began earlier
 * and no earlier state was seen, so its count since then is unknown.
 */
export function probeFailures(
  seen: readonly Unhealthy[],
  probe: keyof typeof PROBE_WORD,
  sinceMs: number,
): number | null {
  const own = seen.filter(({ message }) => message.startsWith(`${PROBE_WORD[probe]} probe `));
  let failures = 0;
  for (const states of Map.groupBy(own, ({ message, firstMs }) => `${firstMs} ${message}`).values()) {
    const most = Math.max(...states.map(({ count }) => count));
    const earlier = states.filter(({ lastMs }) => lastMs < sinceMs).map(({ count }) => count);
    if (earlier.length > 0) failures += most - Math.max(...earlier);
    else if ((states[0] as Unhealthy).firstMs < sinceMs) return null;
    else failures += most;
  }
  return failures;
}

const watchedNode = z.object({
  status: z.object({
    conditions: z.array(z.object({ ...condition.shape, lastHeartbeatTime: maybe(time) })),
    images: maybe(z.array(z.object({ names: maybe(z.array(z.string())), sizeBytes: maybe(z.number()) }))),
  }),
});
type WatchedNode = z.output<typeof watchedNode>["status"];

/** The pressure conditions of a node that changed, and the images that disappeared. */
export function nodeOutcomes(before: unknown, after: unknown): readonly OutcomeOf<"conditions" | "image-gc">[] {
  const [then, now] = [watchedNode.safeParse(before), watchedNode.safeParse(after)];
  if (!then.success || !now.success) return [];
  return [...changedConditions(then.data.status, now.data.status), ...imagesGoneIn(then.data.status, now.data.status)];
}

function changedConditions(then: WatchedNode, now: WatchedNode): readonly OutcomeOf<"conditions">[] {
  return PRESSURE_CONDITIONS.flatMap((type): readonly OutcomeOf<"conditions">[] => {
    const was = then.conditions.find((c) => c.type === type);
    const is = now.conditions.find((c) => c.type === type);
    if (was === undefined || is === undefined || was.status === is.status) return [];
    const { status, message, lastTransitionTime: at } = is;
    if (typeof at !== "string" || (status !== "True" && status !== "False")) return [];
    return [{ kind: "conditions", at, seenIn: ["node-status"], condition: type, status, message }];
  });
}

/** A node's status lists only the largest images. kubelet 1.36: nodeStatusMaxImages. */
const MAX_IMAGES_IN_MESSAGE = 50;

/** Images that disappeared, without the runtime's ids; none if the list may be incomplete. */
function imagesGoneIn(then: WatchedNode, now: WatchedNode): readonly OutcomeOf<"image-gc">[] {
  const [was, is] = [then.images ?? [], now.images ?? []];
  const [after, at] = [then, now].map(({ conditions }) => latestOf(conditions.map((c) => c.lastHeartbeatTime)));
  if (is.length === 0 || is.length >= MAX_IMAGES_IN_MESSAGE || was.length >= MAX_IMAGES_IN_MESSAGE) return [];
  const left = new Set(is.flatMap(({ names }) => names ?? []));
  const images = was
    .filter(({ names }) => (names ?? []).length > 0 && !(names ?? []).some((name) => left.has(name)))
    .map(({ names, sizeBytes }) => ({ names: names ?? [], ...(typeof sizeBytes === "number" && { sizeBytes }) }));
  if (images.length === 0 || after === undefined || at === undefined) return [];
  return [{ kind: "image-gc", at, after, seenIn: ["node-status"], images }];
}
