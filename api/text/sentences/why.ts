import type { FindingCode } from "../../model/finding-numbers.ts";
import type { Counterfactual } from "../../model/preemption.ts";
import type { ProbeFindingCode } from "../../model/probes-decision.ts";
import { type Change, type Finding, type FindingOf, isOnlyDecided } from "../../model/why.ts";
import { amountText, boundText, humanBytes, quantityText } from "../size.ts";
import { durationText, timeText } from "../time-text.ts";
import { counterfactualSentences } from "./counterfactual.ts";
import { PROBE_FINDING } from "./probes.ts";
import { listed, many, namesText, ordinal } from "./words.ts";

type Headline<C extends FindingCode> = (finding: FindingOf<C>) => string;

const inContainer = (container: string | null): string => (container === null ? "" : `container ${container} `);
const restartsText = (restarts: number): string => (restarts === 0 ? "" : `, ${many(restarts, "restart")}`);
const exitText = (exitCode: number | null): string => {
  if (exitCode === null) return "";
  const signal = SIGNALS[exitCode];
  return signal === undefined ? ` with ${exitCode}` : ` with ${exitCode} (${signal})`;
};
/** The exit codes of processes that a signal ends. */
const SIGNALS: Readonly<Record<number, string>> = {
  134: "SIGABRT",
  137: "SIGKILL: the kernel because memory was short, or the kubelet after the grace period",
  139: "SIGSEGV",
  143: "SIGTERM",
};
const milli = (cpu: number): string => amountText("cpu", Math.round(cpu));
const percent = (part: number, whole: number): string => `${Math.round((part / whole) * 100)} %`;

const resourcesText = ({ resources }: FindingOf<"resize-deferred">["numbers"]): string =>
  resources.length === 0
    ? ""
    : `: ${listed(resources.map(({ container, resource, from, to }) => `${container} ${resource} ${from === "" ? "none" : from} -> ${to}`))}`;

/** Where a kubelet ends a pod for its own use of local storage. */
const LIMIT: Readonly<Record<string, string>> = {
  emptyDir: "an emptyDir held more than its sizeLimit",
  "pod-ephemeral-storage": "it took more local storage than its containers' limits together",
  "container-ephemeral-storage": "a container took more local storage than its limit",
};

/** Why a resize can never be, for each cause. */
const INFEASIBLE: Readonly<Record<FindingOf<"resize-infeasible">["numbers"]["cause"], string>> = {
  capacity: "the node can never give what is asked for",
  "cpu-manager-policy": "a Guaranteed pod keeps the CPU that it started with where the CPU manager's policy is static",
  "memory-manager-policy":
    "a Guaranteed pod keeps the memory that it started with where the memory manager's policy is Static",
  swap: "memory of a container that may use swap does not change while it runs",
  "memory-volume": "the node does not resize an emptyDir in memory while its pod runs",
  "feature-gate": "a feature gate of the node's kubelet is off",
  "static-pod": "a static pod is as its manifest has it",
  platform: "the node resizes no pod that runs",
  "not-resizable": "a resize may not change this",
  unknown: "the kubelet will not do it",
};

/** A headline for each finding. */
const HEADLINES: { readonly [C in FindingCode]: Headline<C> } = {
  evicted: ({ words, numbers: { cause, resource, limit } }) => {
    if (isOnlyDecided(words)) return "a recorded decision chose it; no report of a kubelet about it is known";
    if (cause === "node-resource") return `the node was short of ${resource}`;
    const passed = LIMIT[cause];
    return passed === undefined ? "the kubelet ended it to get resources back" : `${passed} of ${limit}`;
  },
  preempted: ({ words, numbers: { by } }) => {
    const ended = isOnlyDecided(words) ? "a recorded decision chose it" : "the kubelet ended it";
    return by === null ? `${ended} for a critical pod` : `${ended} for the critical pod ${by.namespace}/${by.name}`;
  },
  disrupted: ({ numbers: { by } }) => DISRUPTED[by] ?? by,
  refused: ({ words, numbers: { again, resource, requested, used, capacity } }) => {
    const kubelet = again ? "a restarted kubelet" : "the kubelet";
    const then = `${isOnlyDecided(words) ? "a recorded decision" : kubelet} did not admit it${again ? " again" : ""}`;
    if (resource === null || requested === null || used === null || capacity === null) return then;
    const amount = (units: number): string => amountText(resource, units);
    return `${then}: ${amount(requested)} ${resource} did not fit beside ${amount(used)} used of ${amount(capacity)}`;
  },
  "node-shutdown": () => "the node was shut down",
  "node-lost": ({ numbers: { node, ready } }) =>
    `node ${node} is not ready${ready === "Unknown" ? ": its kubelet has stopped reporting" : ""}`,
  "deadline-exceeded": ({ numbers: { activeDeadlineSeconds } }) =>
    activeDeadlineSeconds === null
      ? "it ran for longer than it may"
      : `it ran for longer than its activeDeadlineSeconds of ${activeDeadlineSeconds}`,
  "oom-killed": ({ container, numbers: { limitBytes, restarts, nodeOom } }) => {
    const why =
      limitBytes === null
        ? "memory ran out, and it has no limit of its own"
        : `it reached its memory limit of ${humanBytes(limitBytes)}`;
    return `${inContainer(container)}was killed: ${nodeOom ? "the node as a whole ran out of memory" : why}${restartsText(restarts)}`;
  },
  "image-gone": ({ container, numbers: { image, why, removedAt } }) => {
    const when = removedAt === null ? "" : ` at ${removedAt}`;
    const gone =
      why === null ? "is not on the node" : `was removed from the node by image garbage collection${when} (${why})`;
    return `${inContainer(container)}waits: image ${image} ${gone}, and may not be pulled`;
  },
  "image-pull": ({ container, numbers: { image, onNode } }) =>
    `${inContainer(container)}waits for image ${image}${onNode === true ? ", which is on the node" : ""}`,
  "config-error": ({ container }) => `${inContainer(container)}cannot be created or started`,
  "restarted-by-probe": ({ container, numbers: { type, failures, restarts } }) =>
    `${inContainer(container)}was ended ${many(restarts, "time")} by its ${type} probe, which failed ${many(failures, "time")}`,
  "crash-loop": ({ container, numbers: { restarts, exitCode, backOffSeconds } }) => {
    const wait =
      backOffSeconds === null ? "" : `; the kubelet waits ${durationText(backOffSeconds * 1000)} before the next start`;
    return `${inContainer(container)}ends again and again${exitText(exitCode)}${restartsText(restarts)}${wait}`;
  },
  failed: ({ container, numbers: { exitCode, restarts } }) =>
    `${inContainer(container)}ended${exitText(exitCode)}${restartsText(restarts)}`,
  "init-waiting": ({ container, numbers: { index, of, waiting } }) =>
    `init container ${container}, the ${ordinal(index)} of ${of}, has not succeeded; ${listed(waiting)} ${waiting.length === 1 ? "waits" : "wait"} for it`,
  "startup-failing": ({ container, numbers: { failures } }) =>
    `${inContainer(container)}has not started: its startup probe failed ${many(failures, "time")}`,
  "claims-not-prepared": ({ numbers: { cause, claim, driver } }) => {
    const which = claim === null ? "its ResourceClaims are" : `its ResourceClaim ${claim} is`;
    return `${which} not prepared: ${CLAIM_CAUSE[cause]}${driver === null ? "" : ` (${driver})`}`;
  },
  "not-started": ({ numbers: { pending } }) => PENDING[pending] ?? `it waits for its ${pending}`,
  unscheduled: ({ numbers: { gates, claims } }) => {
    if (gates.length > 0)
      return `the scheduler ignores it until ${listed(gates)} ${gates.length === 1 ? "is" : "are"} removed (schedulingGates)`;
    const without = `, and has not allocated its ResourceClaim${claims.length === 1 ? "" : "s"} ${listed(claims)}`;
    return `the scheduler has found no node for it${claims.length === 0 ? "" : without}`;
  },
  terminating: ({ numbers: { graceSeconds, finalizers, overdueSeconds } }) => {
    const grace = graceSeconds === null ? "" : ` within ${durationText(graceSeconds * 1000)}`;
    const late = overdueSeconds === null ? "" : `; it is ${durationText(overdueSeconds * 1000)} late`;
    const held = finalizers.length === 0 ? "" : `, held by ${listed(finalizers)}`;
    return `it is being deleted${grace}${late}${held}`;
  },
  "resize-infeasible": ({ numbers }) => `${INFEASIBLE[numbers.cause]}${resourcesText(numbers)}`,
  "resize-deferred": ({ numbers }) => `the node cannot give what is asked for now${resourcesText(numbers)}`,
  "resize-in-progress": ({ numbers }) => `a resize is being carried out${resourcesText(numbers)}`,
  "not-ready": ({ container, numbers: { failures, gates } }) => {
    if (gates.length > 0)
      return `its containers are ready, and ${listed(gates)} ${gates.length === 1 ? "is" : "are"} not True (readinessGates)`;
    return `${inContainer(container)}is not ready${failures === 0 ? "" : `: its readiness probe failed ${many(failures, "time")}`}`;
  },
  throttled: (finding) => throttledText(finding),
  "under-pressure": ({ words, numbers: { conditions } }) =>
    words.length > 0
      ? `its node has ${listed(conditions)}`
      : `the next pass of its node's kubelet will find ${listed(conditions)}, which the node's status does not show yet`,
  restarted: ({ container, numbers: { exitCode, restarts } }) =>
    `${inContainer(container)}runs again after it ended${exitText(exitCode)}${restartsText(restarts)}`,
  completed: () => "its containers ended with 0",
  healthy: ({ numbers: { ready, containers } }) =>
    ready === containers
      ? `${many(containers, "container")} of ${containers} ready`
      : `${many(containers, "container")}`,
  unknown: () => "no document shows its state",
};

function throttledText({ container, numbers }: FindingOf<"throttled">): string {
  const { periods, throttledPeriods, throttledMicros, limitMilli, usageMilli, averageMilli } = numbers;
  const limit = limitMilli === null ? "its CPU limit" : `its limit of ${milli(limitMilli)} CPU`;
  const use = usageMilli === null ? "" : `; it uses ${milli(usageMilli)}`;
  if (periods === null || throttledPeriods === null || periods === 0) {
    return `${inContainer(container)}uses ${usageMilli === null ? "nearly all" : milli(usageMilli)} of ${limit}: it is most likely throttled now and then`;
  }
  const average = averageMilli === null ? use : `; it used ${milli(averageMilli)} of them on average`;
  const waited = throttledMicros === null ? "" : `, for ${durationText(throttledMicros / 1000)} in all`;
  return `${inContainer(container)}was throttled at ${limit} in ${throttledPeriods} of ${periods} periods (${percent(throttledPeriods, periods)})${waited}${average}`;
}

/** The reasons of the condition DisruptionTarget. kubernetes 1.36: v1.PodReason..., and those of the controllers. */
const DISRUPTED: Readonly<Record<string, string>> = {
  PreemptionByScheduler: "the scheduler ended it to make room for a pod of higher priority",
  EvictionByEvictionAPI: "its eviction was requested through the API, as a drain of the node does",
  DeletionByTaintManager: "its node has a taint of NoExecute that it does not tolerate",
  DeletionByPodGC: "its node is gone",
  TerminationByKubelet:
    "the kubelet ended it: to get resources back, for a critical pod, or as the node shut down; which of these is not known",
  DeletionByDeviceTaintManager: "a device that it uses has a taint that it does not tolerate",
};
/** Why a claim is not prepared, for each cause. */
const CLAIM_CAUSE: Readonly<Record<FindingOf<"claims-not-prepared">["numbers"]["cause"], string>> = {
  "not-made": "no claim was created from its template yet",
  "not-found": "there is no such claim",
  "not-allocated": "the scheduler has allocated no device to it",
  "not-reserved": "it is not reserved for this pod",
  "of-another-pod": "it was made for another pod",
  "driver-not-registered": "a DRA driver is not registered on the node",
  "older-claim": "the node still has an older claim of that name",
  "being-unprepared": "the node is unpreparing it",
  driver: "a DRA driver has failed",
  unknown: "the kubelet cannot use it",
};
const PENDING: Readonly<Record<string, string>> = {
  kubelet: "it is bound to a node, and the kubelet there has not started it yet",
  sandbox: "its sandbox (its network) cannot be created",
  volume: "its volumes are not mounted yet",
  image: "it waits for an image",
  container: "its containers are being created",
};

/** The finding in a line. */
export const headline = (finding: Finding): string =>
  (HEADLINES[finding.code] as (finding: Finding) => string)(finding);

const COUNTERFACTUALS: ReadonlySet<string> = new Set([
  "fewer_pods_would_do",
  "smaller_pods_would_do",
  "lower_request_admits",
  "lower_request_spares_all",
  "no_request_helps",
]);
const isCounterfactual = (change: Change): change is Change & Counterfactual => COUNTERFACTUALS.has(change.code);

const MAX_REQUESTS = 12;

/** The changes that would help, a sentence each. */
export function changeSentences(changes: readonly Change[]): readonly string[] {
  const nodes = Map.groupBy(changes.filter(isCounterfactual), ({ numbers }) => numbers["node"]);
  const sentences = [...nodes].flatMap(([node, all]) => counterfactualSentences(all).map((text) => ({ node, text })));
  // many nodes are alike
  const requests = [...Map.groupBy(sentences, ({ text }) => text)].map(([text, same]) => {
    const names = same.flatMap(({ node }) => (node === undefined ? [] : [String(node)]));
    return names.length === 0 ? text : `on ${namesText(names)} ${text}`;
  });
  const others = changes.flatMap(({ code, numbers }) => (code in CHANGES ? CHANGES[code as OtherCode](numbers) : []));
  const more = requests.length - MAX_REQUESTS;
  const rest = more > 0 ? [`and ${more} more like these, of other nodes`] : [];
  return [...requests.slice(0, MAX_REQUESTS), ...rest, ...others];
}

type Numbers = Change["numbers"];
type OtherCode = Exclude<Change["code"], Counterfactual["code"]>;
const CHANGES: { readonly [C in OtherCode]: (n: Numbers) => string } = {
  fits_now: (n) =>
    `with what ${n["node"]} has free now it would be admitted: create the pod again, as its controller does`,
  rank_of_pod: (n) => {
    const resource = String(n["resource"]);
    const how: Readonly<Record<string, string>> = {
      request: `with a request of ${boundText(resource, "least", Number(n["to"]))} for ${resource}`,
      usage: `if it used ${boundText(resource, "most", Number(n["to"]))} instead of ${amountText(resource, Number(n["from"]))}`,
      priority: `with a priority of ${n["to"]}`,
    };
    const then =
      n["saves"] === true ? `${n["victim"] ?? "no pod"} would be evicted first` : "it would still be evicted first";
    return `${how[String(n["change"])]} it would rank ${ordinal(Number(n["place"]))}: ${then}`;
  },
  request_covers_usage: (n) =>
    `container ${n["name"]} used ${quantityText(String(n["resource"]), String(n["usage"]))} of ${n["resource"]} and requested ${quantityText(String(n["resource"]), String(n["request"]))}: pods that stay within their requests are evicted last`,
  storage_limit: (n) =>
    `a limit above ${quantityText("ephemeral-storage", String(n["limit"]))}${n["name"] === undefined ? "" : ` for ${n["name"]}`}, or less data written`,
  memory_limit: (n) =>
    `a memory limit above ${humanBytes(Number(n["limitBytes"]))} for container ${n["container"]}, or less use: an OOM kill does not report how much it needed`,
  cpu_limit: (n) =>
    n["enoughMilli"] === undefined
      ? `a limit above ${milli(Number(n["limitMilli"]))} CPU for container ${n["container"]}; cpu.stat shows how much`
      : `with a limit of ${milli(Number(n["enoughMilli"]))} CPU for container ${n["container"]} the average throttled period would have been long enough; peaks need more`,
  no_cpu_limit: (n) =>
    `without a CPU limit container ${n["container"]} is never throttled; its request still guarantees its share`,
  critical_only_by_critical: () =>
    "a critical pod is preempted only for one of higher priority: any other pod may be preempted",
  probe_timeout: (n) =>
    `answers came too late: a timeoutSeconds above ${n["timeoutSeconds"]} for the ${n["type"]} probe of ${n["container"]}`,
  probe_threshold: (n) =>
    `${many(n["failureThreshold"], "failure")} ${n["failureThreshold"] === 1 ? "ends" : "end"} ${n["container"]} (${durationText(Number(n["withinMs"]))} after its start at the soonest): a higher failureThreshold or periodSeconds gives it longer`,
  startup_probe: (n) => `a startup probe for container ${n["container"]}: liveness would wait for it`,
  probe_setting: (n) => `${n["path"]}: ${PROBE_FINDING[n["code"] as ProbeFindingCode](n)}`,
  image_pull_policy: (n) =>
    `imagePullPolicy IfNotPresent would pull ${n["image"]}; with Never it must be there already`,
  image_gc_threshold: (n) =>
    n["why"] === "too-old"
      ? "a longer imageMaximumGCAge keeps images that are not used"
      : "more space, or a higher imageGCHighThresholdPercent, keeps images that are not used",
  resize_at_most: (n) =>
    `at most ${boundText(String(n["resource"]), "most", Number(n["atMost"]))} ${n["resource"]} for the whole pod would be accepted now`,
  resize_terminating: (n) =>
    `${n["pods"]} terminates already, which makes room, and the kubelet then tries it again by itself`,
  resize_shrinks: (n) =>
    `when the smaller size of ${n["pods"]} is written, there is more room, and the kubelet tries it again by itself`,
  resize_leave: (n) => `without ${n["pods"]} there would be room; the kubelet ends no pod for a resize`,
  resize_setting: (n) =>
    n["setting"] === undefined
      ? `the feature gate ${n["gate"]} lets the kubelet try it`
      : `with ${n["setting"]} in the kubelet's configuration, or the feature gate ${n["gate"]}, the kubelet would consider it`,
  resize_restart_policy: () =>
    "a pod that is created with resizePolicy RestartContainer for memory can be resized: its container then restarts",
  resize_anew: () => "a new pod of this size would be admitted",
  claim_made: () =>
    "the claim has to exist: the controller manager creates it from a template; a claim that the pod names has to be created by you",
  claim_allocated: () =>
    "the scheduler gives devices to a claim when it binds a pod that names it; it ignores the claims of a pod that was bound by spec.nodeName",
  claim_devices: (n) =>
    `claim ${n["claim"]}: free devices${n["classes"] === "" ? "" : ` of DeviceClass ${n["classes"]}`} on a node where the pod may run. \`kubectl get resourceslices\` shows what drivers have, \`kubectl get resourceclaims -A\` which claims use it, and the scheduler's event FailedScheduling what it needs`,
  claim_reserved: (n) =>
    `the pod's uid has to be in status.reservedFor of ${n["claim"] ?? "the claim"}, where the scheduler enters it: a pod that was created again under the same name has another uid`,
  claim_of_pod: () =>
    "a claim from a template serves only the pod that it was created for: delete the claim, and another one is created",
  driver_registered: (n) =>
    `the driver ${n["driver"]} has to run on the node and register with the kubelet: look at its pod, and for its socket in /var/lib/kubelet/plugins_registry`,
  older_claim_ends: () =>
    "once the pods that used the older claim have ended on the node, the kubelet takes the new one",
  driver_answers: (n) =>
    `the driver${n["driver"] === undefined ? "" : ` ${n["driver"]}`} writes more into its own log; the kubelet calls it again`,
  pressure_ends: (n) => {
    const best = n["qosClass"] === "BestEffort" && n["conditions"] === "MemoryPressure";
    const other = best ? ", or with a request for memory, as only pods of BestEffort are kept out" : "";
    return `once the node is without ${n["conditions"]} it would be admitted${other}`;
  },
};

/** `2026-…Z, 5m12s before the end of what is known`. */
export function sinceText(since: string | null, asOf: string | null): string {
  if (since === null) return "";
  const age = asOf === null ? 0 : Date.parse(asOf) - Date.parse(since);
  return age >= 1000
    ? `since ${timeText(Date.parse(since))} (${durationText(age)} before the newest input)`
    : `since ${timeText(Date.parse(since))}`;
}
