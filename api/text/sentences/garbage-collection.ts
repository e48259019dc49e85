import type { ContainerKept, ContainerRemoval } from "../../model/container-gc.ts";
import type { ImageKept, ImageRemoval } from "../../model/image-gc.ts";

type Phrases<K extends string> = Readonly<Record<K, string>>;

/** Why an image goes. */
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
  "invalid-id": "its id is none that a removal could name",
  "used-now": "used at this very moment",
  "too-young": "too young",
  "enough-space": "nothing is wanted",
  "not-needed": "what goes before it is enough",
  "not-reached": "the pass ended before it",
};

/** Why a container, a sandbox or a log goes. */
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
  "newest-sandbox": "its pod's newest",
  "pod-exists": "its pod is there",
  "sources-not-ready": "not all sources of pods have been heard",
  "container-not-exited": "its container has not exited",
  "not-pod-logs": "its name is no pod's",
  "not-reached": "the pass ended before it",
};
