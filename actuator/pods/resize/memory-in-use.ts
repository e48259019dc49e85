import { podCgroupValues } from "../../../api/decide/cgroups/pod-config.ts";
import { Reasons } from "../../../api/decide/reasons.ts";
import { podRequests } from "../../../api/decide/resources/pod-resources.ts";
import { computeQosClass } from "../../../api/decide/resources/qos.ts";
import { value, ZERO } from "../../../api/model/amount.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import { micros } from "../../../api/model/units.ts";
import type { Hierarchy } from "../../cgroupfs/hierarchy.ts";
import type { RuntimePod } from "../../lifecycle/runtime-pod.ts";
import type { PodCgroups } from "../cgroup-view.ts";

/** Of v1 and of v2. */
const FILES = {
  1: { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", cache: "total_cache" },
  2: { limit: "memory.max", usage: "memory.current", cache: "file" },
} as const;

/**
 * Why a pod cannot have the memory limits of `pod` now: more than that is in use. Null: nothing is in the way. The kernel
 * of v1 would refuse, that of v2 would kill. Only what comes down is looked at. kubelet 1.36: validateMemoryResizeAction.
 * `sparesCache` false: what the kernel can drop is not counted.
 */
export function memoryInUse(
  hierarchy: Hierarchy,
  pod: Pod,
  cgroups: PodCgroups,
  seen: RuntimePod | null,
  options: { readonly sparesCache: boolean } = { sparesCache: true },
): string | null {
  const errors: string[] = [];
  const ofPod = podLimit(pod);
  const inPod = ofPod === null ? null : usageAbove(hierarchy, cgroups.path, ofPod, options);
  if (inPod !== null) errors.push(`attempting to set pod memory limit (${ofPod}) below current usage (${inPod})`);
  for (const { name, resources } of containersOf(pod)) {
    const id = seen?.containers.find((c) => c.name === name && c.state === "running")?.id ?? "";
    const path = cgroups.containers.get(id);
    const limit = value(resources?.limits?.["memory"]?.amount ?? ZERO);
    const used = path === undefined || limit === 0 ? null : usageAbove(hierarchy, path, limit, options);
    if (used !== null)
      errors.push(`attempting to set container "${name}" memory limit (${limit}) below current usage (${used})`);
  }
  if (errors.length === 0) return null;
  return `cannot decrease memory limits: ${errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`}`;
}

/** In bytes; null: the pod's cgroup has none. */
function podLimit(pod: Pod): number | null {
  const options = {
    requests: podRequests(pod),
    qos: computeQosClass(pod),
    quotaOff: undefined,
    period: micros(100_000),
  };
  const { memory = 0 } = podCgroupValues(pod, options, "", new Reasons("off"));
  return memory > 0 ? memory : null;
}

/** What is in use, where the limit would come down to it or below; null: it would not, or the kernel does not tell. */
function usageAbove(
  hierarchy: Hierarchy,
  path: string,
  limit: number,
  { sparesCache }: { readonly sparesCache: boolean },
): bigint | null {
  const files = FILES[hierarchy.version];
  const [now, all] = [numberIn(hierarchy, path, files.limit), numberIn(hierarchy, path, files.usage)];
  if (now === null || BigInt(limit) >= now || all === null) return null;
  const usage = sparesCache ? all : all - cacheIn(hierarchy, path, files.cache);
  return usage >= BigInt(limit) ? usage : null;
}

function cacheIn(hierarchy: Hierarchy, path: string, name: string): bigint {
  const stat = hierarchy.read(path, "memory.stat");
  const found = stat.ok ? new RegExp(`^${name} (\\d+)$`, "m").exec(stat.value)?.[1] : undefined;
  return BigInt(found ?? 0);
}

/** `max` is more than any number. */
function numberIn(hierarchy: Hierarchy, path: string, file: string): bigint | null {
  const text = hierarchy.read(path, file);
  if (!text.ok) return null;
  const trimmed = text.value.trim();
  if (trimmed === "max") return 2n ** 63n;
  return /^\d+$/.test(trimmed) ? BigInt(trimmed) : null;
}
