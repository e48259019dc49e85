import * as z from "zod";
import { count } from "./fields.ts";
import { type Form, REASONS_OF_PODS } from "./forms.ts";
import { PLAIN } from "./kind-spec.ts";

/** What the decisions of the kubelet's CPU, memory, device and topology managers have in common. */

export const cpuSet = z.string().describe("a CPU list such as 0-3,8");
export const policyOptions = z.record(z.string(), z.string());
export const strings = z.array(z.string());
export const numaIds = z.array(count);

const hint = () =>
  z.strictObject({
    numaNodes: numaIds.nullable().describe("the NUMA nodes of the hint; null: any NUMA node"),
    preferred: z.boolean(),
  });
/** A possible placement of a resource. */
export type Hint = Form<typeof hint>;

const placement = () =>
  z
    .strictObject({
      container: z
        .string()
        .nullable()
        .describe("the container's name; null: the pod as a whole, if topologyManagerScope is pod"),
      hints: z
        .record(z.string(), z.array(hint()).nullable())
        .describe(
          "the hints by resource; null: the resource has no NUMA preference; []: the resource cannot be placed",
        ),
      cutShort: strings.describe("the resources of which `hints` lists only some hints, the preferred hints first"),
      merged: hint(),
      admitted: z.boolean(),
    })
    .describe("the hints by resource, and the hint to which the topology manager merges them");
export type Placement = Form<typeof placement>;

const refusal = () =>
  z.strictObject({
    reason: z.string().describe("the reason in the pod's status, such as TopologyAffinityError"),
    message: z.string(),
    container: z
      .string()
      .nullable()
      .describe("the container at which the pod was refused; null: the pod as a whole was refused"),
  });
/** The reason and message for the pod's status. */
export type PodRefusal = Form<typeof refusal>;

/** Fields of every manager's decision. */
export const managed = () => ({
  startErrors: strings.describe(
    "the kubelet's messages if a kubelet with this configuration, machine and state does not start",
  ),
  warnings: strings.describe(
    "faults that the kubelet accepts without a message and that a person should know; each names its file",
  ),
  refusal: refusal()
    .nullable()
    .describe(
      "the reason and the message with which the kubelet refuses the pod; null: the ask has no pod, or the pod is admitted",
    ),
  placements: z.array(placement()),
});
const managedForm = () => z.strictObject(managed());
/** What the decisions of all managers tell beside the placements. */
export type Managed = Omit<Form<typeof managedForm>, "placements">;

export const reasonOfRefusal = ({ refusal }: Managed): string | null => refusal?.reason ?? null;

/** The reason codes of every manager. */
export const MANAGER_REASONS = ["kubelet_does_not_start", "refused", ...REASONS_OF_PODS] as const;
export type ManagerReason = (typeof MANAGER_REASONS)[number];

/** Traits of the four managers. */
export const MANAGER_TRAITS = {
  ...PLAIN,
  pods: "requests",
  defaultsConfiguration: true,
  managers: "itself",
  whatIf: "placement",
  collected: null,
} as const;
/** The traits of managers whose decision shows which pod holds what. */
export const HOLDER_TRAITS = { ...MANAGER_TRAITS, nodePage: "snapshot", up: "recorded" } as const;
