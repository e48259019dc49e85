import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { optional, text } from "./fields.ts";
import { PARTS, type Snapshot } from "./snapshot.ts";

const entry = z.unknown().meta({ type: "object" });
/** Changes to a list of the snapshot from which a turn starts, by entry. */
const changesOf = (most: number) =>
  z.strictObject({
    upsert: optional(z.array(entry).max(most)).describe(
      "each in the place of the one with its key, or new: then it comes last",
    ),
    remove: optional(z.array(text).max(most)).describe("keys of those that are gone"),
    order: optional(z.array(text).max(most)).describe(
      "all keys in their order, where it is another than results by itself",
    ),
  });
export type ListChanges = z.output<ReturnType<typeof changesOf>>;

type Part = keyof Snapshot;
/** Parts that are stored in their posted form, so that a patch of one is a patch of the other. */
export const MERGED_PARTS = [
  "node",
  "kubeletConfiguration",
  "stats",
  "cgroup",
  "kubelet",
  "runtime",
] as const satisfies readonly Part[];

/** The lists that are changed by entry; each has its own key. */
export const CHANGED_BY_ENTRY = ["pods", "containers", "images"] as const;
export type ChangedByEntry = (typeof CHANGED_BY_ENTRY)[number];

/** Changes to the snapshot from which a turn starts. No part is named twice. */
export const snapshotChanges = z.strictObject({
  set: optional(z.partialRecord(z.enum(PARTS), z.unknown())).describe(
    "parts of a NodeSnapshot that are another, each whole; null: it is gone",
  ),
  merge: optional(z.partialRecord(z.enum(MERGED_PARTS), entry)).describe("merge patches (RFC 7396) of parts"),
  pods: optional(changesOf(LIMITS.pods)).describe(
    "by uid; of a mirror pod by its annotation kubernetes.io/config.mirror",
  ),
  containers: optional(changesOf(LIMITS.runtimeContainers)).describe("of the part runtime, by id"),
  images: optional(changesOf(LIMITS.images)).describe("of the part runtime, by id"),
});
export type SnapshotChanges = z.output<typeof snapshotChanges>;

/** How long after a refusal an API without turns is tried with turns again: it may be a newer one by then. */
export const RETRY_TURNS_MS = 10 * 60_000;

/**
 * What a caller does after a refused turn, by its HTTP status: it sends everything (`send whole`), continues without turns (`no
 * turns`), or accepts the refusal. `hasReferred`: the turn referred to something that the API may have discarded.
 */
export function turnRefusal(status: number | undefined, hasReferred: boolean): "send whole" | "no turns" | "refused" {
  if (status === 404 || status === 405) return "no turns";
  return hasReferred && (status === 400 || status === 409 || status === 422) ? "send whole" : "refused";
}
