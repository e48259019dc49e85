import { decideAdmission } from "../../api/decide/kinds/admission.ts";
import { preemptFor } from "../../api/decide/preemption/handler.ts";
import { isCriticalPod } from "../../api/decide/resources/qos.ts";
import { node as nodeSchema } from "../../api/model/placement.ts";
import type { Pod } from "../../api/model/pod.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { decodedPod } from "../kit/pods.ts";
import { type Suite, suite } from "./suite.ts";

interface FailureReason {
  readonly predicate?: string;
  readonly resource?: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}
interface PreemptionInput {
  readonly pod: unknown;
  readonly pods: readonly unknown[];
  readonly failureReasons: readonly FailureReason[];
}
const nameOf = (p: { readonly namespace: string; readonly name: string }): string => `${p.namespace}/${p.name}`;

const preemption = suite({
  read: ({ pod, pods, failureReasons }: PreemptionInput) => ({
    pod: decodedPod(pod),
    pods: pods.map(decodedPod),
    shortages: failureReasons.flatMap(({ resource, ...amounts }) =>
      resource === undefined ? [] : [{ resource, ...amounts }],
    ),
    others: failureReasons.filter(({ predicate }) => predicate !== undefined).length,
  }),
  decide: ({ pod, pods, shortages, others }) =>
    isCriticalPod(pod) && others === 0
      ? { ...preemptFor(pod, pods, shortages), remaining: 0 }
      : { preempt: [], error: null, remaining: isCriticalPod(pod) ? others : others + shortages.length },
  show: ({ preempt, error, remaining }) => ({
    killed: preempt.map(nameOf),
    remainingReasons: remaining,
    ...(error === null ? {} : { error }),
  }),
});

interface AdmissionInput {
  readonly node: unknown;
  readonly pod: unknown;
  readonly otherPods: readonly unknown[];
}
const admission = suite({
  // the functions behind the vectors do not default requests, so the pods are read below that step
  read: ({ node, pod, otherPods }: AdmissionInput): { snapshot: Snapshot; pod: Pod } => ({
    snapshot: { node: nodeSchema.parse(node), pods: otherPods.map(decodedPod) },
    pod: decodedPod(pod),
  }),
  decide: ({ snapshot, pod }, profile) => {
    const asked = { snapshot: effectiveSnapshot(snapshot, profile), facts: {}, ask: { pod }, explain: "off" as const };
    const answer = decideAdmission(asked);
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value.decision;
  },
  show: ({ admit, reason, message, preempt }) => ({ admit, message, preempted: preempt.map(nameOf), reason }),
});

export const ADMISSION_SUITES: Readonly<Record<string, Suite>> = {
  admission,
  preemption,
  // beside pods that are being resized in place
  "x-admission-status": admission,
};
