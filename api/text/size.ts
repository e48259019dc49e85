import type { Amount } from "../model/amount.ts";
import { toNanos } from "../model/amount.ts";
import { parseQuantity } from "../model/quantity.ts";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Bytes for the eye: `512 MiB`, `23.5 GiB`; at most one decimal. */
export function humanBytes(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (Math.abs(Math.round(size * 10) / 10) >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${Math.round(size * 10) / 10} ${UNITS[unit]}`;
}

/** The size of a quantity's text in its unit, for drawing; 0 for what is no quantity. */
export function magnitude(text: string | undefined): number {
  const parsed = parseQuantity(text ?? "");
  return parsed.ok ? units(parsed.value.amount) : 0;
}
const units = (amount: Amount): number => (typeof amount === "number" ? amount / 1000 : Number(toNanos(amount)) / 1e9);

/** Whether a resource is counted in bytes. */
export const isBytes = (resource: string): boolean =>
  resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-");
