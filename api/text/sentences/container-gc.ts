import { durationText, timeText } from "../time-text.ts";
import { many, type Sentences } from "./words.ts";

const SOURCES = "not all sources of pods have been heard, so nothing can be said of its pod";

/** What the reasons of `container-gc` say. */
export const CONTAINER_GC_SENTENCES: Sentences = {
  attempt_missing: () => "the runtime does not tell which attempt it is",
  container_not_exited: () => "its container has not exited: the log may only be in rotation",
  created_in_future: (n) => `made at ${nanoTimeText(n["createdAt"])}, which is after the snapshot: never old enough`,
  done_without_plan: (n) => `told as ${n["end"]}, though this pass plans no removal of it`,
  link_leads_nowhere: () => "the link leads nowhere, and no container needs it",
  newest_sandbox: () => "the newest of a pod that is there: its state is read from it",
  not_pod_logs: () => "its name is not NAMESPACE_NAME_UID, so it is no pod's; the kubelet would remove it",
  not_reached: (n) => `the pass stopped at ${n["stoppedAt"]}, before it came to this`,
  older_sandbox: (n) =>
    `not ready, holds no container, and ${many(n["newer"], "sandbox")}${n["newer"] === 1 ? " is" : "es are"} newer`,
  over_container_limit: (n) => `${n["dead"]} dead ones of it, ${n["maxPerPodContainer"]} may stay: the oldest go`,
  over_total_limit: (n) =>
    `${n["total"]} dead ones are still left in all, ${n["maxContainers"]} may stay: the oldest go`,
  over_total_share: (n) =>
    `${n["total"]} dead ones in all, ${n["maxContainers"]} may stay, which is ${n["share"]} for each container of a pod`,
  pass_stopped: (n) => `the pass stopped here: ${n["message"] || "what was found was no longer what was decided on"}`,
  pod_ended: () => "its pod has ended, and is not deleted",
  pod_ended_and_deleted: () => "its pod has ended and is being deleted",
  pod_evicted: () => "its pod was evicted",
  pod_exists: () => "its pod is there and has not ended",
  pod_not_posted: () => "its pod is not among the node's",
  pod_not_posted_still_runs: () => "its pod is not among the node's, and still runs: it is torn down first",
  removal_failed: (n) => `the runtime refused: ${n["message"] || "it gave no reason"}`,
  running: () => "it runs",
  runtime_list_failed: (n) => `the runtime did not list what it has, so nothing was decided: ${n["message"]}`,
  sandbox_has_containers: (n) =>
    `${many(n["containers"], "container")} of it ${n["containers"] === 1 ? "is" : "are"} still listed`,
  sandbox_not_listed: (n) =>
    `its sandbox ${n["podSandboxId"] ?? "is not told"}${n["podSandboxId"] === undefined ? "" : " is not listed"}`,
  sandbox_ready: () => "it is ready",
  sources_not_ready: () => SOURCES,
  too_young: (n) => `younger than ${durationText(Number(n["minAgeMs"]))}`,
  within_limits: (n) => `one of ${many(n["dead"], "dead one")} that may stay, ${n["newer"]} of them newer`,
};
const nanoTimeText = (nanos: unknown): string => timeText(Math.floor(Number(nanos) / 1e6));
