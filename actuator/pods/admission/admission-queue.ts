import { byText } from "../../../api/base/order.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { AdmissionDecision } from "../../../api/model/admission.ts";
import { namespacedName } from "../../../api/model/forms.ts";
import type { Victim } from "../../../api/model/preemption.ts";
import type { DecisionAnswer, DecisionClient, Problem } from "../../core/interfaces.ts";
import { isCritical } from "../../lifecycle/decoded-pod.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import { endOf, PREEMPTED } from "../../lifecycle/pod-state.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import type { KnownPod } from "../records/pod-set.ts";

/** The reason of a waiting pod that was not tried yet. */
export const FORMER_VERSION = "FormerVersionEnding";
/** Reason of a pod that another kubelet would end as soon as it runs, and of its containers. */
export const OTHER_KUBELET = "OtherKubelet";
export const WAITS_FOR_VICTIMS = "WaitingForVictims";

/**
 * Waiting pods in admission order: critical ones first, then by priority, then by arrival. Pods that arrived together: the
 * older object first, then the earlier file, then the order of the source.
 */
export function inAdmissionOrder(pods: readonly KnownPod[]): readonly KnownPod[] {
  const rank = ({ pod }: KnownPod): number => Number(isCritical(pod));
  const priority = ({ pod }: KnownPod): number => pod.spec.priority ?? 0;
  return pods.toSorted(
    (a, b) =>
      rank(b) - rank(a) ||
      priority(b) - priority(a) ||
      a.record.seenAtMs - b.record.seenAtMs ||
      createdAtMs(a) - createdAtMs(b) ||
      byText(a.record.file ?? "", b.record.file ?? ""),
  );
}
/** When the pod was created; a manifest has no time. */
function createdAtMs({ pod }: KnownPod): number {
  const { creationTimestamp } = pod.object["metadata"] as { readonly creationTimestamp?: unknown };
  const atMs = typeof creationTimestamp === "string" ? Date.parse(creationTimestamp) : 0;
  return Number.isNaN(atMs) ? 0 : atMs;
}

/** The living pod with the same name and another uid: the former version of a manifest. Null: there is none. */
export const formerVersionOf = ({ uid, pod }: KnownPod, living: readonly KnownPod[]): KnownPod | null =>
  living.find((other) => other.uid !== uid && other.pod.name === pod.name && other.pod.namespace === pod.namespace) ??
  null;

/** The result for a pod that is to be admitted. */
export type Admitted =
  | { readonly kind: "in"; readonly answer: DecisionAnswer }
  /** The pod is admitted once the victims are gone. */
  | { readonly kind: "after"; readonly victims: readonly Victim[]; readonly answer: DecisionAnswer }
  | { readonly kind: "refused"; readonly reason: string; readonly message: string; readonly answer: DecisionAnswer };

/** The holders of taken host ports, which the kubelet's message does not name. */
function portHolders(reasons: DecisionAnswer["reasons"]): string {
  const taken = reasons.flatMap(({ because }) => because.filter(({ code }) => code === "host_port_taken"));
  return taken
    .map(({ numbers: n = {} }) => `; ${n["by"]} has ${n["protocol"]} port ${n["port"]} of ${n["ip"]}`)
    .join("");
}

/** Decides `admission`, and records the decision. Errors: there was no answer, so nothing is known and the pod waits. */
export async function admit(
  client: DecisionClient,
  snapshot: unknown,
  pod: RunnablePod,
): Promise<Result<Admitted, Problem>> {
  const asked = await client.decide("admission", snapshot, { pod: pod.object });
  if (!asked.ok) return err(asked.error);
  const answer = asked.value;
  // an applied decision is in the history, now or later: a crash right after it loses nothing
  await client.commit(answer);
  const { admit: isIn, preempt, reason, message, startErrors } = answer.decision as AdmissionDecision;
  if (startErrors.length > 0) {
    return ok({ kind: "refused", reason: "KubeletDoesNotStart", message: startErrors.join("; "), answer });
  }
  if (!isIn) return ok({ kind: "refused", reason, message: `${message}${portHolders(answer.reasons)}`, answer });
  return ok(preempt.length === 0 ? { kind: "in", answer } : { kind: "after", victims: preempt, answer });
}

/** Ends pods that must make room for another one. Returns their names. */
export function preemptPods(
  lifecycle: PodLifecycle,
  victims: readonly Victim[],
  decisionId: string | null,
  nowMs: number,
): string {
  const end = endOf(PREEMPTED.reason, PREEMPTED.message, nowMs, { decisionId });
  for (const { uid } of victims) lifecycle.handle(uid, { kind: "Preempted", end });
  return victims.map(namespacedName).join(", ");
}
