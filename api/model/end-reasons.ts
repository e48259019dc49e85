import { similarName } from "../base/near-name.ts";
import { EVICTION_CAUSES, EVICTION_SIGNALS, PRESSURE_CONDITIONS } from "./eviction.ts";

/** The reasons with which a kubelet refuses a pod, beside `OutOf...`. kubelet 1.34 to 1.37: lifecycle handlers and predicates. */
export const POD_REFUSALS: readonly string[] = [
  "AppArmor",
  "EmptyPodSharedPoolError",
  "InvalidNodeInfo",
  "NodeAffinity",
  "NodeName",
  "NodePorts",
  "NodeShutdown",
  "PodFeatureUnsupported",
  "PodLevelResourcesNotSupported",
  "PodOSNotSupported",
  "PodOSSelectorNodeLabelDoesNotMatch",
  "SMTAlignmentError",
  "SupplementalGroupsPolicyNotSupported",
  "SysctlForbidden",
  "TaintToleration",
  "TopologyAffinityError",
  "UnexpectedAdmissionError",
  "UnexpectedPredicateFailureType",
  "VolumeAttachmentLimitExceeded",
];

/** What the condition DisruptionTarget says of a preempted pod. kubelet 1.36: CriticalPodAdmissionHandler. */
export const PREEMPTED = "Pod was preempted by Kubelet to accommodate a critical pod.";
/** What its status and its event say. kubelet 1.36: preemption's `message`, evictPodsToFreeRequests. */
export const PREEMPTING = "Preempted in order to admit critical pod";
/** The message of a pod that a shutdown of its node ended. kubelet 1.36: nodeshutdown. */
export const SHUTDOWN = "Pod was terminated in response to imminent node shutdown.";

/**
 * All reasons of decisions and outcomes, in the kubelet's words; for resources of other names there are more of the
 * form `OutOf...`.
 */
export const END_REASONS: readonly string[] = [
  ...["OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods"],
  ...POD_REFUSALS,
  ...["Evicted", "Preempting", "FailedPrepareDynamicResources", "CreateContainerConfigError"],
  ...["Error", "Deferred", "Infeasible", "Rejected"],
  ...EVICTION_SIGNALS,
  ...EVICTION_CAUSES,
  ...PRESSURE_CONDITIONS,
  ...["FreeDiskSpaceFailed", "InvalidDiskCapacity", "ImageGCFailed", "ContainerGCFailed"],
];

/** Matches a reason such as `OutOfhugepages-2Mi` or `OutOfexample.com/gpu`. */
export const OF_A_RESOURCE = /^OutOf(?:hugepages-|.*\/)/;

/** The known reasons as a pattern for JSON Schema. */
export const END_REASON_PATTERN = `^(?:${END_REASONS.map((one) => one.replaceAll(".", "\\.")).join("|")}|OutOfhugepages-.*|OutOf.*/.*)$`;

/** Whether a kubelet may give this reason, including `OutOf...` for a resource of any name. */
const isKnown = (reason: string): boolean => END_REASONS.includes(reason) || reason.startsWith("OutOf");

/**
 * What is wrong with a reason in a filter, with the one that may have been meant; null: kubelets may give it. A reason
 * that differs from a known one by few letters or by case counts as a mistake. `mayBeOther`: kubelets may have
 * reported reasons that are not known here.
 */
export function reasonFault(
  asked: string,
  mayBeOther = false,
): { readonly message: string; readonly near?: string } | null {
  const near = suggestReason(asked);
  if (near !== null) return { message: `there is no \`${asked}\`; did you mean ${near}?`, near };
  if (mayBeOther || isKnown(asked)) return null;
  return { message: `there is no \`${asked}\`: kubelets give ${END_REASONS.join(", ")}` };
}

/**
 * The known reason that an unknown one may stand for, by letters or case; null: the reason is known, or is like none.
 */
function suggestReason(asked: string): string | null {
  if (END_REASONS.includes(asked) || OF_A_RESOURCE.test(asked)) return null;
  return similarName(asked, END_REASONS);
}
