import * as z from "zod";
import { preemptable } from "../../api/decide/preemption/candidate.ts";
import { isCriticalPod } from "../../api/decide/resources/qos.ts";
import { type AdmissionDecision, admissionDecision } from "../../api/model/admission.ts";
import { allocatableDecision } from "../../api/model/allocatable.ts";
import { type CgroupsDecision, cgroupsDecision } from "../../api/model/cgroups.ts";
import { containerGcDecision } from "../../api/model/container-gc.ts";
import type { Kind } from "../../api/model/decision.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { type EvictionDecision, evictionDecision } from "../../api/model/eviction.ts";
import { wholeNumber } from "../../api/model/fields.ts";
import { answerText, integer, namespacedName, type PodRef } from "../../api/model/forms.ts";
import { imageGcDecision } from "../../api/model/image-gc.ts";
import { type Pod, podRef } from "../../api/model/pod.ts";
import type { PodAsk } from "../../api/model/pod-ask.ts";
import { decideLocally, decodedOnce } from "./local-client.ts";

interface Ordered {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly ask: object | undefined;
  readonly decision: unknown;
}

/**
 * Why a well-formed decision of the API is not carried out: it names a pod or cgroup that the node does not have, ends
 * a pod that no kubelet would end, or admits one that the local core refuses. Null: it is carried out. An API may
 * always be more careful than the core.
 */
export function unsafeOrder(order: Ordered): string | null {
  switch (order.kind) {
    case "admission":
      return unsafeAdmission(order, order.decision as AdmissionDecision);
    case "eviction":
      return unsafeEviction(order, order.decision as EvictionDecision);
    case "cgroups":
      return unknownCgroup(order, order.decision as CgroupsDecision);
    default:
      return null;
  }
}

function unsafeAdmission(
  { snapshot, ask }: Ordered,
  { admit, preempt, startErrors }: AdmissionDecision,
): string | null {
  if (!admit || startErrors.length > 0) return null;
  const here = decideLocally("admission", snapshot, { ask, explain: "off" });
  const asked = decodeAsk("admission", ask ?? null);
  if (!here.ok || !asked.ok) return here.ok ? "decision: answers no pod" : here.error.message;
  const own = here.value.decision as AdmissionDecision;
  if (preempt.length === 0) {
    if (own.admit && own.preempt.length === 0) return null;
    const why = own.startErrors[0] ?? (own.admit ? "others have to end first" : `${own.reason}: ${own.message}`);
    return `decision.admit: admits ${namespacedName(own.pod)}, which is refused here: ${why}`;
  }
  if (own.resources.every(({ insufficient }) => insufficient === 0))
    return `decision.preempt: ends pods for ${namespacedName(own.pod)}, which lacks nothing here`;
  const { pod: preemptor } = asked.value as PodAsk;
  const pods = podsByUid(snapshot);
  for (const victim of preempt) {
    const pod = pods.get(victim.uid);
    if (pod === undefined) return unknownPodText(victim);
    if (preemptor === null || typeof preemptor === "string" || !preemptable(preemptor, pod))
      return `decision.preempt: ends ${namespacedName(victim)}, which ${namespacedName(own.pod)} may not preempt`;
  }
  return null;
}

function unsafeEviction({ snapshot, ask }: Ordered, decision: EvictionDecision): string | null {
  const { evicted, reclaim, conditions } = decision;
  if (evicted.length === 0) return null;
  const pods = podsByUid(snapshot);
  for (const { pod: ref } of evicted) {
    const pod = pods.get(ref.uid);
    if (pod === undefined) return unknownPodText(ref);
    // kubelet 1.36: managerImpl.evictPod
    if (isCriticalPod(pod)) return `decision.evicted: ends ${namespacedName(ref)}, which is critical and never evicted`;
  }
  const [first, second] = evicted.filter(({ cause }) => cause === "threshold");
  if (first !== undefined && (reclaim === null || conditions.length === 0))
    return `decision.evicted: ends ${namespacedName(first.pod)} though no threshold is met`;
  if (second !== undefined)
    return `decision.evicted: ends ${namespacedName(second.pod)} besides another, and one at a time goes`;
  const ownLimits = evicted.filter(({ cause }) => cause !== "threshold");
  if (ownLimits.length === 0) return null;
  const here = decideLocally("eviction", snapshot, { ask, explain: "off" });
  if (!here.ok) return here.error.message;
  const own = (here.value.decision as EvictionDecision).evicted.filter(({ cause }) => cause !== "threshold");
  const wrong = ownLimits.find(({ pod }) => !own.some((one) => one.pod.uid === pod.uid));
  return wrong === undefined
    ? null
    : `decision.evicted: ends ${namespacedName(wrong.pod)}, which is within its own limits`;
}

function unknownCgroup({ snapshot }: Ordered, { cgroups }: CgroupsDecision): string | null {
  const here = decideLocally("cgroups", snapshot, { explain: "off" });
  if (!here.ok) return here.error.message;
  const own = new Map((here.value.decision as CgroupsDecision).cgroups.map((plan) => [plan.path, plan] as const));
  for (const [place, { path, level, pod, container, containerId }] of cgroups.entries()) {
    const known = own.get(path);
    if (known === undefined) return `decision.cgroups.${place}.path: ${path} is no cgroup of this node or its pods`;
    if (pod !== null && pod.uid !== known.pod?.uid) return unknownPodText(pod);
    if (level !== known.level || container !== known.container || containerId !== known.containerId)
      return `decision.cgroups.${place}: ${path} is another container's or level's here`;
  }
  return null;
}

/** The snapshot's pods by uid. */
function podsByUid(snapshot: unknown): ReadonlyMap<string, Pod> {
  const decoded = decodedOnce(snapshot);
  const pods = decoded.ok ? (decoded.value.pods ?? []) : [];
  return new Map(pods.map((pod) => [podRef(pod).uid, pod] as const));
}
const unknownPodText = (ref: PodRef): string =>
  `decision: speaks of pod ${namespacedName(ref)} (${ref.uid}), which this node does not have`;

/**
 * The parts of each kind's form that this node uses: nothing else is checked, since the API may be of another version.
 */
const cgroups = z.lazy(() => {
  const { cgroups: plans, ...shape } = cgroupsDecision.unwrap().shape;
  const plan = plans.element;
  const values = plan.shape.values
    .unwrap()
    // the limits are the kernel's: as in the kubelet, a pod that requests more than the node has can get values outside the decision's range
    .extend({ memory: integer.min(-1).optional(), oomScoreAdj: wholeNumber(-1000, 1000).optional() });
  return z.object({ ...shape, cgroups: z.array(plan.extend({ values })) });
});
const admission = z.lazy(() => {
  const { preempt } = admissionDecision.unwrap().shape;
  return admissionDecision
    .unwrap()
    .pick({ admit: true, reason: true, message: true, startErrors: true })
    .extend({ preempt: z.array(preempt.element.pick({ namespace: true, name: true, uid: true })) });
});
const eviction = z.lazy(() => {
  const { conditions, evicted, reclaim } = evictionDecision.unwrap().shape;
  const { threshold, event, nodeLevel } = reclaim.unwrap().shape;
  return z.object({
    conditions: z.array(conditions.element.pick({ type: true })),
    evicted: z.array(
      evicted.element.pick({ pod: true, cause: true, reason: true, message: true, gracePeriodSeconds: true }),
    ),
    reclaim: z.object({ threshold: threshold.pick({ signal: true }), event, nodeLevel }).nullable(),
  });
});
const imageGc = z.lazy(() => {
  const { policy, remove } = imageGcDecision.unwrap().shape;
  return z.object({
    policy: policy.pick({ timer: true }),
    remove: z.array(
      remove.element.pick({ id: true, runtimeHandler: true, names: true, sizeBytes: true }).extend({ why: answerText }),
    ),
  });
});
const containerGc = z.lazy(() => {
  const { remove } = containerGcDecision.unwrap().shape;
  return z.object({
    remove: z.array(
      remove.element
        .pick({ id: true, target: true, name: true, pod: true, stopFirst: true })
        .extend({ why: answerText }),
    ),
  });
});

/** Forms of `decision` by kind, for the kinds that this node carries out. Nobody here reads a decision of another kind. */
const SHAPES: Readonly<Partial<Record<Kind, z.ZodType>>> = {
  allocatable: z.lazy(() => allocatableDecision.unwrap().pick({ capacity: true, allocatable: true })),
  cgroups,
  admission,
  eviction,
  "image-gc": imageGc,
  "container-gc": containerGc,
};
const anything = z.looseObject({});
export const shapeOf = (kind: Kind): z.ZodType => SHAPES[kind] ?? anything;

/** The state files for the next decision: the kubelet's own, each as JSON. */
export const STATE_FILES = z.looseObject({
  assignments: z
    .record(z.string(), z.string().refine(isJson, "must be the text of a state file, which is JSON"))
    .optional(),
});
function isJson(value: string): boolean {
  try {
    const parsed = JSON.parse(value) as unknown;
    return typeof parsed === "object" && parsed !== null;
  } catch {
    return false;
  }
}
