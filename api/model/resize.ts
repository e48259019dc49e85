import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { fieldsOf } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { testedResource, wouldRefuse } from "./admission.ts";
import { cgroupFiles, cgroupValues } from "./cgroups.ts";
import { decodeForm } from "./decode.ts";
import { optional, pathPart, quantity, resourceList, text } from "./fields.ts";
import { answerText, type Form, integer, podRef, REASONS_OF_PODS } from "./forms.ts";
import { type KindSpec, PLAIN, type PodPart } from "./kind-spec.ts";
import { resourceRequirements } from "./pod.ts";
import { podName } from "./pod-ask.ts";
import { resourceAmounts, victim } from "./preemption.ts";

/** The fields that the API server accepts in a patch of the subresource `resize`: it drops others, so a misspelt field would be lost. */
const onlyResized = (fields: string) => ({
  error: (issue: z.core.$ZodRawIssue) =>
    issue.code === "unrecognized_keys"
      ? `a resize changes ${fields} alone: leave ${(issue["keys"] as readonly string[]).map((key) => `\`${key}\``).join(", ")} out`
      : undefined,
});
const resizePolicy = z.array(
  z.object({
    resourceName: z.enum(["cpu", "memory"]),
    restartPolicy: z.enum(["NotRequired", "RestartContainer"]),
  }),
);
const containerPatch = z.strictObject(
  { name: pathPart, resources: optional(resourceRequirements), resizePolicy: optional(resizePolicy) },
  onlyResized("resources and resizePolicy of a container"),
);
/** A volume of the pod in a strategic merge patch; a new name adds a volume. */
const volumePatch = z.strictObject({
  name: text,
  emptyDir: optional(z.strictObject({ medium: optional(text), sizeLimit: optional(quantity) })),
});
export type VolumePatch = z.output<typeof volumePatch>;
const containerPatches = optional(z.array(containerPatch).max(LIMITS.containersPerPod));
const recommended = z.object({ containerName: pathPart, target: resourceList });
/** VerticalPodAutoscaler: spec.resourcePolicy. */
const containerPolicy = z.object({
  containerName: text,
  mode: optional(text),
  controlledValues: optional(z.enum(["RequestsAndLimits", "RequestsOnly"])),
});
export type ContainerPolicy = z.output<typeof containerPolicy>;

const ask = z.strictObject({
  pod: optional(podName).describe("NAMESPACE/NAME of a pod of the snapshot; absent: every pod that waits for a resize"),
  pods: optional(z.array(podName).max(LIMITS.pods)).describe("several, in the order in which they are asked for"),
  container: optional(pathPart).describe("whose requests `to` is; absent: those of the only container"),
  to: optional(resourceList).describe("new requests of cpu and memory; a limit keeps its ratio to its request"),
  spec: optional(
    z.strictObject(
      {
        resources: optional(resourceRequirements),
        containers: containerPatches,
        initContainers: containerPatches,
        volumes: optional(z.array(volumePatch).max(LIMITS.volumesPerPod)),
      },
      onlyResized("resources, containers, initContainers and volumes of a pod's spec"),
    ),
  ).describe(
    "what a patch of the subresource `resize` has as its spec; volumes count with the gate InPlacePodVerticalScalingMemoryBackedVolumes alone (1.37)",
  ),
  recommendation: optional(
    z.object({ containerRecommendations: z.array(recommended).max(LIMITS.containersPerPod).default([]) }),
  ).describe(
    "status.recommendation of a VerticalPodAutoscaler; a limit keeps its ratio to its request unless `resourcePolicy` says otherwise",
  ),
  resourcePolicy: optional(
    z.object({ containerPolicies: optional(z.array(containerPolicy).max(LIMITS.containersPerPod)) }),
  ).describe(
    "spec.resourcePolicy of that VerticalPodAutoscaler: a container whose controlledValues are RequestsOnly keeps its limits, which its requests do not pass; one whose mode is Off stays as it is. `*` is of all others",
  ),
});
/** The resources that pods should get; without `to`, `spec` and `recommendation`: those that their specs request. */
export type ResizeAsk = Readonly<Omit<z.output<typeof ask>, "pod">> & { readonly pod: string | null };

const CHANGES = ["to", "spec", "recommendation"] as const;

/** Parses a posted ask. Errors: every issue with its path. */
export function decodeResizeAsk(input: unknown, at = "ask"): Result<ResizeAsk, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok({ pod: null });
  const removed = removedIn(fieldsOf(input)["spec"]);
  if (removed !== undefined) {
    const message = "a null would remove it, and no API server lets a resize remove a request or a limit: leave it out";
    return err([{ path: joinPath(`${at}.spec`, removed), message }]);
  }
  const { kind, recommendation: given } = fieldsOf(input);
  if (kind === "VerticalPodAutoscaler")
    return err([
      {
        path: at,
        message: "a VerticalPodAutoscaler: give the recommendation of its status as `recommendation`, beside the `pod`",
      },
    ]);
  // a new autoscaler has no recommendation in its status yet
  const parsed = decodeForm(ask, given === null ? { ...fieldsOf(input), recommendation: {} } : input, at);
  if (!parsed.ok) return parsed;
  const { pod, pods, container, to, recommendation, resourcePolicy } = parsed.value;
  const fault = (path: string, message: string) => err([{ path: `${at}.${path}`, message }]);
  const changes = CHANGES.filter((name) => parsed.value[name] !== undefined);
  if (changes.length > 1) return fault(changes[1] as string, `${changes.join(" and ")} exclude each other: give one`);
  const [change] = changes;
  if (change !== undefined && pod === undefined && pods === undefined)
    return fault("pod", "which pod is to have other resources? name it, or several as pods");
  if (container !== undefined && to === undefined) return fault("container", "it goes with `to`");
  if (resourcePolicy !== undefined && recommendation === undefined)
    return fault("resourcePolicy", "it goes with `recommendation`");
  const other = Object.keys(to ?? {}).find((name) => name !== "cpu" && name !== "memory");
  if (other !== undefined) {
    // a gpu is not a misspelt cpu
    const meant = ["cpu", "memory"].find((name) => name === other.toLowerCase());
    const proposal = meant === undefined ? "" : `; did you mean ${meant}?`;
    return fault(`to.${other}`, `only cpu and memory change while a pod runs${proposal}`);
  }
  return ok({ ...parsed.value, pod: pod ?? null });
}

/** The path of a null in a patch, in place of amounts or of one of them. */
function removedIn(value: unknown, path: readonly PropertyKey[] = []): readonly PropertyKey[] | undefined {
  const members = Array.isArray(value) ? [...value.entries()] : Object.entries(fieldsOf(value));
  const [first] = members.flatMap(([name, inner]) => {
    const here = [...path, name];
    if (inner !== null) return [removedIn(inner, here)].filter((found) => found !== undefined);
    return here.some((step) => step === "requests" || step === "limits") ? [here] : [];
  });
  return first;
}

/** The checks that can make a resize infeasible. */
const RESIZE_CHECKS = [
  "bounds",
  "capacity",
  "claims",
  "cpu_manager",
  "declared_features",
  "gate",
  "init_container",
  "memory_manager",
  "other_resource",
  "platform",
  "pod_level",
  "qos_class",
  "removed",
  "static_pod",
  "swap",
  "volumes",
] as const;
export type ResizeCheck = (typeof RESIZE_CHECKS)[number];

const RESIZE_REASONS = [...REASONS_OF_PODS, "kubelet_does_not_start", "resource_fits", "resource_short"] as const;

const change = () =>
  z.strictObject({
    container: answerText.nullable().describe("null: of the pod as a whole"),
    list: z.enum(["requests", "limits", "sizeLimit"]),
    resource: z.string().describe("of `sizeLimit`: the volume in memory whose size it is"),
    from: z.string().nullable().describe("as it is allocated; null: nothing"),
    to: z.string().nullable(),
  });
export type ResizeChange = Form<typeof change>;

const write = () =>
  z.strictObject({
    container: answerText.nullable().describe("null: the pod's own cgroup"),
    path: z
      .string()
      .nullable()
      .describe("the cgroup's; null: the node does not tell its cgroup version, or the pod its uid"),
    values: cgroupValues,
    files: cgroupFiles().describe("what is written there, in this order; empty where the path is not known"),
    volume: z
      .strictObject({ name: answerText, sizeBytes: integer })
      .optional()
      .describe("a volume in memory that is mounted anew with this size, and no cgroup is written"),
  });
const actuation = () =>
  z.strictObject({
    restarts: z
      .array(z.strictObject({ container: answerText, resources: z.array(z.enum(["cpu", "memory"])) }))
      .describe("containers that stop before and start after it, for these resources: their resizePolicy says so"),
    writes: z.array(write()).describe("in the kubelet's order"),
    error: answerText
      .nullable()
      .describe(
        "why nothing is written for now, in the kubelet's words: the message of PodResizeInProgress; null: it is",
      ),
  });
export type ResizeActuation = Form<typeof actuation>;

const podResize = () =>
  z.strictObject({
    pod: podRef,
    status: z
      .enum(["InProgress", "Error", "Deferred", "Infeasible", "Rejected", "Unchanged"])
      .describe(
        "what the kubelet says of it: InProgress, it takes it; Error, it has allocated it and cannot write it for now (PodResizeInProgress with the reason Error); Deferred, it waits for room; Infeasible, never. Rejected: the API server does not take it, and the kubelet never hears of it. Unchanged: it has these resources, or the ask changes nothing of it",
      ),
    check: z.enum(RESIZE_CHECKS).nullable().describe("what refuses it for good; null: nothing does"),
    message: answerText.describe(
      "in Kubernetes' words; empty where nothing refuses it or is in its way. Unchanged: why the ask changes nothing of it, where it has no such container",
    ),
    isAsked: z.boolean().describe("the ask names it; false: the kubelet tries it in the same turn"),
    isRetried: z
      .boolean()
      .describe("false: its status says Infeasible already, and the kubelet only tries it when it restarts"),
    changes: z
      .array(change())
      .describe("from what is allocated; of one that is allocated already, from what its status tells is in force"),
    preempt: z.array(victim()).describe("pods that the kubelet ends for it: it is a critical one"),
    wouldRefuse: z.array(wouldRefuse()).describe("what else of admission would refuse it, in the kubelet's order"),
    resources: z.array(testedResource()).describe("the room for the whole pod, where admission was asked"),
    largest: resourceAmounts().describe(
      "the largest request of the whole pod that is feasible and has room now, by resource; also of one that it does not request yet. Empty where something else than room keeps it waiting",
    ),
    notRequested: z
      .array(z.strictObject({ resource: z.enum(["cpu", "memory"]), message: answerText }))
      .describe("of what no resize gives it another request, and why, in Kubernetes' words"),
    terminating: z
      .array(podRef)
      .describe(
        "of one that is Deferred: other pods that are being deleted and hold some of what is short; when they are gone the kubelet tries this one again",
      ),
    shrinks: z
      .array(podRef)
      .describe(
        "of one that is Deferred: other pods whose smaller size is allocated and counts only when their status tells it; then the kubelet tries this one again",
      ),
    leave: z
      .array(victim())
      .nullable()
      .describe(
        "of one that is Deferred: other pods of no higher priority, the lowest first and none of them needless, whose end makes room for it beside what `terminating` and `shrinks` free; the kubelet ends nobody for it. Empty: what these free is enough. Null: it does not wait, or their end does not give it room",
      ),
    actuation: actuation().nullable().describe("what brings it into force; null: it is not taken"),
  });
export type PodResize = Form<typeof podResize>;

/** The resizes of the pods that the ask names, or else all: what the decision is about. */
export function askedAbout(resizes: readonly PodResize[]): readonly PodResize[] {
  const asked = resizes.filter(({ isAsked }) => isAsked);
  return asked.length > 0 ? asked : resizes;
}

/** Whether the kubelet has allocated the resize, even if it cannot write it yet. */
export const isTaken = ({ status }: Pick<PodResize, "status">): boolean =>
  status === "InProgress" || status === "Error";

/** The decision of the kind `resize`. */
export const resizeDecision = z.lazy(() =>
  z.strictObject({
    startErrors: z
      .array(answerText)
      .describe("why a kubelet with these managers would not start, in its words; then no resize is tried"),
    resizes: z
      .array(podResize())
      .describe("in the order in which the kubelet tries them; each that it takes counts for those after it"),
    inProgress: integer,
    inError: integer.describe("allocated, and not to be written for now"),
    deferred: integer,
    infeasible: integer,
  }),
);
export type ResizeDecision = Form<typeof resizeDecision>;

/** The message about each pod, and the pods that are preempted for it. */
const podPartsOf = ({ resizes }: ResizeDecision): readonly PodPart[] =>
  resizes.flatMap(({ pod, status, message, preempt }) => [
    { pod, status, message },
    ...preempt.map(({ namespace, name, uid }) => ({ pod: { namespace, name, uid } })),
  ]);

export const resize = {
  decides:
    "whether a resize is accepted, Deferred or Infeasible, with the kubelet's message and the cgroup files that it writes",
  ask: { decode: decodeResizeAsk, schema: { name: "ResizeAsk", form: ask }, pod: "name" },
  decision: resizeDecision,
  reasons: RESIZE_REASONS,
  reasonOf: ({ resizes }: ResizeDecision) =>
    askedAbout(resizes).find(({ status }) => status !== "InProgress" && status !== "Unchanged")?.status ?? null,
  podPartsOf,
  facts: null,
  traits: {
    ...PLAIN,
    pods: "overhead",
    defaultsConfiguration: true,
    assumesNoDevices: "unlisted",
    whatIf: "resize",
    nodePage: "not-drawn",
    up: "not-asked",
    collected: null,
  },
} as const satisfies KindSpec;
