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
  z.strictObject({ numaNodes: numaIds.nullable().describe("null: on any node"), preferred: z.boolean() });
/** A possible placement of a resource. */
export type Hint = Form<typeof hint>;

const placement = () =>
  z
    .strictObject({
      container: z.string().nullable().describe("null: the pod as a whole, with pod scope"),
      hints: z
        .record(z.string(), z.array(hint()).nullable())
        .describe("resource to the ways to place it; null: no preference; []: it cannot be placed"),
      cutShort: strings.describe("resources with more hints than are listed, the preferred ones first"),
      merged: hint(),
      admitted: z.boolean(),
    })
    .describe("hints by resource, and what the topology manager merges them to");
export type Placement = Form<typeof placement>;

const refusal = () =>
  z.strictObject({
    reason: z.string().describe("of the pod's status, for example TopologyAffinityError"),
    message: z.string(),
    container: z.string().nullable().describe("whose turn it was; null where the pod as a whole was refused"),
  });
/** The reason and message for the pod's status. */
export type PodRefusal = Form<typeof refusal>;

/** Fields of every manager's decision. */
export const managed = () => ({
  startErrors: strings.describe(
    "why a kubelet with this configuration, machine and state would not start, in its words",
  ),
  warnings: strings.describe("what the kubelet takes without a word and a person should know; each names its file"),
  refusal: refusal()
    .nullable()
    .describe("why the pod would be refused, in the kubelet's words; null without a pod, or when it would be admitted"),
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
