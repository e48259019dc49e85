import { perObject } from "../base/cache.ts";
import { type Amount, value } from "../model/amount.ts";
import { parseQuantity } from "../model/quantity.ts";
import { type Bytes, bytes } from "../model/units.ts";

const PREFIX = "hugepages-";
export const isHugePage = (name: string): boolean => name.startsWith(PREFIX);

/** The page size of a resource: `hugepages-2Mi` -> 2097152; undefined: the name is no page size. */
export function pageSizeOf(name: string): number | undefined {
  if (!isHugePage(name)) return undefined;
  const size = parseQuantity(name.slice(PREFIX.length));
  return size.ok && value(size.value.amount) > 0 ? value(size.value.amount) : undefined;
}

/** Page size in bytes -> bytes asked for. kubelet 1.36: HugePageLimits. */
export function hugePageLimits<Q>(
  list: ReadonlyMap<string, Q>,
  amountOf: (quantity: Q) => Amount,
): Record<string, Bytes> | undefined {
  let limits: Record<string, Bytes> | undefined;
  for (const [name, quantity] of list) {
    const size = pageSizeOf(name);
    if (size === undefined) continue;
    limits ??= {};
    limits[String(size)] = bytes(value(amountOf(quantity)));
  }
  return limits;
}

type Limits = Readonly<Record<string, Bytes>>;
const limitsBySizes = perObject((_sizes: readonly number[]) => new Map<Bytes, Limits>());

/**
 * One limit (bytes) for every page size of a node. The object is cached by list, since most cgroups of a node share
 * it.
 */
export function limitEach(sizes: readonly number[], limit: Bytes): Limits {
  const made = limitsBySizes(sizes);
  const limits = made.get(limit) ?? Object.fromEntries(sizes.map((size) => [String(size), limit]));
  made.set(limit, limits);
  return limits;
}

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];
/** The kernel's name of a page size, `2MB`, as its files and CRI spell it. kubelet 1.36: HugePageUnitSizeFromByteSize. */
export function pageSizeUnit(size: number): string {
  let rest = size;
  let unit = 0;
  while (rest >= 1024 && rest % 1024 === 0 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit++;
  }
  return `${rest}${UNITS[unit]}`;
}
