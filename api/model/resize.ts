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
  pod: optional(podName).describe("NAMESPACE/NAME of a pod in the snapshot; absent: every pod that waits for a resize"),
  pods: optional(z.array(podName).max(LIMITS.pods)).describe(
    "NAMESPACE/NAME of several pods, in the order in which their resizes are requested",
  ),
  container: optional(pathPart).describe("the container that `to` is for; absent: the pod's only container"),
  to: optional(resourceList).describe(
    "the container's new requests for cpu and memory; each limit keeps its ratio to its request",
  ),
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
    "the spec of a patch of the pod's subresource `resize`; volumes count only if the feature gate InPlacePodVerticalScalingMemoryBackedVolumes is on (1.37)",
  ),
  recommendation: optional(
    z.object({ containerRecommendations: z.array(recommended).max(LIMITS.containersPerPod).default([]) }),
  ).describe(
    "status.recommendation of a VerticalPodAutoscaler; each limit keeps its ratio to its request unless `resourcePolicy` sets controlledValues to RequestsOnly",
  ),
  resourcePolicy: optional(
    z.object({ containerPolicies: optional(z.array(containerPolicy).max(LIMITS.containersPerPod)) }),
  ).describe(
    "spec.resourcePolicy of the VerticalPodAutoscaler. controlledValues RequestsOnly: the container keeps its limits, and its requests are at most its limits. mode Off: the container is not resized. containerName `*`: all containers without a policy of their own",
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
    container: answerText.nullable().describe("the container's name; null: the resources of the pod as a whole"),
    list: z.enum(["requests", "limits", "sizeLimit"]),
    resource: z.string().describe("the resource's name; for `sizeLimit`, the name of the memory-backed volume"),
    from: z.string().nullable().describe("the allocated amount; null: nothing is allocated"),
    to: z.string().nullable(),
  });
export type ResizeChange = Form<typeof change>;

const write = () =>
  z.strictObject({
    container: answerText.nullable().describe("the container's name; null: the cgroup of the pod"),
    path: z
      .string()
      .nullable()
      .describe("the path of the cgroup; null: the snapshot does not have the node's cgroup version or the pod's uid"),
    values: cgroupValues,
    files: cgroupFiles().describe("the files that the kubelet writes, in this order; empty if the path is not known"),
    volume: z
      .strictObject({ name: answerText, sizeBytes: integer })
      .optional()
      .describe("the memory-backed volume that the kubelet remounts with this size, instead of writing a cgroup"),
  });
const actuation = () =>
  z.strictObject({
    restarts: z
      .array(z.strictObject({ container: answerText, resources: z.array(z.enum(["cpu", "memory"])) }))
      .describe(
        "containers that the kubelet restarts, because their resizePolicy is RestartContainer for these resources",
      ),
    writes: z.array(write()).describe("the writes in the kubelet's order"),
    error: answerText
      .nullable()
      .describe(
        "the message of the condition PodResizeInProgress, which has the reason why nothing is written for now; null: the writes are made",
      ),
  });
export type ResizeActuation = Form<typeof actuation>;

const podResize = () =>
  z.strictObject({
    pod: podRef,
    status: z
      .enum(["InProgress", "Error", "Deferred", "Infeasible", "Rejected", "Unchanged"])
      .describe(
        "InProgress: the kubelet accepts the resize. Error: the kubelet has allocated the resources and cannot write them for now (condition PodResizeInProgress with the reason Error). Deferred: the resize waits for room. Infeasible: the resize is never possible on this node. Rejected: the API server refuses the resize, and the kubelet does not receive it. Unchanged: the pod already has these resources, or the ask does not change the pod",
      ),
    check: z.enum(RESIZE_CHECKS).nullable().describe("the check that makes the resize infeasible; null: none does"),
    message: answerText.describe(
      "the message of Kubernetes; empty: nothing refuses or delays the resize. With the status Unchanged: why the ask does not change the pod, if the pod has no such container",
    ),
    isAsked: z
      .boolean()
      .describe("true: the ask names the pod; false: the kubelet tries the pod's pending resize in the same pass"),
    isRetried: z
      .boolean()
      .describe(
        "false: the pod's status already has Infeasible, so the kubelet tries the resize again only when the kubelet restarts",
      ),
    changes: z
      .array(change())
      .describe(
        "the changes from the allocated resources; for a resize that is already allocated, from the resources in the pod's status",
      ),
    preempt: z.array(victim()).describe("pods that the kubelet preempts for the resize of a critical pod"),
    wouldRefuse: z
      .array(wouldRefuse())
      .describe("other admission handlers that would refuse the resize, in the kubelet's order"),
    resources: z
      .array(testedResource())
      .describe(
        "the requested, used and total amount of each resource that admission checks for the whole pod; empty if admission was not checked",
      ),
    largest: resourceAmounts().describe(
      "for each resource, the largest request of the whole pod that is feasible and fits now, including resources that the pod does not request yet. Empty if something other than room delays the resize",
    ),
    notRequested: z
      .array(z.strictObject({ resource: z.enum(["cpu", "memory"]), message: answerText }))
      .describe("the resources whose request no resize of the pod can change, each with the message of Kubernetes"),
    terminating: z
      .array(podRef)
      .describe(
        "for a Deferred resize: other pods that are being deleted and hold a resource that is short; once they are removed, the kubelet tries the resize again",
      ),
    shrinks: z
      .array(podRef)
      .describe(
        "for a Deferred resize: other pods whose smaller size is allocated and counts only once it is in their status; the kubelet then tries the resize again",
      ),
    leave: z
      .array(victim())
      .nullable()
      .describe(
        "for a Deferred resize: other pods of the same or a lower priority, the lowest priority first and none of them unnecessary, whose removal makes room for the resize together with the amounts that `terminating` and `shrinks` free; the kubelet itself removes no pod for it. Empty: `terminating` and `shrinks` free enough. Null: the resize does not wait, or the removal of such pods does not make room",
      ),
    actuation: actuation()
      .nullable()
      .describe("the restarts and writes that put the resize into effect; null: the resize is not accepted"),
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
      .describe(
        "the kubelet's messages if a kubelet with these resource managers does not start; it then tries no resize",
      ),
    resizes: z
      .array(podResize())
      .describe(
        "the resizes in the order in which the kubelet tries them; each accepted resize counts for the resizes after it",
      ),
    inProgress: integer,
    inError: integer.describe("the number of resizes that are allocated and cannot be written for now"),
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
