import type { ImageGcFacts } from "./image-gc-facts.ts";

type Known = Pick<ImageGcFacts, "beganAtMs" | "records" | "removed">;

/**
 * Whether an answer's `next` was made by somebody who forgot, or never knew, what is remembered here: the node is watched
 * for longer, an image was first seen earlier or last used later, one was collected more often.
 */
export function knowsLess(next: Known, here: Known): boolean {
  if (next.beganAtMs > here.beganAtMs || next.removed.length < here.removed.length) return true;
  const records = new Map(next.records.map((record) => [keyOf(record[0], record[3]), record]));
  const isForgotten = here.records.some(([id, firstMs, usedMs, handler]) => {
    const record = records.get(keyOf(id, handler));
    return record !== undefined && (record[1] > firstMs || (record[2] ?? -1) < (usedMs ?? -1));
  });
  const times = new Map(next.removed.map((one) => [keyOf(one.id, one.runtimeHandler), one.times]));
  const isUncounted = here.removed.some((one) => {
    const known = times.get(keyOf(one.id, one.runtimeHandler));
    return known !== undefined && known < one.times;
  });
  return isForgotten || isUncounted;
}
const keyOf = (id: string, handler: string | undefined): string => `${id},${handler ?? ""}`;
