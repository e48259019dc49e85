import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { AdmissionDecision } from "../../model/admission.ts";
import { add, compare, value, ZERO } from "../../model/amount.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type { PlaceReasons } from "../../model/forms.ts";
import { type Container, conditionIn, isActive, namespacedPodName, type Pod, podRef, podUid } from "../../model/pod.ts";
import type { Victim } from "../../model/preemption.ts";
import { quantityOf, unitsQuantity } from "../../model/quantity.ts";
import {
  askedAbout,
  isTaken,
  type PodResize,
  type ResizeActuation,
  type ResizeAsk,
  type ResizeDecision,
} from "../../model/resize.ts";
import type { CpuShares, CpuWeight } from "../../model/units.ts";
import { type EffectiveArguments, type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import { nodeCapacity, pageSizes } from "../allocatable/capacity.ts";
import { cpuSetsOf, type RuntimeContext, runtimeContext } from "../cgroups/context.ts";
import { filesOf } from "../cgroups/files.ts";
import { podMemoryQos } from "../cgroups/memory-qos.ts";
import { containerIdOf, containerLeaf, pathsOf } from "../cgroups/paths.ts";
import { podCgroupValues } from "../cgroups/pod-config.ts";
import { allocatedPod, podsOfNode, statusesByName } from "../pods/node-pods.ts";
import { Reasons } from "../reasons.ts";
import { type Actuation, actuationOf, MEMORY_IN_USE, type Write } from "../resize/actuation.ts";
import { changesOf, patchedPod } from "../resize/desired.ts";
import { type FreedResources, freedResources, type PendingResize, pendingResize } from "../resize/freed.ts";
import { pendingOf, type Resize, retryOrder } from "../resize/queue.ts";
import {
  type Infeasible,
  type NodeResources,
  RESIZABLE,
  type ResizeNode,
  resizeNodeOf,
  whyInfeasible,
} from "../resize/refusals.ts";
import { whyInvalid } from "../resize/validation.ts";
import { withSizes } from "../resize/volumes.ts";
import { cfsPeriod, linearWeight } from "../resources/cpu-convert.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import { decideAdmission } from "./admission.ts";
import { quotaOff, resizedValues, runtimeWeight } from "./cgroups.ts";

const quiet = new Reasons<string>("off");

/** A node on which resizes are tried one after another. */
interface Node {
  /** The node's pods with their allocated resources. */
  readonly snapshot: EffectiveSnapshot;
  readonly facts: ResizeNode;
  readonly runtime: RuntimeContext;
  /** The node's huge page sizes, in bytes. */
  readonly pageSizes: readonly number[];
  /** Resizes that were tried before and are pending. */
  readonly ahead: readonly PendingResize[];
}

/**
 * Decides what the kubelet does with resizes: those that the pods' specs ask for, or a hypothetical one. It tries them
 * in the kubelet's order, and each accepted one holds its new resources before the next. Errors: no such pod or
 * container; the node's pods or its allocatable are not known. kubelet 1.36: retryPendingResizes.
 */
export function decideResize(asked: EffectiveArguments<ResizeAsk>): Result<DecidedOf<"resize">, Refusal> {
  const { snapshot, ask } = asked;
  if (snapshot.pods === undefined) {
    const message = "which pods are on the node? post them; an empty list says that there are none";
    return err({ code: "needs_input", message, needs: ["pods"] });
  }
  const needs = new Set<string>();
  const facts = resizeNodeOf(snapshot);
  const isSwapping = snapshot.kubeletConfiguration.memorySwap.swapBehavior === "LimitedSwap";
  if (isSwapping && snapshot.cgroup?.version === undefined) needs.add("cgroup.version");
  const runtime = runtimeOf(snapshot, facts);
  if (!runtime.ok) return runtime;
  const pods = podsOfNode(snapshot).filter(isActive);
  if (snapshot.assignments?.allocated_pods_state === undefined && pods.some(waitsUnreported))
    needs.add("assignments.allocated_pods_state");
  const allocated = pods.map((pod) => allocatedIn(snapshot, pod));
  const pushed = pendingOf(pods, allocated, ask, facts);
  if (!pushed.ok) return pushed;
  let node: Node = { snapshot: asAllocated(snapshot, allocated), facts, ...runtime.value, ahead: [] };
  const resizes: PodResize[] = [];
  const reasons: PlaceReasons<ReasonCode<"resize">>[] = [];
  for (const one of retryOrder(pushed.value)) {
    const tried = tryResize(node, one, asked);
    if (!tried.ok) return tried;
    if ("startErrors" in tried.value) return ok(notStarted(tried.value.startErrors));
    resizes.push(tried.value.resize);
    const { actuation } = tried.value.resize;
    for (const path of [...tried.value.needs, ...(actuation === null ? [] : runtime.value.needs)]) needs.add(path);
    const isNamed = namespacedPodName(one.desired) === ask.pod;
    if (isNamed || pushed.value.length === 1) reasons.push(...tried.value.reasons);
    if (isTaken(tried.value.resize)) node = withTaken(node, one, tried.value.resize.preempt);
    else if (tried.value.waits !== null) node = { ...node, ahead: [...node.ahead, tried.value.waits] };
  }
  const { inError, deferred, infeasible } = counted(askedAbout(resizes));
  const verdict = inError + deferred + infeasible === 0 ? "decided" : "refused";
  return ok({ decision: counted(resizes), verdict, reasons, needs: [...needs], next: null });
}

/** Whether a pod's resize is pending and its status does not list its allocated resources. */
const waitsUnreported = (pod: Pod): boolean =>
  conditionIn(pod, "PodResizePending") !== undefined &&
  pod.status?.allocatedResources === undefined &&
  [...statusesByName(pod).values()].every(({ allocatedResources }) => allocatedResources === undefined);

interface Runtime extends Pick<Node, "runtime" | "pageSizes"> {
  /** Inputs that the containers' values depend on besides their resources, and that are not known. */
  readonly needs: readonly string[];
}
function runtimeOf(snapshot: EffectiveSnapshot, { cgroupVersion, absolute }: ResizeNode): Result<Runtime, Refusal> {
  const needs: string[] = [];
  const period = cfsPeriod(snapshot.kubeletConfiguration);
  if (!period.ok) {
    const message = `kubeletConfiguration.cpuCFSQuotaPeriod: ${period.error}`;
    return err({ code: "invalid_configuration", message, needs: [] });
  }
  const cpuSets = cpuSetsOf(snapshot, needs);
  if (!cpuSets.ok) return cpuSets;
  const bytesIn = (room: NodeResources): number => value(room.get("memory")?.amount ?? ZERO);
  const capacity = nodeCapacity(snapshot, quiet, []);
  const memory = { capacity: bytesIn(capacity), allocatable: bytesIn(absolute) };
  const parts = { cpuSets: cpuSets.value, period: period.value, memory };
  const context = runtimeContext(snapshot, cgroupVersion, parts, needs);
  return ok({ runtime: context, pageSizes: pageSizes(capacity), needs });
}

/** The decision about these resizes, with the number of each outcome. */
export function counted(resizes: readonly PodResize[]): ResizeDecision {
  const count = (status: PodResize["status"]): number => resizes.filter((r) => r.status === status).length;
  return {
    startErrors: [],
    resizes,
    inProgress: count("InProgress"),
    inError: count("Error"),
    deferred: count("Deferred"),
    infeasible: count("Infeasible") + count("Rejected"),
  };
}

/** The answer of a kubelet that does not start: it tries nothing. */
function notStarted(startErrors: readonly string[]): DecidedOf<"resize"> {
  const because = startErrors.map((message) => ({
    code: "kubelet_does_not_start" as const,
    field: "startErrors",
    numbers: { message },
  }));
  return {
    decision: { ...counted([]), startErrors },
    verdict: "kubelet-refuses",
    reasons: [{ at: "node", because }],
    needs: [],
    next: null,
  };
}

function allocatedIn(snapshot: EffectiveSnapshot, pod: Pod): Pod {
  const { kubeletConfiguration: config, assignments } = snapshot;
  const allocated = allocatedPod(pod, snapshot, "", quiet);
  // without its gate, the kubelet uses the volume sizes in the spec
  const sizes = own(assignments?.allocated_pods_state?.entries, podUid(pod) ?? "")?.EmptyDirVolumeLimits;
  const isMounted = sizes !== undefined && gateOn(config, "InPlacePodVerticalScalingMemoryBackedVolumes");
  return isMounted ? withSizes(allocated, sizes) : allocated;
}

/**
 * A snapshot in which the pods' specs are what is allocated to them; pods without allocated resources are unchanged.
 */
function asAllocated(snapshot: EffectiveSnapshot, pods: readonly Pod[]): EffectiveSnapshot {
  const known = snapshot.assignments?.allocated_pods_state?.entries;
  const uids = known === undefined ? pods.flatMap((pod) => podUid(pod) ?? []) : Object.keys(known);
  const entries = Object.fromEntries(uids.map((uid) => [uid, {}]));
  return { ...snapshot, pods: [...pods], assignments: { ...snapshot.assignments, allocated_pods_state: { entries } } };
}

interface ResizeAttempt {
  readonly resize: PodResize;
  /** The pending resize; null: it is not pending. */
  readonly waits: PendingResize | null;
  readonly reasons: readonly PlaceReasons<ReasonCode<"resize">>[];
  readonly needs: readonly string[];
}

function tryResize(
  node: Node,
  one: Resize,
  asked: EffectiveArguments<ResizeAsk>,
): Result<ResizeAttempt | Pick<AdmissionDecision, "startErrors">, Refusal> {
  const { snapshot, facts } = node;
  const { desired, allocated, invalid, untouched, isAsked, isRetried, inForce } = one;
  const wanted = changesOf(desired, allocated);
  const isAllocated = wanted.length === 0 && conditionIn(desired, "PodResizeInProgress") !== undefined;
  const changes = isAllocated ? changesOf(desired, inForce) : wanted;
  const infeasible = invalid ?? (wanted.length === 0 ? null : whyInfeasible(desired, allocated, facts));
  const { config } = facts;
  const ask = { pod: desired };
  const preempts = !gateOn(config, "InPlacePodVerticalScalingSchedulerPreemption");
  const admission = decideAdmission({ ...asked, snapshot, facts: {}, ask }, { preempts });
  if (!admission.ok) return admission;
  const { decision, reasons, needs } = admission.value;
  if (decision.startErrors.length > 0) return ok({ startErrors: decision.startErrors });
  const taken = verdictOf(wanted.length > 0, infeasible, invalid, decision);
  const isWritten = taken.status === "InProgress" || (isAllocated && infeasible === null);
  const largest = largestOf(node, one, asked, decision);
  if (!largest.ok) return largest;
  const usage: string[] = [];
  const actuation = isWritten ? actuate(node, one, usage) : null;
  const verdict = actuation === null ? taken : writing(actuation);
  const waits = verdict.status === "Deferred" ? pendingResize(allocated, decision, config) : null;
  const resize: PodResize = {
    pod: podRef(desired),
    ...verdict,
    ...(verdict.status === "Unchanged" && { message: untouched }),
    isAsked,
    isRetried,
    changes,
    preempt: taken.status === "InProgress" ? decision.preempt : [],
    wouldRefuse: wanted.length === 0 ? [] : decision.wouldRefuse,
    resources: decision.resources,
    ...largest.value,
    ...(waits === null ? NO_ROOM : freedResources(desired, snapshot.pods ?? [], waits, node.ahead, config)),
    actuation,
  };
  return ok({ resize, reasons: wanted.length === 0 ? [] : fitReasons(reasons), needs: [...needs, ...usage], waits });
}

/** The admission reasons about room; everything else is in the resize itself. */
function fitReasons(reasons: DecidedOf<"admission">["reasons"]): ResizeAttempt["reasons"] {
  return reasons.flatMap(({ at, because }) => {
    const shown = because.flatMap(({ code, ...rest }) =>
      code === "resource_fits" || code === "resource_short" ? [{ code, ...rest }] : [],
    );
    return shown.length === 0 ? [] : [{ at, because: shown }];
  });
}

const NO_ROOM: FreedResources = { terminating: [], shrinks: [], leave: null };

type Verdict = Pick<PodResize, "status" | "check" | "message">;
function verdictOf(
  changes: boolean,
  infeasible: Infeasible | null,
  invalid: Infeasible | null,
  { admit, message }: AdmissionDecision,
): Verdict {
  if (!changes && infeasible === null) return { status: "Unchanged", check: null, message: "" };
  if (infeasible !== null) return { status: infeasible === invalid ? "Rejected" : "Infeasible", ...infeasible };
  if (admit) return { status: "InProgress", check: null, message: "" };
  return { status: "Deferred", check: null, message };
}
/** The verdict of an accepted resize. kubelet 1.36: SyncPod sets the reason Error if it cannot apply a resize. */
const writing = ({ error }: ResizeActuation): Verdict => ({
  status: error === null ? "InProgress" : "Error",
  check: null,
  message: error ?? "",
});

/**
 * Whether something other than room keeps it pending; no size is accepted until that ends. kubelet 1.36: the eviction
 * manager's Admit, topology.
 */
const isBarred = ({ admit, resources }: AdmissionDecision): boolean =>
  !admit && resources.every(({ insufficient }) => insufficient === 0);

const LEAST = { cpu: quantityOf(1, "DecimalSI"), memory: unitsQuantity(1, "BinarySI") };
type Resizable = (typeof RESIZABLE)[number];
/** The pod with a little more of one resource, in the first container that requests some, else in the first. */
function grown(pod: Pod, resource: Resizable): Pod {
  const { containers } = pod.spec;
  const at = containers.findIndex(({ resources }) => resources?.requests?.[resource] !== undefined);
  const each = (c: Container, i: number): Container => {
    if (i !== Math.max(0, at)) return c;
    const [request, limit] = [c.resources?.requests?.[resource], c.resources?.limits?.[resource]];
    const more = quantityOf(add(request?.amount ?? ZERO, LEAST[resource].amount), LEAST[resource].format);
    const isLifted = limit !== undefined && compare(limit.amount, more.amount) < 0;
    const limits = { ...c.resources?.limits, ...(isLifted && { [resource]: more }) };
    return { ...c, resources: { ...c.resources, requests: { ...c.resources?.requests, [resource]: more }, limits } };
  };
  return { ...pod, spec: { ...pod.spec, containers: containers.map(each) } };
}

/** The largest CPU and memory request that fits, and why a resource cannot be resized. */
function largestOf(
  { snapshot, facts }: Node,
  { desired, allocated, invalid }: Resize,
  asked: EffectiveArguments<ResizeAsk>,
  decision: AdmissionDecision,
): Result<Pick<PodResize, "largest" | "notRequested">, Refusal> {
  const notRequested: PodResize["notRequested"][number][] = [];
  const tested: AdmissionDecision["resources"][number][] = [];
  const isOpen = (refused: Infeasible | null): boolean => refused === null || refused.check === "capacity";
  const before = patchedPod(allocated, facts.config);
  for (const resource of isBarred(decision) || decision.resources.length === 0 ? [] : RESIZABLE) {
    const pod = grown(before, resource);
    const refused = whyInvalid(pod, before, facts) ?? whyInfeasible(pod, allocated, facts);
    const known = decision.resources.filter((one) => one.resource === resource);
    if (refused !== null && !isOpen(refused)) notRequested.push({ resource, message: refused.message });
    else if (known.length > 0) tested.push(...known);
    else if (isOpen(invalid)) {
      const answer = decideAdmission(
        { ...asked, snapshot, facts: {}, ask: { pod: grown(desired, resource) } },
        { preempts: false },
      );
      if (!answer.ok) return answer;
      tested.push(...answer.value.decision.resources.filter((one) => one.resource === resource));
    }
  }
  const largest = tested.map(({ resource, capacity, used }) => ({ resource, quantity: Math.max(0, capacity - used) }));
  return ok({ largest, notRequested });
}

/** The node after an accepted resize: the pod has its new resources, and its victims are gone. */
function withTaken(node: Node, { desired }: Resize, preempt: readonly Victim[]): Node {
  const uid = podUid(desired);
  const gone = new Set(preempt.map((victim) => victim.uid));
  const pods = (node.snapshot.pods ?? []).flatMap((p) => {
    if (podUid(p) === uid) return [desired];
    return gone.has(podUid(p) ?? "") ? [] : [p];
  });
  return { ...node, snapshot: { ...node.snapshot, pods } };
}

/**
 * Computes how the resize is applied; the stats are added to `needs` if a memory limit decreases and the usage is
 * unknown.
 */
function actuate(
  { snapshot, runtime, pageSizes }: Node,
  { desired, inForce }: Resize,
  needs: string[],
): ResizeActuation {
  const { config, period, quotaPeriod, memoryQos, claims } = runtime;
  const { behaviour } = config.profile;
  const status = statusesByName(desired);
  const stats = snapshot.stats?.pods?.find(({ podRef: { uid } }) => uid === podUid(desired));
  const uid = podUid(desired) ?? "";
  const podValues = (pod: Pod) => {
    const [qos, requests] = [qosClass(pod), podRequests(pod, claims)];
    const options = {
      qos,
      requests,
      quotaOff: quotaOff(runtime, desired, uid),
      period,
      quotaPeriod,
      behaviour,
      claims,
    };
    const values = podCgroupValues(pod, options, "", quiet);
    // older kubelets do not change these values of a pod's cgroup
    if (memoryQos !== undefined && behaviour.memoryQosOfPods)
      podMemoryQos(values, pod, qos, value(requests.get("memory") ?? ZERO), memoryQos, "", quiet);
    return values;
  };
  const done = actuationOf(inForce, desired, {
    config,
    isRunning: (name) => (status.get(name)?.state?.running ?? null) !== null,
    ofPod: { before: podValues(inForce), after: podValues(desired) },
    valuesOf: (c) => resizedValues(desired, c, { context: runtime, uid, qos: qosClass(desired), pageSizes }, quiet),
    usageOf: (container) => {
      if (stats === undefined) {
        needs.push("stats.pods");
        return 0;
      }
      const memory = container === null ? stats.memory : stats.containers?.find((c) => c.name === container)?.memory;
      return memory?.usageBytes;
    },
  });
  const error = done.error ?? actuationError(desired, stats !== undefined);
  return withFiles(error === null ? done : { ...done, writes: [], error }, snapshot, desired);
}

/**
 * Why the pod's status says that the resize is stuck; null: it does not, or (`isKnown`) the known memory usage
 * explains it better.
 */
function actuationError(pod: Pod, isKnown: boolean): string | null {
  const { reason, message = "" } = conditionIn(pod, "PodResizeInProgress") ?? {};
  return reason !== "Error" || (isKnown && message.startsWith(MEMORY_IN_USE)) ? null : message;
}

/** Adds to each write its cgroup and the exact text of each file. */
function withFiles({ restarts, writes, error }: Actuation, snapshot: EffectiveSnapshot, pod: Pod): ResizeActuation {
  const config = snapshot.kubeletConfiguration;
  const { version, driver = config.cgroupDriver } = snapshot.cgroup ?? {};
  const uid = podUid(pod);
  const paths = pathsOf(driver, config.cgroupRoot);
  const status = statusesByName(pod);
  const place = (container: string | null): string | null => {
    if (version === undefined || uid === undefined) return null;
    const own = paths.pod(qosClass(pod), uid);
    if (container === null) return own;
    const id = containerIdOf(status.get(container)?.containerID) ?? container;
    return paths.container(own, containerLeaf(driver, id));
  };
  const written = ({ container, values: set, volume }: Write) => {
    if (volume !== undefined) return { container, path: null, values: set, files: [], volume };
    const path = place(container);
    const weight = (shares: CpuShares): CpuWeight =>
      container === null ? linearWeight(shares) : runtimeWeight(snapshot.cgroup, shares).weight;
    const isWeighed = version === 2 && set.cpuShares !== undefined;
    const values = { ...set, ...(isWeighed && { cpuWeight: weight(set.cpuShares as CpuShares) }) };
    // runc does not change huge page limits in an update
    const { hugePageLimit: _hugePageLimit, ...files } = values;
    return { container, path, values, files: path === null || version === undefined ? [] : filesOf(files, version) };
  };
  return { restarts, writes: writes.map(written), error };
}
