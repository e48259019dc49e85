import type { CgroupValues } from "../../model/cgroups.ts";
import type { Bytes } from "../../model/units.ts";
import { limitEach, pageSizeUnit } from "../hugepages.ts";
import type { TreeContext } from "./context.ts";
import type { Writable } from "./pod-config.ts";

type Values = Writable<CgroupValues>;

/**
 * Limits every page size of the node for a cgroup of the kubelet's own; a size without a limit gets `unnamed` (bytes).
 */
export function limitAllPages(values: Values, context: TreeContext, at: string, unnamed: Bytes): void {
  keepNodePages(values, context, at);
  const { pageSizes, reasons } = context;
  if (pageSizes.length === 0) return;
  const every = limitEach(pageSizes, unnamed);
  values.hugePageLimit = values.hugePageLimit === undefined ? every : { ...every, ...values.hugePageLimit };
  reasons.add("page_sizes_of_node", at, "hugePageLimit", { unnamed: unnamed === 0 ? "0" : "unlimited" });
}

/**
 * Removes limits of page sizes that the node does not have: the kernel has no file for them, and the kubelet would not
 * have admitted the pod. If the capacity is not known, it is added to the needs.
 */
export function keepNodePages(values: Values, context: TreeContext, at: string): void {
  const { pageSizes, reasons, needs, snapshot } = context;
  const absent = dropPages(values, pageSizes);
  if (absent.length === 0) return;
  const names = absent.map((size) => pageSizeUnit(Number(size)));
  const hasController = snapshot.machine?.hugetlb !== false;
  const because = hasController ? "the node has no pages of that size" : "the machine has no hugetlb controller";
  reasons.add("pages_left_out", at, "hugePageLimit", { sizes: names.join(", "), because });
  const isUnknown = hasController && snapshot.node?.status?.capacity === undefined;
  if (isUnknown && !needs.includes(CAPACITY)) needs.push(CAPACITY);
}
/** Removes the limits of all sizes but `pageSizes` (bytes), and returns the removed sizes. */
export function dropPages(values: Values, pageSizes: readonly number[]): readonly string[] {
  const limits = values.hugePageLimit ?? {};
  const absent = Object.keys(limits).filter((size) => !pageSizes.includes(Number(size)));
  if (absent.length === 0) return absent;
  const kept = Object.entries(limits).filter(([size]) => !absent.includes(size));
  delete values.hugePageLimit;
  if (kept.length > 0) values.hugePageLimit = Object.fromEntries(kept);
  return absent;
}
const CAPACITY = "node.status.capacity";
