import type { PodAsk } from "../../model/ask.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import type { TopologyDecision } from "../../model/managers.ts";
import { own } from "../../model/own.ts";
import { APP_ARMOR_ANNOTATION, type AppArmorProfile } from "../../model/placement.ts";
import { type Container, containersOf, type Pod, podRef, podUid } from "../../model/pod.ts";
import {
  type AdmissionDecision,
  type AdmissionHandler,
  NOT_RECOVERED,
  type WouldRefuse,
} from "../../model/preemption.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { type EffectiveAsked, gateOn } from "../../profiles/effective.ts";
import { isGateOn } from "../../profiles/profile.ts";
import { checkPredicates, findFailures, type Predicates } from "../admission/predicates.ts";
import { type Admitting, allocatableOf, type Prepared, prepare, type Refused } from "../admission/prepare.ts";
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

/** `asked`: the pod with its pod-level resources, which a kubelet without the gate does not see elsewhere. kubelet 1.36: podFeaturesAdmitHandler. */
function podFeatureRefusals({ config }: Admitting, asked: Pod): readonly Refused[] {
  if (gateOn(config, "PodLevelResources") || !isPodLevelResourcesSet(asked)) return [];
  return [{ reason: "PodLevelResourcesNotSupported", message: "PodLevelResources feature gate is disabled" }];
}

/** Which pods need a feature of their node, by its name. */
const REQUIRED_BY: Readonly<Record<string, (pod: Pod) => boolean>> = {
  RestartAllContainersOnContainerExits: (pod) =>
    containersOf(pod).some((c) => c.restartPolicyRules?.some(({ action }) => action === "RestartAllContainers")),
  UserNamespacesHostNetworkSupport: ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false,
  VolumeBindMountOptions: (pod) =>
    [...containersOf(pod), ...(pod.spec.ephemeralContainers ?? [])].some((c) => c.volumeMounts !== undefined),
};

/** kubelet 1.36: declaredFeaturesAdmitHandler, discoverNodeDeclaredFeatures. */
function declaredFeatureRefusals({ pod, node, config, needs }: Admitting): readonly Refused[] {
  if (!gateOn(config, "NodeDeclaredFeatures")) return [];
  const { declaredFeatures } = config.profile.behaviour;
  const declared = node.status?.declaredFeatures;
  const missing = [...declaredFeatures].flatMap(([name, by]) => {
    if (REQUIRED_BY[name]?.(pod) !== true) return [];
    // the kubelet goes by its own gates, not by what the node's status told before
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
  readonly check: (admitting: Admitting) => readonly Refused[];
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
/** The kubelet says so itself in the node's Ready condition. kubelet 1.36: nodeshutdown managerImpl.Admit. */
function shutdownRefusals({ node, kubelet }: Admitting): readonly Refused[] {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  if (!(kubelet.shuttingDown ?? ready?.message?.includes(SHUTTING_DOWN))) return [];
  return [{ reason: "NodeShutdown", message: "Pod was rejected as the node is shutting down." }];
}

/** Everything that would refuse, in order; the first is the one that the kubelet shows. */
function askHandlers(admitting: Admitting, inputs: HandlerInputs): readonly WouldRefuse[] {
  const all = handlersFor(inputs).flatMap(({ name, check }) =>
    check(admitting).map((refused) => ({ handler: name, reason: refused.reason, message: refused.message })),
  );
  return all.map((refused, i) => ({ ...refused, shown: i === 0 }));
}

/** The node's conditions stand for what the eviction manager holds on to. kubelet 1.36: eviction managerImpl.Admit. */
function evictionRefusals({ pod, node, reasons, needs }: Admitting): readonly Refused[] {
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

/** A pod that has not started needs a host that enforces its profiles, and names for them. kubelet 1.36: appArmorAdmitHandler. */
function appArmorRefusals({ pod, kubelet, needs }: Admitting): readonly Refused[] {
  const phase = pod.status?.phase ?? "";
  // a pod that is created is Pending
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
  // the kubelet looks at one of them, whichever Go's map gives first; here any that asks for a profile counts
  return annotations.some(([, profile]) => profile !== "unconfined");
}

/** The container's own, else that of the annotation, else the pod's. kubernetes 1.36: apparmor.GetProfile. */
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
/** As Go's generated code prints the profile. */
const goText = ({ type, localhostProfile }: AppArmorProfile): string =>
  `&AppArmorProfile{Type:${type},LocalhostProfile:${localhostProfile === undefined ? "nil" : `*${localhostProfile}`},}`;

/** The resource managers of the node, as the caller has put them together. */
export interface ManagersAtHand {
  /** Why they refuse the pod, or null. */
  readonly managers?: (pod: Pod) => Refused | null;
  /** The amounts that they would give its containers; asked after `managers`, and only where that gave null. */
  readonly assigned?: (pod: Pod) => TopologyDecision["assigned"];
  /** Whole devices that containers hold of each resource, for a pod that holds some itself; else an empty map. */
  readonly heldDevices?: (pod: Pod) => ReadonlyMap<string, number>;
  /** False: nobody is ended for the pod, even if it is critical. */
  readonly preempts?: boolean;
}

/**
 * Decides whether the kubelet admits a pod, in its words, with every reason that would refuse it and what would change the
 * answer. Errors: no pod in the ask, one that is not there, a node that does not say what it can give, and allowedUnsafeSysctls
 * that no kubelet starts with. kubelet 1.36: allocation manager AddPod.
 */
export function decideAdmission(
  { snapshot, ask, explain }: EffectiveAsked<PodAsk>,
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
/** Handlers whose refusal keeps the kubelet from making room; when those after them refuse, it has been made. */
const BEFORE_PREEMPTION: ReadonlySet<string> = new Set(["eviction", "sysctl", "resources", "predicates"]);

/** The kubelet's whole answer to a pod: its handlers, and among them the resource managers as the snapshot has them. */
export function decideWithManagers(
  asked: EffectiveAsked<PodAsk>,
  more: Pick<ManagersAtHand, "preempts"> = {},
): Result<DecidedOf<"admission">, Refusal> {
  const needs: string[] = [];
  const started = managedNode(asked.snapshot, needs);
  if (!started.ok) {
    // without the machine's topology the other handlers still answer
    return started.error.code === "needs_input"
      ? withNeeds(decideAdmission(asked, more), started.error.needs)
      : started;
  }
  if (!started.value.ok) return withStartErrors(decideAdmission(asked, more), started.value.error);
  const { next, ...hands } = atHand(started.value.value);
  const answer = withNeeds(decideAdmission(asked, { ...hands, ...more }), needs);
  return answer.ok && answer.value.decision.admit ? ok({ ...answer.value, next: next() }) : answer;
}

type Answer = Result<DecidedOf<"admission">, Refusal>;

const withNeeds = (answer: Answer, needs: readonly string[]): Answer =>
  answer.ok ? ok({ ...answer.value, needs: [...new Set([...answer.value.needs, ...needs])] }) : answer;

/** A kubelet that does not start lets nobody in, whatever its handlers would have said. */
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

/** No handler's words would be shown, and no change of the pod would let it in. */
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

interface Tried {
  readonly managers: Managers;
  readonly admission: Admission | null;
}

/** Each pod is tried once, in working copies of its own. `next`: the state files once the last one is in. */
function atHand(node: ManagedNode): ManagersAtHand & { readonly next: () => unknown } {
  const tried = new Map<string, Tried>();
  const tryOne = (asking: Pod): Tried & { readonly pod: Pod } => {
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
