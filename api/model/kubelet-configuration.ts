import * as z from "zod";
import { ref } from "../base/json-schema.ts";
import { LIMITS } from "../base/limits.ts";
import {
  cgroupPath,
  count,
  duration,
  optional,
  resourceList,
  sortedRecord,
  text,
  textMap,
  wholeNumber,
} from "./fields.ts";

const thresholds = optional(textMap());
/** A percentage; the decision that reads it refuses an invalid one, in the kubelet's words. */
const percent = wholeNumber(-2147483648, 2147483647);

/** The fields of kubelet.config.k8s.io/v1beta1 KubeletConfiguration that a decision reads; any subset may be posted. */
const configuration = z.object({
  kind: optional(z.literal("KubeletConfiguration", "must be a KubeletConfiguration")),
  cgroupRoot: optional(cgroupPath),
  cgroupsPerQOS: optional(z.boolean()),
  cgroupDriver: optional(z.enum(["cgroupfs", "systemd", ""])),
  cpuManagerPolicy: optional(z.enum(["none", "static", ""])),
  cpuManagerPolicyOptions: optional(textMap()),
  memoryManagerPolicy: optional(z.enum(["None", "Static", ""])),
  topologyManagerPolicy: optional(z.enum(["none", "best-effort", "restricted", "single-numa-node", ""])),
  topologyManagerScope: optional(z.enum(["container", "pod", ""])),
  topologyManagerPolicyOptions: optional(textMap()),
  maxPods: optional(wholeNumber(0, 1_000_000)),
  podsPerCore: optional(wholeNumber(0, 1_000_000)),
  podPidsLimit: optional(wholeNumber(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  cpuCFSQuota: optional(z.boolean()),
  cpuCFSQuotaPeriod: optional(duration),
  memorySwap: optional(z.object({ swapBehavior: optional(z.enum(["NoSwap", "LimitedSwap", ""])) })),
  memoryThrottlingFactor: optional(z.number().gt(0).max(1)),
  memoryReservationPolicy: optional(z.enum(["None", "TieredReservation", ""])),
  singleProcessOOMKill: optional(z.boolean()),
  qosReserved: optional(textMap()),
  systemReserved: optional(resourceList),
  kubeReserved: optional(resourceList),
  reservedSystemCPUs: optional(text),
  systemReservedCgroup: optional(cgroupPath),
  kubeReservedCgroup: optional(cgroupPath),
  enforceNodeAllocatable: optional(z.array(text).max(16)),
  localStorageCapacityIsolation: optional(z.boolean()),
  evictionHard: thresholds,
  evictionSoft: thresholds,
  evictionSoftGracePeriod: thresholds,
  evictionMinimumReclaim: thresholds,
  evictionMaxPodGracePeriod: optional(wholeNumber(0, 2147483647)),
  evictionPressureTransitionPeriod: optional(duration),
  mergeDefaultEvictionSettings: optional(z.boolean()),
  nodeStatusUpdateFrequency: optional(duration),
  imageGCHighThresholdPercent: optional(percent),
  imageGCLowThresholdPercent: optional(percent),
  imageMinimumGCAge: optional(duration),
  imageMaximumGCAge: optional(duration),
  reservedMemory: optional(z.array(z.object({ numaNode: count, limits: optional(resourceList) })).max(64)),
  crashLoopBackOff: optional(z.object({ maxContainerRestartPeriod: optional(duration) })),
  featureGates: optional(sortedRecord(text, z.boolean(), LIMITS.labels)),
  allowedUnsafeSysctls: optional(z.array(text).max(LIMITS.labels)),
  failSwapOn: optional(z.boolean()),
  failCgroupV1: optional(z.boolean()),
});
export type KubeletConfiguration = z.output<typeof configuration>;

type Configz = { readonly kubeletconfig?: unknown } | null | undefined;

/** The object with the fields: the document itself, or the content of /configz. */
export const unwrapped = (document: unknown): unknown => (document as Configz)?.kubeletconfig ?? document;
/** `{"kubeletconfig": ...}` of the kubelet's /configz is taken as it is. */
export const kubeletConfiguration = z.preprocess(unwrapped, configuration);
/** The JSON Schema of a KubeletConfiguration, alone or as /configz wraps it. */
export const configurationMeta = {
  anyOf: [
    ref("KubeletConfiguration"),
    {
      type: "object",
      description: "the answer of the kubelet's /configz",
      required: ["kubeletconfig"],
      properties: { kubeletconfig: ref("KubeletConfiguration") },
    },
  ],
};
/** The path of the fields in a document, for the places of faults. */
export const configurationPath = (document: unknown): readonly string[] =>
  ((document as Configz)?.kubeletconfig ?? undefined) === undefined ? [] : ["kubeletconfig"];
