import { type Amount, toNanos } from "../model/amount.ts";
import { parseQuantity } from "../model/quantity.ts";

const milliCpu = (n: number): string => (n % 1000 === 0 ? `${n / 1000}` : `${n}m`);

/**
 * An amount of a resource: `1500m` CPU (given in thousandths), `16,066,164`; bytes for the eye, `22.1 GiB`, or exact, as JSON has them.
 */
export function amountText(resource: string, units: number, isExact = false): string {
  if (resource === "cpu") return milliCpu(units);
  if (isExact) return `${units}`;
  return isBytes(resource) ? humanBytes(units) : units.toLocaleString("en");
}

/** A quantity for people. A configured threshold may be a share, `10%`, and stays unchanged. */
export const quantityText = (resource: string, text: string, isExact = false): string =>
  isBytes(resource) && !isExact && parseQuantity(text).ok && magnitude(text) !== 0 ? humanBytes(magnitude(text)) : text;

/** A quantity as written, `500Mi` or `10%`, except for a bare number of bytes. */
export const writtenText = (resource: string, text: string, isExact = false): string =>
  /^\d+$/.test(text) ? quantityText(resource, text, isExact) : text;

/** A minimum or maximum as a readable amount, rounded so that the bound still holds: `15.9 KiB` for at most 16383 bytes. */
export function boundText(resource: string, bound: "least" | "most", units: number, isExact = false): string {
  if (!isBytes(resource) || isExact) return amountText(resource, units, isExact);
  return roundedBytes(units, bound === "least" ? Math.ceil : Math.floor);
}

/** The resource that a signal of the eviction manager is about: `nodefs.available` is of bytes, `pid.available` is not. */
export const resourceOfSignal = (signal: string): string => {
  if (!signal.endsWith(".available") || signal === "pid.available") return signal;
  return signal.toLowerCase().includes("memory") ? "memory" : "ephemeral-storage";
};

/** `cpu 150m, memory 32 MiB`. */
export const amountsText = (
  amounts: readonly { readonly resource: string; readonly quantity: number }[],
  separator = ", ",
): string => amounts.map(({ resource, quantity }) => `${resource} ${amountText(resource, quantity)}`).join(separator);

/** A distance of preemption to three digits. */
export const distanceText = (distance: number): string => `${Number(distance.toPrecision(3))}`;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Bytes for the eye: `512 MiB`, `23.5 GiB`; at most one decimal. */
export const humanBytes = (bytes: number): string => roundedBytes(bytes, Math.round);

function roundedBytes(bytes: number, round: (size: number) => number): string {
  const rounded = (size: number): number => round(size * 10) / 10;
  let size = bytes;
  let unit = 0;
  while (Math.abs(rounded(size)) >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${rounded(size)} ${UNITS[unit]}`;
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

/** A value of a cgroup's file as people read it: memory and huge pages in bytes, everything else as it is. */
export const fileValueText = (file: string, value: string): string =>
  /^(memory|hugetlb)\..*(bytes|max|min|low|high)$/.test(file) && /^\d+$/.test(value)
    ? humanBytes(Number(value))
    : value;

/** A share of 0 to 1: `99.9 %`. It is never rounded up, since 100 % would mean that nothing is left. */
export const shareText = (share: number): string => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
