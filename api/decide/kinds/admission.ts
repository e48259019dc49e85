import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { AdmissionDecision, AdmissionHandler, WouldRefuse } from "../../model/admission.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import { APP_ARMOR_ANNOTATION, type AppArmorProfile } from "../../model/placement.ts";
import { type Container, containersOf, type Pod, podRef, podUid } from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import { NOT_RECOVERED } from "../../model/preemption.ts";
import type { TopologyDecision } from "../../model/topology.ts";
import { type EffectiveArguments, gateOn } from "../../profiles/effective.ts";
import { isGateOn } from "../../profiles/profile.ts";
import { checkPredicates, findFailures, type Predicates } from "../admission/predicates.ts";
import { type AdmissionContext, allocatableOf, type Prepared, prepare, type Refused } from "../admission/prepare.ts";
import { sysctlRefusals, type UnsafeSysctls, unsafeSysctls } from "../admission/sysctls.ts";
import { refusalUnderPressure } from "../eviction/pressure.ts";
import { quote } from "../go/strconv.ts";
import { nextState } from "../managers/manager-query.ts";
import { admit, type ManagedNode, type Managers, managedNode, managersOf, withUid } from "../managers/node.ts";
import { counterfactualsOf } from "../preemption/counterfactuals.ts";
import { Reasons } from "../reasons.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { isCriticalPod, qosClass } from "../resources/qos.ts";
import type { Admission } from "../topology/admit.ts";
import { explainVictims } from "./preemption.ts";
import { assignedOf } from "./topology.ts";

/**
 * Refusals by pod features. `asked`: the pod with its pod-level resources even if the gate is off. kubelet 1.36:
 * podFeaturesAdmitHandler.
 */
function podFeatureRefusals({ config }: AdmissionContext, asked: Pod): readonly Refused[] {
  if (gateOn(config, "PodLevelResources") || !isPodLevelResourcesSet(asked)) return [];
  return [{ reason: "PodLevelResourcesNotSupported", message: "PodLevelResources feature gate is disabled" }];
}

/** For each node feature, which pods need it. */
const REQUIRED_BY: Readonly<Record<string, (pod: Pod) => boolean>> = {
  RestartAllContainersOnContainerExits: (pod) =>
    containersOf(pod).some((c) => c.restartPolicyRules?.some(({ action }) => action === "RestartAllContainers")),
  UserNamespacesHostNetworkSupport: ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false,
  VolumeBindMountOptions: (pod) =>
    [...containersOf(pod), ...(pod.spec.ephemeralContainers ?? [])].some((c) => c.volumeMounts !== undefined),
};

/** kubelet 1.36: declaredFeaturesAdmitHandler, discoverNodeDeclaredFeatures. */
function declaredFeatureRefusals({ pod, node, config, needs }: AdmissionContext): readonly Refused[] {
  if (!gateOn(config, "NodeDeclaredFeatures")) return [];
  const { declaredFeatures } = config.profile.behaviour;
  const declared = node.status?.declaredFeatures;
  const missing = [...declaredFeatures].flatMap(([name, by]) => {
    if (REQUIRED_BY[name]?.(pod) !== true) return [];
    // the kubelet uses its own gates, not an earlier node status
    if (!isGateOn(config.profile, config.featureGates, name)) return [name];
    if (by === "kubelet") return [];
    if (declared === undefined) needs.add("node.status.declaredFeatures");
    return declared?.includes(name) === false ? [name] : [];
  });
  if (missing.length === 0) return [];
  const message = `Pod requires node features that are not available: ${missing.join(", ")}`;
  return [{ reason: "PodFeatureUnsupported", message }];
}

interface Handler {
  readonly name: AdmissionHandler;
  readonly check: (admitting: AdmissionContext) => readonly Refused[];
}
/** The inputs that the handlers need beside the admission itself. */
interface HandlerInputs {
  /** The pod with its pod-level resources whatever the gate. */
  readonly asked: Pod;
  readonly unsafe: UnsafeSysctls;
  readonly managers: ((pod: Pod) => Refused | null) | undefined;
  readonly predicates: Predicates;
}

/** The handlers in the order in which the kubelet asks them; the first refusal is the pod's. kubelet 1.36: NewMainKubelet. */
const handlersFor = ({ asked, unsafe, managers, predicates }: HandlerInputs): readonly Handler[] => [
  { name: "eviction", check: evictionRefusals },
  { name: "sysctl", check: (a) => sysctlRefusals(a, unsafe) },
  { name: "resources", check: ({ pod }) => [managers?.(pod) ?? []].flat() },
  { name: "predicates", check: () => predicates.refusals },
  { name: "app-armor", check: appArmorRefusals },
  { name: "pod-features", check: (a) => podFeatureRefusals(a, asked) },
  { name: "declared-features", check: declaredFeatureRefusals },
  { name: "shutdown", check: shutdownRefusals },
];

const SHUTTING_DOWN = "node is shutting down";
/**
 * Refuses if the node is shutting down, which the kubelet reports in its Ready condition. kubelet 1.36: nodeshutdown
 * managerImpl.Admit.
 */
function shutdownRefusals({ node, kubelet }: AdmissionContext): readonly Refused[] {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  if (!(kubelet.shuttingDown ?? ready?.message?.includes(SHUTTING_DOWN))) return [];
  return [{ reason: "NodeShutdown", message: "Pod was rejected as the node is shutting down." }];
}

/** All refusals in the handlers' order; the kubelet reports the first. */
function askHandlers(admitting: AdmissionContext, inputs: HandlerInputs): readonly WouldRefuse[] {
  const all = handlersFor(inputs).flatMap(({ name, check }) =>
    check(admitting).map((refused) => ({ handler: name, reason: refused.reason, message: refused.message })),
  );
  return all.map((refused, i) => ({ ...refused, shown: i === 0 }));
}

/**
 * Refuses under pressure, where the node's conditions stand for the eviction manager's state. kubelet 1.36: eviction
 * managerImpl.Admit.
 */
function evictionRefusals({ pod, node, reasons, needs }: AdmissionContext): readonly Refused[] {
  const conditions = node.status?.conditions;
  if (conditions === undefined) needs.add("node.status.conditions");
  const pressures = PRESSURE_CONDITIONS.filter((type) =>
    conditions?.some((c) => c.type === type && c.status === "True"),
  );
  if (pressures.length === 0) return [];
  const refusal = refusalUnderPressure(pod, pressures);
  const [critical, qos] = [isCriticalPod(pod), qosClass(pod)];
  reasons.add("node_under_pressure", "eviction", "admit", { conditions: pressures.join(" "), critical, qosClass: qos });
  return refusal === null ? [] : [refusal];
}

const isConfined = (p: AppArmorProfile | undefined): boolean => p !== undefined && p.type !== "Unconfined";
const refused = (what: string): Refused => ({ reason: "AppArmor", message: `Cannot enforce AppArmor: ${what}` });

/**
 * Refuses a pod that has not started if the host does not enforce AppArmor or a profile has no name. kubelet 1.36:
 * appArmorAdmitHandler.
 */
function appArmorRefusals({ pod, kubelet, needs }: AdmissionContext): readonly Refused[] {
  const phase = pod.status?.phase ?? "";
  // a new pod is Pending
  if ((phase !== "" && phase !== "Pending") || !isRequired(pod)) return [];
  if (kubelet.appArmor === undefined) needs.add("kubelet.appArmor");
  if (kubelet.appArmor === false) return [refused("AppArmor is not enabled on the host")];
  const nameless = containersOf(pod)
    .map((c) => profileOf(pod, c))
    .find((p) => p?.type === "Localhost" && (p.localhostProfile ?? "").trim() === "");
  return nameless === undefined ? [] : [refused(`invalid empty AppArmor profile name: ${quote(goText(nameless))}`)];
}

function isRequired(pod: Pod): boolean {
  if (isConfined(pod.spec.securityContext?.appArmorProfile)) return true;
  if (containersOf(pod).some((c) => isConfined(c.securityContext?.appArmorProfile))) return true;
  const annotations = Object.entries(pod.metadata.annotations ?? {}).filter(([k]) =>
    k.startsWith(APP_ARMOR_ANNOTATION),
  );
  // the kubelet checks a random one of the annotations; here any that requires a profile counts
  return annotations.some(([, profile]) => profile !== "unconfined");
}

/** A container's profile: its own, else the annotation's, else the pod's. kubernetes 1.36: apparmor.GetProfile. */
function profileOf(pod: Pod, c: Container): AppArmorProfile | undefined {
  return (
    c.securityContext?.appArmorProfile ??
    annotated(own(pod.metadata.annotations, `${APP_ARMOR_ANNOTATION}${c.name}`)) ??
    pod.spec.securityContext?.appArmorProfile
  );
}
function annotated(text: string | undefined): AppArmorProfile | undefined {
  if (text === "runtime/default") return { type: "RuntimeDefault" };
  if (text === "unconfined") return { type: "Unconfined" };
  const localhost = "localhost/";
  return text?.startsWith(localhost)
    ? { type: "Localhost", localhostProfile: text.slice(localhost.length) }
    : undefined;
}
/** The profile as Go's generated code prints it. */
const goText = ({ type, localhostProfile }: AppArmorProfile): string =>
  `&AppArmorProfile{Type:${type},LocalhostProfile:${localhostProfile === undefined ? "nil" : `*${localhostProfile}`},}`;

/** The node's resource managers, as the caller supplies them. */
export interface ManagersAtHand {
  /** Returns why the managers refuse the pod, or null. */
  readonly managers?: (pod: Pod) => Refused | null;
  /** Returns what they would assign to its containers; called after `managers`, and only if that returned null. */
  readonly assigned?: (pod: Pod) => TopologyDecision["assigned"];
  /** Returns the whole devices of each resource that containers hold, for a pod that holds some; else an empty map. */
  readonly heldDevices?: (pod: Pod) => ReadonlyMap<string, number>;
  /** False: no pod is preempted for this pod, even if it is critical. */
  readonly preempts?: boolean;
}

/**
 * Decides by all admission handlers whether the kubelet admits a pod, in the kubelet's words, with all refusals and what would change the
 * answer. Errors: the ask has no pod or an unknown one, the node does not list its allocatable, or
 * allowedUnsafeSysctls keeps the kubelet from starting. kubelet 1.36: allocation manager AddPod.
 */
export function decideByAdmitHandlers(
  { snapshot, ask, explain }: EffectiveArguments<PodAsk>,
  at: ManagersAtHand = {},
): Result<DecidedOf<"admission">, Refusal> {
  const reasons = new Reasons<ReasonCode<"admission">>(explain);
  const prepared = prepare(snapshot, ask, reasons);
  if (!prepared.ok) return prepared;
  const { admitting, asked } = prepared.value;
  const allocatable = allocatableOf(admitting.node);
  if (!allocatable.ok) return allocatable;
  const { allowedUnsafeSysctls, profile } = admitting.config;
  const unsafe = unsafeSysctls(allowedUnsafeSysctls, profile.behaviour.namespacedSysctls);
  if (!unsafe.ok) {
    const message = `kubeletConfiguration.allowedUnsafeSysctls: ${unsafe.error}`;
    return err({ code: "invalid_configuration", message, needs: [] });
  }
  const failures = findFailures(admitting, allocatable.value, at.heldDevices?.(admitting.pod) ?? new Map());
  const predicates = checkPredicates(admitting, failures, at.preempts ?? true);
  const wouldRefuse = askHandlers(admitting, { asked, unsafe: unsafe.value, managers: at.managers, predicates });
  const decision = answer(prepared.value, predicates, wouldRefuse, at);
  const verdict = decision.admit ? "decided" : "refused";
  return ok({ decision, verdict, reasons: reasons.list, needs: [...admitting.needs], next: null });
}

function answer(
  { admitting, asked, onNode }: Prepared,
  predicates: Predicates,
  wouldRefuse: readonly WouldRefuse[],
  at: ManagersAtHand,
): AdmissionDecision {
  const { pod, reasons } = admitting;
  const { resources, preemption } = predicates;
  const shown = wouldRefuse[0];
  const prevented = wouldRefuse.some(({ handler }) => BEFORE_PREEMPTION.has(handler));
  const preempt = prevented ? [] : (preemption?.preempt ?? []);
  if (preemption !== null) explainVictims(preemption, reasons);
  if (preempt.length > 0 && shown !== undefined) {
    reasons.add("preempted_in_vain", "preemption", "preempt", { handler: shown.handler, pods: preempt.length });
  }
  const lacking = new Set(resources.map(({ resource }) => `OutOf${resource}`)).add(NOT_RECOVERED);
  const others = wouldRefuse.filter(({ handler, reason }) => handler !== "predicates" || !lacking.has(reason)).length;
  const refusedByManagers = wouldRefuse.some(({ handler }) => handler === "resources");
  return {
    pod: podRef(asked),
    onNode,
    startErrors: [],
    critical: isCriticalPod(pod),
    admit: shown === undefined,
    reason: shown?.reason ?? "",
    message: shown?.message ?? "",
    preempt,
    wouldRefuse,
    resources,
    preemption,
    counterfactuals: counterfactualsOf(pod, resources, preemption, others),
    assigned: refusedByManagers ? null : (at.assigned?.(pod) ?? null),
  };
}
/** Handlers that run before preemption: their refusal prevents it. Later handlers refuse after pods were preempted. */
const BEFORE_PREEMPTION: ReadonlySet<string> = new Set(["eviction", "sysctl", "resources", "predicates"]);

/** The kubelet's full admission of a pod: all handlers, with the resource managers that the snapshot describes. */
export function decideAdmission(
  asked: EffectiveArguments<PodAsk>,
  more: Pick<ManagersAtHand, "preempts"> = {},
): Result<DecidedOf<"admission">, Refusal> {
  const needs: string[] = [];
  const started = managedNode(asked.snapshot, needs);
  if (!started.ok) {
    // without the machine's topology the other handlers still answer
    return started.error.code === "needs_input"
      ? withNeeds(decideByAdmitHandlers(asked, more), started.error.needs)
      : started;
  }
  if (!started.value.ok) return withStartErrors(decideByAdmitHandlers(asked, more), started.value.error);
  const { next, ...hands } = managerAttempts(started.value.value);
  const answer = withNeeds(decideByAdmitHandlers(asked, { ...hands, ...more }), needs);
  return answer.ok && answer.value.decision.admit ? ok({ ...answer.value, next: next() }) : answer;
}

type Answer = Result<DecidedOf<"admission">, Refusal>;

const withNeeds = (answer: Answer, needs: readonly string[]): Answer =>
  answer.ok ? ok({ ...answer.value, needs: [...new Set([...answer.value.needs, ...needs])] }) : answer;

/** The answer of a kubelet that does not start: it admits no pod, whatever its handlers would answer. */
function withStartErrors(answer: Answer, startErrors: readonly string[]): Answer {
  if (!answer.ok) return answer;
  const because = startErrors.map((message) => ({
    code: "kubelet_does_not_start" as const,
    field: "admit",
    numbers: { message },
  }));
  return ok({
    ...answer.value,
    decision: notStarted(answer.value.decision, startErrors),
    verdict: "kubelet-refuses",
    reasons: [...answer.value.reasons, { at: "node", because }],
  });
}

/** The decision without the handlers' refusals and counterfactuals, which do not apply. */
const notStarted = (decision: AdmissionDecision, startErrors: readonly string[]): AdmissionDecision => ({
  ...decision,
  startErrors,
  admit: false,
  reason: "",
  message: "",
  preempt: [],
  wouldRefuse: decision.wouldRefuse.map((refusal) => ({ ...refusal, shown: false })),
  counterfactuals: [],
});

interface AdmissionAttempt {
  readonly managers: Managers;
  readonly admission: Admission | null;
}

/** Tries each pod once, in the managers' working copies. `next`: the state files after the last one is admitted. */
function managerAttempts(node: ManagedNode): ManagersAtHand & { readonly next: () => unknown } {
  const tried = new Map<string, AdmissionAttempt>();
  const tryOne = (asking: Pod): AdmissionAttempt & { readonly pod: Pod } => {
    const pod = withUid(asking);
    const uid = podUid(pod) as string;
    const known = tried.get(uid);
    if (known !== undefined) return { ...known, pod };
    const managers = managersOf(node, pod);
    const admission = admit(node, managers, pod);
    const done = { managers, admission: admission.ok ? admission.value : null };
    tried.set(uid, done);
    return { ...done, pod };
  };
  return {
    managers: (asking) => {
      const refusal = tryOne(asking).admission?.refusal ?? null;
      return refusal === null ? null : { reason: refusal.reason, message: refusal.message };
    },
    assigned: (asking) => {
      const { managers, pod } = tryOne(asking);
      return assignedOf(managers, pod);
    },
    heldDevices: (asking) => {
      const { managers, pod } = tryOne(asking);
      const { state } = managers.devices;
      return state.pods.has(podUid(pod) as string) ? state.allocated() : new Map();
    },
    next: () => {
      const last = [...tried.values()].at(-1);
      return last === undefined ? null : nextState(node, last.managers);
    },
  };
}
