import type { GcOperation, NodeEvent } from "../../model/container-gc.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Words } from "../../profiles/profile.ts";
import { goDurationText } from "../go/strconv.ts";
import {
  type ChosenImage,
  isGone,
  type Ordered,
  type RemainingImage,
  type RemovalOutcomes,
  Removals,
} from "./eviction-order.ts";
import { type DiskNumbers, type DiskState, diskState, type ImageGcPolicy } from "./input.ts";

/** The kubelet's words about a collection. */

const UNITS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** A size for a person: `15.0 GiB`. kubelet 1.36: formatSize. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let size = bytes / 1024;
  let unit = 0;
  for (; size >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024;
  return `${oneDecimal(size)} ${UNITS[unit]}`;
}
/**
 * One decimal as Go rounds it: both languages round the exact binary value, but a tie (.25 or .75) goes up in
 * `toFixed` and to the even digit in Go.
 */
const oneDecimal = (n: number): string => (n % 1 === 0.25 ? `${Math.trunc(n)}.2` : n.toFixed(1));

/** Joins error messages without duplicates; a single one stays plain. apimachinery: errors.NewAggregate. */
function aggregate(messages: readonly string[]): string {
  const different = [...new Set(messages)];
  return different.length === 1 ? (different[0] as string) : `[${different.join(", ")}]`;
}

/** Builds the error for images that were too old. kubelet 1.36: freeOldImages. */
const ageError = (maxAgeNanos: number, messages: readonly string[]): string =>
  `wanted to free images older than ${goDurationText(BigInt(maxAgeNanos))}, encountered errors in image deletion: ${aggregate(messages)}`;

/** kubelet 1.36: freeSpace. */
const spaceError = (wanted: bigint, freed: bigint, messages: readonly string[]): string =>
  `wanted to free ${wanted} bytes, but freed ${freed} bytes space with errors in image deletion: ${aggregate(messages)}`;

const CAPACITY_ZERO = "invalid capacity 0 on image filesystem";

interface CollectInput {
  readonly operation: GcOperation;
  readonly policy: ImageGcPolicy;
  readonly order: readonly Ordered[];
  readonly ends: RemovalOutcomes;
  /** The usage of the image file system; null: the operation does not read it. */
  readonly disk: DiskNumbers | null;
  readonly now: EpochMs;
  readonly beganAtMs: EpochMs;
  readonly words: Words;
}
export interface Collected {
  readonly taken: readonly ChosenImage[];
  readonly left: readonly RemainingImage[];
  readonly disk: DiskState | null;
  /** The bytes freed for space, summed as Go's int64. */
  readonly freed: bigint;
  readonly error: string | null;
  readonly events: readonly NodeEvent[];
  /** True: a removal was stopped, and the pass ended there. */
  readonly stopped: boolean;
}
/** The amount that an eviction asks to free: everything. */
const MAX_INT64 = 2n ** 63n - 1n;
export const warning = (reason: string, message: string): NodeEvent => ({ type: "Warning", reason, message });

/** One pass of the collection. kubelet 1.36: GarbageCollect, DeleteUnusedImages. */
export function collect(input: CollectInput): Collected {
  const { operation, policy, order } = input;
  const removals = new Removals(input.ends);
  const answer = (rest: Partial<Collected>): Collected => {
    const { taken, left, stopped } = removals;
    return { taken, left, stopped, disk: null, freed: 0n, error: null, events: [], ...rest };
  };
  if (operation === "delete-unused") {
    const { freed, errors } = freeSpace(removals, order, MAX_INT64, input);
    return answer({ freed, error: errors.length > 0 ? spaceError(MAX_INT64, freed, errors) : null });
  }
  if (!policy.timer) return answer({ freed: freeSpace(removals, order, null, input).freed });
  const { rest, errors } = freeOldImages(removals, input);
  const broken = errors.length > 0;
  if (broken || removals.stopped) {
    const { freed } = freeSpace(removals, rest, "not-reached", input);
    return answer({ freed, error: broken ? ageError(policy.maxAgeNanos, errors) : null });
  }
  return answer(forSpace(removals, rest, input));
}

/** Removes images down to the low threshold if usage is above the high threshold. */
function forSpace(removals: Removals, rest: readonly Ordered[], input: CollectInput): Partial<Collected> {
  const disk = diskState(input.disk ?? {}, input.policy);
  if (disk.capacityBytes === 0) {
    const { freed } = freeSpace(removals, rest, "not-reached", input);
    return { disk, freed, error: CAPACITY_ZERO, events: [warning("InvalidDiskCapacity", CAPACITY_ZERO)] };
  }
  if (disk.wantedBytes === null) return { disk, freed: freeSpace(removals, rest, null, input).freed };
  const wanted = BigInt(disk.wantedBytes);
  const { freed, errors } = freeSpace(removals, rest, wanted, input);
  if (errors.length > 0) return { disk, freed, error: spaceError(wanted, freed, errors) };
  if (freed >= wanted || removals.stopped) return { disk, freed };
  const { usagePercent, capacityBytes } = disk;
  const error = input.words.imagesNotFreed({ usagePercent, capacity: formatSize(capacityBytes), wanted, freed });
  return { disk, freed, error, events: [warning("FreeDiskSpaceFailed", error)] };
}

/**
 * Removes images that were unused for too long, regardless of space, and returns the rest. kubelet 1.36:
 * freeOldImages.
 */
function freeOldImages(
  removals: Removals,
  { policy, order, now, beganAtMs }: CollectInput,
): { readonly rest: readonly Ordered[]; readonly errors: readonly string[] } {
  if (policy.maxAgeMs === 0 || now - beganAtMs <= policy.maxAgeMs) return { rest: order, errors: [] };
  const rest: Ordered[] = [];
  const errors: string[] = [];
  for (const candidate of order) {
    const { lastUsedAtMs } = candidate.image;
    if (lastUsedAtMs !== null && now - lastUsedAtMs <= policy.maxAgeMs) {
      rest.push(candidate);
    } else if (removals.stopped && !removals.isDone(candidate)) {
      removals.leave(candidate, "not-reached");
    } else {
      const refused = removals.take(candidate, "too-old");
      if (refused !== undefined) errors.push(refused);
    }
  }
  return { rest, errors };
}

/**
 * Removes images until `wanted` bytes are free. The check comes after a removal, so even 0 or less removes one image.
 * Null: nothing is wanted; `not-reached`: the pass ended before. Removals that already happened count in any case.
 * kubelet 1.36: freeSpace.
 */
function freeSpace(
  removals: Removals,
  order: readonly Ordered[],
  wanted: bigint | null | "not-reached",
  { operation, policy, now }: CollectInput,
): { readonly freed: bigint; readonly errors: readonly string[] } {
  const errors: string[] = [];
  const goal = typeof wanted === "bigint" ? wanted : MAX_INT64;
  let closed: RemainingImage["why"] | undefined =
    wanted === null ? "enough-space" : wanted === "not-reached" ? wanted : undefined;
  let freed = 0n;
  for (const candidate of order) {
    if (!removals.isDone(candidate)) {
      const why = closed ?? whyItStays(candidate, policy, now);
      if (why !== undefined) {
        removals.leave(candidate, why);
        continue;
      }
    }
    const refused = removals.take(candidate, operation === "delete-unused" ? "unused" : "space");
    if (refused !== undefined) errors.push(refused);
    if (removals.stopped) closed = "not-reached";
    if (!isGone(removals.taken.at(-1) as ChosenImage)) continue;
    freed = BigInt.asIntN(64, freed + BigInt(candidate.image.sizeBytes));
    if (freed >= goal) closed ??= "not-needed";
  }
  return { freed, errors };
}
function whyItStays({ image }: Ordered, { minAgeMs }: ImageGcPolicy, now: EpochMs): RemainingImage["why"] | undefined {
  if (image.lastUsedAtMs !== null && image.lastUsedAtMs >= now) return "used-now";
  return now - image.firstDetectedAtMs < minAgeMs ? "too-young" : undefined;
}
