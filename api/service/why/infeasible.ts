import type { Change, FindingOf } from "../../model/why.ts";

export type ResizeCause = FindingOf<"resize-infeasible">["numbers"]["cause"];

/**
 * Kubelets' words for a resize that can never be, 1.34 to 1.37 (podResizesAdmitHandler, features_*.go), and those of the API
 * server's checks, which a node that has no API server makes itself (ValidatePodResize, the admission plugin PodResize).
 */
const WORDS: readonly (readonly [form: RegExp, cause: ResizeCause])[] = [
  [/didn't have enough (?:capacity|allocatable resources):/, "capacity"],
  [/alongside CPU Manager policy/, "cpu-manager-policy"],
  [/alongside Memory Manager policy/, "memory-manager-policy"],
  [/^In-place resize of containers with swap/, "swap"],
  [/^Memory-backed emptyDir volume resize/, "memory-volume"],
  [/^In-place resize of static-pods/, "static-pod"],
  [/^In-place pod(?:-level resources)? resize is not supported on/, "platform"],
  [/^\w+ is disabled$/, "feature-gate"],
  [/^Pod QOS Class may not change|cannot be removed$|^only cpu and memory resources are mutable/, "not-resizable"],
];
export const resizeCause = (message: string): ResizeCause =>
  WORDS.find(([form]) => form.test(message))?.[1] ?? "unknown";

/** Whether an API server says this of a patch, or what does its part where there is none. */
export const isOfApiServer = (message: string): boolean =>
  resizeCause(message) === "not-resizable" || message.startsWith("node didn't have enough allocatable resources:");

/** Changes after which the kubelet would look at such a resize; none for a cause that lies in the pod or in the node's size. */
export function waysToResize(cause: ResizeCause, message: string): readonly Change[] {
  switch (cause) {
    case "cpu-manager-policy":
      return [setting("InPlacePodVerticalScalingExclusiveCPUs", "cpuManagerPolicy: none")];
    case "memory-manager-policy":
      return [setting("InPlacePodVerticalScalingExclusiveMemory", "memoryManagerPolicy: None")];
    case "memory-volume":
      return message.endsWith("is disabled") ? [setting("InPlacePodVerticalScalingMemoryBackedVolumes")] : [];
    case "feature-gate":
      return [setting(message.replace(/ is disabled$/, ""))];
    case "swap":
      return [{ code: "resize_restart_policy", numbers: {} }];
    default:
      return [];
  }
}
const setting = (gate: string, named?: string): Change => ({
  code: "resize_setting",
  numbers: { gate, ...(named === undefined ? {} : { setting: named }) },
});
