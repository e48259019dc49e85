import { fromUnits } from "../model/amount.ts";
import { canonicalText } from "../model/quantity.ts";
import { humanBytes, isBytes } from "./size.ts";

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
