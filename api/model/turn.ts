import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { optional, text } from "./fields.ts";
import { PARTS, type Snapshot } from "./snapshot.ts";

const entry = z.unknown().meta({ type: "object" });
/** Changes to a list of the snapshot from which a turn starts, by entry. */
const changesOf = (most: number) =>
  z.strictObject({
    upsert: optional(z.array(entry).max(most)).describe(
      "entries to set: each replaces the entry with the same key, or is new and comes last",
    ),
    remove: optional(z.array(text).max(most)).describe("the keys of the entries to remove"),
    order: optional(z.array(text).max(most)).describe(
      "the keys of all entries in their order, if the order differs from the one that `upsert` and `remove` give",
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
    "the parts of a NodeSnapshot that are replaced as a whole; null: the part is removed",
  ),
  merge: optional(z.partialRecord(z.enum(MERGED_PARTS), entry)).describe(
    "merge patches (RFC 7396) by the part of the NodeSnapshot that each changes",
  ),
  pods: optional(changesOf(LIMITS.pods)).describe(
    "changes of `pods`; the key is the uid, for a mirror pod its annotation kubernetes.io/config.mirror",
  ),
  containers: optional(changesOf(LIMITS.runtimeContainers)).describe(
    "changes of a list in `runtime`; the key is the id",
  ),
  images: optional(changesOf(LIMITS.images)).describe("changes of a list in `runtime`; the key is the id"),
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
