import type { AdmissionDecision, WouldRefuse } from "../../model/admission.ts";
import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { TopologyDecision } from "../../model/managers.ts";
import { type Pod, podRef } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { counterfactualsOf } from "../preemption/counterfactuals.ts";
import { explainVictims } from "../preemption/explain.ts";
import { Reasons } from "../reasons.ts";
import { isCriticalPod } from "../resources/critical.ts";
import type { Refused } from "./admitting.ts";
import { askHandlers } from "./handlers.ts";
import { checkPredicates, findFailures, NOT_RECOVERED, type Predicates } from "./predicates.ts";
import { allocatableOf, type Prepared, prepare } from "./prepare.ts";
import { unsafeSysctls } from "./sysctls.ts";

/** The resource managers of the node, as the caller has put them together. */
export interface ManagersAtHand {
  /** Why they refuse the pod, or null. */
  readonly managers?: (pod: Pod) => Refused | null;
  /** What they would give its containers; asked after `managers`, and only where that gave null. */
  readonly assigned?: (pod: Pod) => TopologyDecision["assigned"];
  /** Whole devices that containers hold of each resource, for a pod that holds some itself; else an empty map. */
  readonly heldDevices?: (pod: Pod) => ReadonlyMap<string, number>;
}

/**
 * Whether the kubelet lets a pod in, in its words, with every reason that would refuse it and what would turn the answer.
 * Errors: no pod in the ask, one that is not there, a node that does not say what it can give, and allowedUnsafeSysctls
 * that no kubelet starts with. kubelet 1.36: allocation manager AddPod.
 */
export function decideAdmission(
  { snapshot, ask, explain }: Asked<PodAsk>,
  at: ManagersAtHand = {},
): Result<Decided<AdmissionDecision>, Refusal> {
  const reasons = new Reasons(explain);
  const prepared = prepare(snapshot, ask, reasons);
  if (!prepared.ok) return prepared;
  const { admitting, asked } = prepared.value;
  const allocatable = allocatableOf(admitting.node);
  if (!allocatable.ok) return allocatable;
  const unsafe = unsafeSysctls(admitting.config);
  if (!unsafe.ok) {
    const message = `kubeletConfiguration.allowedUnsafeSysctls: ${unsafe.error}`;
    return err({ code: "invalid_configuration", message, needs: [] });
  }
  const failures = findFailures(admitting, allocatable.value, at.heldDevices?.(admitting.pod) ?? new Map());
  const predicates = checkPredicates(admitting, failures);
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
