import * as z from "zod";
import { ADMISSION_HANDLERS } from "../model/admission.ts";
import { podRef, topologyDecision } from "./manager-answers.ts";

/** The decisions about one pod that asks to come in, as the API answers them. Amounts: milliCPU, pods, else whole units. */
const integer = z.number();
const amounts = z.array(z.strictObject({ resource: z.string(), quantity: integer }));
const numbers = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
const shortage = { resource: z.string(), requested: integer, used: integer, capacity: integer };
const qos = z.enum(["Guaranteed", "Burstable", "BestEffort"]);
const victim = z.strictObject({
  ...podRef.shape,
  qos,
  priority: integer.nullable(),
  frees: amounts.describe("of each resource that is short"),
});
const counterfactuals = z.array(z.strictObject({ code: z.string(), numbers })).describe("what would change the answer");

const pick = z.strictObject({
  open: amounts.describe("what was still to be freed"),
  chosen: podRef,
  distance: z.number().describe("0: it frees all of it"),
  tied: z.array(podRef).describe("others that only the order of the list puts behind the chosen one"),
  distances: z.array(z.number().nullable()).nullable().describe("of each candidate of the round"),
});
const round = z.strictObject({
  qos,
  assumedGone: z.array(qos).describe("the tiers that this round takes as gone as a whole"),
  need: amounts,
  candidates: z.array(z.strictObject({ ...podRef.shape, memory: integer, cpu: integer })),
  picks: z.array(pick),
});
const victimSet = z.strictObject({ pods: z.array(victim), frees: amounts, cost: z.number() });
const preemption = z.strictObject({
  critical: z.boolean(),
  need: amounts,
  preempt: z.array(victim).describe("in kill order"),
  error: z.string().nullable().describe("the kubelet's words when not enough can be freed"),
  unmet: amounts,
  candidates: integer,
  rounds: z.array(round),
  better: z
    .strictObject({
      fewestPods: victimSet.nullable(),
      leastRequests: victimSet.nullable(),
      exact: z.strictObject({ fewestPods: z.boolean(), leastRequests: z.boolean() }),
      bound: integer,
    })
    .nullable()
    .describe("what a chooser without tiers would take, where it does better than the kubelet"),
});

export const preemptionDecision = z.strictObject({
  ...preemption.shape,
  pod: podRef,
  admit: z.boolean(),
  shortages: z.array(z.strictObject(shortage)),
  remainingReasons: z.array(z.string()).describe("why the pod is refused whatever is freed"),
  counterfactuals,
});

export const admissionDecision = z.strictObject({
  pod: podRef,
  onNode: z.boolean().describe("it is on the node already, and is not counted twice"),
  startErrors: z.array(z.string()).describe("why the kubelet would not start; then nobody is admitted"),
  critical: z.boolean(),
  admit: z.boolean(),
  reason: z.string(),
  message: z.string().describe("the kubelet's words; empty when admitted"),
  preempt: z.array(victim).describe("pods that are ended for it, in kill order"),
  wouldRefuse: z
    .array(
      z.strictObject({
        handler: z.enum(ADMISSION_HANDLERS),
        reason: z.string(),
        message: z.string(),
        shown: z.boolean().describe("the one that the kubelet shows"),
      }),
    )
    .describe("every reason of every handler; each of them alone refuses"),
  resources: z.array(z.strictObject({ ...shortage, insufficient: integer.describe("0: it fits") })),
  preemption: preemption.nullable(),
  counterfactuals,
  assigned: topologyDecision.shape.assigned.nullable(),
});
