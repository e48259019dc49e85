import type { Numbers } from "../../model/decision.ts";
import { humanBytes } from "../size.ts";
import { durationText, timeText } from "../time-text.ts";
import { many, type Sentences } from "./words.ts";

const size = (bytes: unknown): string => humanBytes(Number(bytes));
const duration = (ms: unknown): string => durationText(Number(ms));
const time = (ms: unknown): string => timeText(Number(ms));
const unused = ({ unusedMs }: Numbers): string =>
  unusedMs === undefined ? "never seen in use" : `last used ${duration(unusedMs)} ago`;
const users = ({ users: count }: Numbers): string => many(count ?? 1, "container");

/** What the reasons of `image-gc` say. */
export const IMAGE_GC_SENTENCES: Sentences = {
  below_high_threshold: (n) =>
    `${n["usagePercent"]} % used is below the high threshold of ${n["highThresholdPercent"]} %`,
  capacity_zero: () => "a file system of size 0: the kubelet reports it and removes nothing for space",
  clock_stepped: ({ steppedMs }) =>
    `the node's clock was set ${duration(Math.abs(Number(steppedMs)))} ${Number(steppedMs) < 0 ? "back" : "ahead"} since the last pass: what is remembered is moved with it, so nothing is older or younger for that`,
  container_image_not_listed: (n) => `${many(n["containers"], "container")} of it, and the runtime does not list it`,
  image_frees_space: (n) => `${ordinalPlace(n)} ${unused(n)}; ${size(n["sizeBytes"])} come free`,
  image_id_invalid: () => "its id is none that a removal could name",
  image_in_use: (n) => `${users(n)} of any state made from it`,
  image_listed_twice: (n) =>
    `the runtime lists it more than once; ${n["pinned"] === true ? "pinned" : "not pinned"} counts`,
  image_mounted: (n) => `${users(n)} with it mounted as a volume`,
  image_not_needed: () => "what goes before it is enough",
  image_not_reached: () => "the pass ended before it came to this",
  image_not_wanted: () => "nothing is wanted",
  image_of_sandboxes: () =>
    "the runtime starts sandboxes from it; a kubelet keeps it only because it is pinned, which it is not",
  image_pinned: () => "the runtime says that it is pinned",
  image_remembered: (n) =>
    `first seen ${time(n["firstDetectedAtMs"])}, ${n["lastUsedAtMs"] === undefined ? "never in use" : `last in use ${time(n["lastUsedAtMs"])}`}`,
  image_removal_failed: (n) => `the runtime refused: ${n["message"] ?? "it gave no reason"}`,
  image_removal_stopped: (n) =>
    `the pass stopped here: ${n["message"] ?? "what was found was no longer what was decided on"}`,
  image_size_not_told: () => "the runtime does not tell its size: it counts as 0 bytes",
  image_too_old: (n) => `${ordinalPlace(n)} ${unused(n)}, which is longer than ${duration(n["maxAgeMs"])}`,
  image_too_young: (n) => `first seen ${duration(n["ageMs"])} ago, less than ${duration(n["minAgeMs"])}`,
  image_unused: (n) => `${ordinalPlace(n)} ${unused(n)}; all that is not used goes`,
  image_used_now: (n) => `last in use ${time(n["lastUsedAtMs"])}, and this pass is of ${time(n["atMs"])}`,
  maximum_age_waits: (n) =>
    `no image is too old before ${time(n["untilMs"])}: watched since ${time(n["beganAtMs"])}, and imageMaximumGCAge is ${duration(n["maxAgeMs"])}`,
  minimum_age_zero: (n) =>
    `imageMinimumGCAge is 0, not the default of ${duration(n["defaultMs"])}: an image may go before its first use`,
  not_enough_to_free: (n) => `${size(n["freedBytes"])} come free of ${size(n["wantedBytes"])} wanted`,
  over_high_threshold: (n) =>
    `${n["usagePercent"]} % used reaches the high threshold of ${n["highThresholdPercent"]} %: ${size(n["wantedBytes"])} wanted, down to ${n["lowThresholdPercent"]} %`,
  runtime_handler_differs: (n) =>
    `a container of ${n["handler"] === "" ? "no runtime handler" : `the runtime handler ${n["handler"]}`} was made from it, and it is listed for another`,
  runtime_list_failed: (n) => `the runtime did not list what it has, so nothing was decided: ${n["message"]}`,
  timer_off: () => "high threshold 100 % and no maximum age: the kubelet runs no timer for it",
};
const ordinalPlace = ({ place }: Numbers): string => `in place ${place} of the order:`;
