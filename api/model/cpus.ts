import * as z from "zod";
import { type Form, podRef } from "./forms.ts";
import type { KindSpec } from "./kind-spec.ts";
import { cpuSet, HOLDER_TRAITS, MANAGER_REASONS, managed, policyOptions, reasonOfRefusal } from "./managers.ts";
import { podAsk } from "./pod-ask.ts";

export const CPUS_REASONS = [
  ...MANAGER_REASONS,
  "exclusive_cpus_given",
  "no_exclusive_cpus",
  "reserved_cpus",
  "shared_pool",
] as const;

const cpuAssignment = { pod: podRef, container: z.string(), cpus: cpuSet };

/** The decision of the kind `cpus`. */
const cpusDecision = z.lazy(() =>
  z.strictObject({
    policy: z.enum(["none", "static"]),
    options: policyOptions,
    ...managed(),
    reserved: cpuSet,
    sharedPool: cpuSet.describe(
      "the CPUs of all containers without exclusive CPUs, after the admission of the pod in the ask",
    ),
    assigned: z
      .array(z.strictObject({ container: z.string(), cpus: cpuSet, exclusive: z.boolean() }))
      .describe("the CPUs that the containers of the pod in the ask get; `exclusive` false: the shared pool"),
    assignments: z
      .array(z.strictObject(cpuAssignment))
      .describe("all exclusive assignments, including those of the pod in the ask"),
    reconcile: z
      .array(
        z.strictObject({
          ...cpuAssignment,
          containerId: z.string(),
          from: cpuSet.nullable().describe("the present cpuset of the container; null: not known"),
        }),
      )
      .describe("the running containers whose cpuset must change now"),
    overlaps: z
      .array(z.strictObject({ cpus: cpuSet, holders: z.array(z.strictObject({ pod: podRef, container: z.string() })) }))
      .describe("CPUs that are assigned exclusively to two pods, which the kubelet accepts without a message"),
  }),
);
export type CpusDecision = Form<typeof cpusDecision>;
export type CpuAssignment = CpusDecision["assignments"][number];
/** A running container whose cpuset is not what it should be. */
export type CpuChange = CpusDecision["reconcile"][number];

export const cpus = {
  decides: "which container has which CPUs, which a pod would get or why none, and which cpusets must change now",
  ask: podAsk,
  decision: cpusDecision,
  reasons: CPUS_REASONS,
  reasonOf: reasonOfRefusal,
  podPartsOf: ({ assignments, reconcile }: CpusDecision) => [...assignments, ...reconcile],
  facts: null,
  traits: { ...HOLDER_TRAITS, policy: { field: "cpuManagerPolicy", values: ["none", "static"] } },
} as const satisfies KindSpec;
