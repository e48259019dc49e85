import { type Amount, fromUnits, toNanos } from "../model/amount.ts";
import { canonicalText, parseQuantity } from "../model/quantity.ts";

const milliCpu = (n: number): string => (n % 1000 === 0 ? `${n / 1000}` : `${n}m`);

/** An amount of a resource for the eye: `1500m` CPU (given in thousandths), `22.1 GiB`, `3`. */
export function amountText(resource: string, units: number): string {
  if (resource === "cpu") return milliCpu(units);
  return isBytes(resource) ? humanBytes(units) : `${units}`;
}

/** As one would write it in a manifest, to the unit: `412Mi`; beside a long one what it comes to. */
export function exactAmountText(resource: string, units: number): string {
  if (!isBytes(resource)) return amountText(resource, units);
  const exact = canonicalText(fromUnits(units), "BinarySI");
  return exact.length > LONGEST ? `${exact} (${humanBytes(units)})` : exact;
}
const LONGEST = 5;

/** `cpu 150m, memory 32 MiB`. */
export const amountsText = (
  amounts: readonly { readonly resource: string; readonly quantity: number }[],
  separator = ", ",
): string => amounts.map(({ resource, quantity }) => `${resource} ${amountText(resource, quantity)}`).join(separator);

/** A distance of preemption to three digits. */
export const distanceText = (distance: number): string => `${Number(distance.toPrecision(3))}`;

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

/** Checks that a resource is counted in bytes. */
export const isBytes = (resource: string): boolean =>
  resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-");

/** A share of 0 to 1: `99.9 %`. Not rounded up, since 100 % says that nothing is left. */
export const shareText = (share: number): string => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
