import type { ContainerKept, ContainerRemoval } from "../../model/container-gc.ts";
import type { Numbers } from "../../model/forms.ts";
import type { ImageKept, ImageRemoval } from "../../model/image-gc.ts";
import { humanBytes } from "../size.ts";
import { durationText, timeText } from "../time-text.ts";
import { many, type Sentences } from "./words.ts";

const size = (bytes: unknown): string => humanBytes(Number(bytes));
const duration = (ms: unknown): string => durationText(Number(ms));
const time = (ms: unknown): string => timeText(Number(ms));
const unused = ({ unusedMs }: Numbers): string =>
  unusedMs === undefined ? "never seen in use" : `last used ${duration(unusedMs)} ago`;
const users = ({ users: count }: Numbers): string => many(count ?? 1, "container");

/** The sentences for the reasons of `image-gc`. */
export const IMAGE_GC_SENTENCES = {
  below_high_threshold: (n) =>
    `${n["usagePercent"]} % used is below the high threshold of ${n["highThresholdPercent"]} %`,
  capacity_zero: () => "a file system of size 0: the kubelet reports it and removes nothing for space",
  clock_stepped: ({ steppedMs }) =>
    `the node's clock was set ${duration(Math.abs(Number(steppedMs)))} ${Number(steppedMs) < 0 ? "back" : "ahead"} since the last pass: the remembered times are moved with it, so no age changes`,
  container_image_not_listed: (n) => `${many(n["containers"], "container")} of it, and the runtime does not list it`,
  image_frees_space: (n) => `${ordinalPlace(n)} ${unused(n)}; frees ${size(n["sizeBytes"])}`,
  image_id_invalid: () => "its id is not valid, so it cannot be removed",
  image_in_use: (n) => `${users(n)} of any state made from it`,
  image_listed_twice: (n) =>
    `the runtime lists it more than once; ${n["pinned"] === true ? "pinned" : "not pinned"} counts`,
  image_mounted: (n) => `${users(n)} with it mounted as a volume`,
  image_not_needed: () => "the images removed before it free enough",
  image_not_reached: () => "the pass ended before it reached this image",
  image_not_wanted: () => "no space has to be freed",
  image_of_sandboxes: () =>
    "the runtime starts sandboxes from it; a kubelet keeps it only because it is pinned, which it is not",
  image_pinned: () => "the runtime reports it as pinned",
  image_remembered: (n) =>
    `first seen ${time(n["firstDetectedAtMs"])}, ${n["lastUsedAtMs"] === undefined ? "never in use" : `last in use ${time(n["lastUsedAtMs"])}`}`,
  image_removal_failed: (n) => `the runtime refused: ${n["message"] ?? "it gave no reason"}`,
  image_removal_stopped: (n) =>
    `the pass stopped here: ${n["message"] ?? "what was found was no longer what was decided on"}`,
  image_size_not_told: () => "the runtime does not report its size: it counts as 0 bytes",
  image_too_old: (n) => `${ordinalPlace(n)} ${unused(n)}, which is longer than ${duration(n["maxAgeMs"])}`,
  image_too_young: (n) => `first seen ${duration(n["ageMs"])} ago, less than ${duration(n["minAgeMs"])}`,
  image_unused: (n) => `${ordinalPlace(n)} ${unused(n)}; all unused images are removed`,
  image_used_now: (n) => `last in use ${time(n["lastUsedAtMs"])}, and this pass is at ${time(n["atMs"])}`,
  maximum_age_waits: (n) =>
    `no image is too old before ${time(n["untilMs"])}: watched since ${time(n["beganAtMs"])}, and imageMaximumGCAge is ${duration(n["maxAgeMs"])}`,
  minimum_age_zero: (n) =>
    `imageMinimumGCAge is 0, not the default of ${duration(n["defaultMs"])}: an image may be removed before its first use`,
  not_enough_to_free: (n) => `only ${size(n["freedBytes"])} of the ${size(n["wantedBytes"])} wanted would be freed`,
  over_high_threshold: (n) =>
    `${n["usagePercent"]} % used reaches the high threshold of ${n["highThresholdPercent"]} %: ${size(n["wantedBytes"])} wanted, down to ${n["lowThresholdPercent"]} %`,
  runtime_handler_differs: (n) =>
    `a container of ${n["handler"] === "" ? "no runtime handler" : `the runtime handler ${n["handler"]}`} was made from it, and it is listed for another`,
  runtime_list_failed: (n) => `the runtime did not list what it has, so nothing was decided: ${n["message"]}`,
  timer_off: () => "high threshold 100 % and no maximum age: the kubelet runs no timer for it",
} satisfies Partial<Sentences>;
const ordinalPlace = ({ place }: Numbers): string => `in place ${place} of the order:`;

const SOURCES = "not all sources of pods have reported, so it is not known whether its pod exists";

/** The sentences for the reasons of `container-gc`. */
export const CONTAINER_GC_SENTENCES = {
  attempt_missing: () => "the runtime does not report its attempt number",
  container_not_exited: () => "its container has not exited: the log may only be in rotation",
  created_in_future: (n) => `created at ${nanoTimeText(n["createdAt"])}, which is after the snapshot: never old enough`,
  done_without_plan: (n) => `reported as ${n["end"]}, though this pass plans no removal of it`,
  link_leads_nowhere: () => "the target of the link does not exist, and no container needs it",
  newest_sandbox: () => "the newest sandbox of a pod that exists: the pod's state is read from it",
  not_pod_logs: () => "its name is not NAMESPACE_NAME_UID, so it belongs to no pod; the kubelet would remove it",
  not_reached: (n) => `the pass stopped at ${n["stoppedAt"]}, before it reached this`,
  older_sandbox: (n) =>
    `not ready, holds no container, and ${n["newer"]} ${n["newer"] === 1 ? "sandbox is" : "sandboxes are"} newer`,
  over_container_limit: (n) =>
    `${n["dead"]} dead instances of it, ${n["maxPerPodContainer"]} may stay: the oldest are removed`,
  over_total_limit: (n) =>
    `${n["total"]} dead containers are still left in all, ${n["maxContainers"]} may stay: the oldest are removed`,
  over_total_share: (n) =>
    `${n["total"]} dead containers in all, ${n["maxContainers"]} may stay, which is ${n["share"]} for each container of a pod`,
  pass_stopped: (n) => `the pass stopped here: ${n["message"] || "what was found was no longer what was decided on"}`,
  pod_ended: () => "its pod has ended, and is not deleted",
  pod_ended_and_deleted: () => "its pod has ended and is being deleted",
  pod_evicted: () => "its pod was evicted",
  pod_exists: () => "its pod exists and has not ended",
  pod_not_posted: () => "its pod is not on the node",
  pod_not_posted_still_runs: () => "its pod is not on the node, and still runs: it is torn down first",
  removal_failed: (n) => `the runtime refused: ${n["message"] || "it gave no reason"}`,
  running: () => "it is running",
  runtime_list_failed: (n) => `the runtime did not list what it has, so nothing was decided: ${n["message"]}`,
  sandbox_has_containers: (n) =>
    `${many(n["containers"], "container")} of it ${n["containers"] === 1 ? "is" : "are"} still listed`,
  sandbox_not_listed: (n) =>
    `its sandbox ${n["podSandboxId"] ?? "is not reported"}${n["podSandboxId"] === undefined ? "" : " is not listed"}`,
  sandbox_ready: () => "it is ready",
  sources_not_ready: () => SOURCES,
  too_young: (n) => `younger than ${durationText(Number(n["minAgeMs"]))}`,
  within_limits: (n) => `one of ${many(n["dead"], "dead container")} that may stay, ${n["newer"]} of them newer`,
} satisfies Partial<Sentences>;
const nanoTimeText = (nanos: unknown): string => timeText(Math.floor(Number(nanos) / 1e6));

type Phrases<K extends string> = Readonly<Record<K, string>>;

/** Why an image is removed. */
export const IMAGE_GOES: Phrases<ImageRemoval["why"]> = {
  "too-old": "not used for too long",
  space: "for space",
  unused: "unused",
};
/** Why an image stays, in a word or two. */
export const IMAGE_STAYS: Phrases<ImageKept["why"]> = {
  "in-use": "in use",
  "image-volume": "mounted as a volume",
  pinned: "pinned",
  "sandbox-image": "sandboxes start from it",
  "invalid-id": "its id is not valid, so it cannot be removed",
  "used-now": "used right now",
  "too-young": "too young",
  "enough-space": "no space has to be freed",
  "not-needed": "the images removed before it free enough",
  "not-reached": "the pass ended before it was reached",
};

/** Why a container, a sandbox or a log is removed. */
export const CONTAINER_GOES: Phrases<ContainerRemoval["why"]> = {
  "pod-removed": "its pod is gone",
  "pod-terminated": "its pod has ended",
  "per-container-limit": "over the limit per container",
  "total-limit": "over the limit in all",
  "older-sandbox": "an older sandbox",
  dangling: "its file is gone",
};
/** Why one stays. */
export const CONTAINER_STAYS: Phrases<ContainerKept["why"]> = {
  running: "running",
  "too-young": "too young",
  "within-limits": "dead, within the limits",
  "sandbox-ready": "ready",
  "sandbox-has-containers": "holds containers",
  "newest-sandbox": "newest of its pod",
  "pod-exists": "its pod exists",
  "sources-not-ready": "not all sources of pods have reported",
  "container-not-exited": "its container has not exited",
  "not-pod-logs": "its name is not that of a pod",
  "not-reached": "the pass ended before it was reached",
};
