import { isCriticalPod, type QosClass, qosClass } from "../../api/decide/resources/qos.ts";
import { perObject } from "../../api/model/cache.ts";
import { type Pod, pod as podSchema } from "../../api/model/pod.ts";
import { withDefaultRequests } from "../../api/model/pod-defaults.ts";
import type { RunnablePod } from "./pod.ts";

/** A v1.Pod as the decisions read it, with its default requests and without its status. Null: they cannot. */
export const decodedPod = perObject((object: Readonly<Record<string, unknown>>): Pod | null => {
  const { status: _status, ...asked } = object;
  const parsed = podSchema.safeParse(asked);
  return parsed.success ? withDefaultRequests(parsed.data) : null;
});

/** By what it asks for; BestEffort where the decisions cannot read it. */
export function classOf({ object }: RunnablePod): QosClass {
  const decoded = decodedPod(object);
  return decoded === null ? "BestEffort" : qosClass(decoded);
}

/** kubelet 1.36: IsCriticalPod. */
export function isCritical({ object }: RunnablePod): boolean {
  const decoded = decodedPod(object);
  return decoded !== null && isCriticalPod(decoded);
}
