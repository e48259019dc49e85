import * as z from "zod";
import { allocatableDecision } from "../../api/model/allocatable.ts";
import { cgroupsDecision } from "../../api/model/cgroups.ts";
import { containerGcDecision } from "../../api/model/container-gc.ts";
import type { Kind } from "../../api/model/decision.ts";
import { evictionDecision } from "../../api/model/eviction.ts";
import { wholeNumber } from "../../api/model/fields.ts";
import { answerText, integer } from "../../api/model/forms.ts";
import { imageGcDecision } from "../../api/model/image-gc.ts";
import { admissionDecision } from "../../api/model/preemption.ts";

/**
 * The parts of each kind's form that this node carries out: no more is asked of an API's answer, and what else is in it may be
 * of a version that this one does not know.
 */

const cgroups = z.lazy(() => {
  const { cgroups: plans, ...shape } = cgroupsDecision.unwrap().shape;
  const plan = plans.element;
  const values = plan.shape.values
    .unwrap()
    // the limits are the kernel's: as the kubelet reckons, a pod that asks for more than there is can get others
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

/** Form of `decision`, by kind; of the others this node carries nothing out. */
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

/** State files that the next decision is to be told: the kubelet's own, JSON each. */
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
