/**
 * An exact amount of a resource. Each value has exactly one form, so `===` compares amounts: a number of thousandths
 * where that is exact and safe, else a bigint of billionths.
 */
export type Amount = number | bigint;

const NANOS_PER_MILLI = 1_000_000n;
const NANOS_PER_UNIT = 1_000_000_000n;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

export const ZERO: Amount = 0;

const nanos = (a: Amount): bigint => (typeof a === "bigint" ? a : BigInt(a) * NANOS_PER_MILLI);

/** The one form of an amount that is given in billionths. */
export function fromNanos(n: bigint): Amount {
  if (n % NANOS_PER_MILLI !== 0n) return n;
  const milli = n / NANOS_PER_MILLI;
  return milli <= MAX_SAFE && milli >= -MAX_SAFE ? Number(milli) : n;
}
/** An amount of whole units. */
export function fromUnits(units: number): Amount {
  const milli = units * 1000;
  return Number.isSafeInteger(milli) ? milli : fromNanos(BigInt(units) * NANOS_PER_UNIT);
}

export function add(a: Amount, b: Amount): Amount {
  if (typeof a === "number" && typeof b === "number") {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return fromNanos(nanos(a) + nanos(b));
}
export function sub(a: Amount, b: Amount): Amount {
  if (typeof a === "number" && typeof b === "number") {
    const difference = a - b;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return fromNanos(nanos(a) - nanos(b));
}
/** A negative number, zero or a positive number, as a is below, equal to or above b. */
export function compare(a: Amount, b: Amount): number {
  if (a === b) return 0;
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : 1;
  return nanos(a) < nanos(b) ? -1 : 1;
}
/** Whether two are equal, or neither is there. */
export const isSame = (a: Amount | undefined, b: Amount | undefined): boolean =>
  a === undefined || b === undefined ? a === b : compare(a, b) === 0;
export const max = (a: Amount, b: Amount): Amount => (compare(a, b) < 0 ? b : a);
export const isZero = (a: Amount): boolean => a === 0;
export const isNegative = (a: Amount): boolean => a < 0;
/** Negative results become zero: "negative allocatable resources don't make sense" is the kubelet's rule too. */
export const subToZero = (a: Amount, b: Amount): Amount => {
  const difference = sub(a, b);
  return isNegative(difference) ? ZERO : difference;
};

const roundUpTo = (n: bigint, unit: bigint): bigint => {
  const rest = n % unit;
  if (rest === 0n) return n / unit;
  return n / unit + (n > 0n ? 1n : -1n);
};

/** Whole units, rounded away from zero, exact. `Quantity.Value()` of Go. */
export function exactValue(a: Amount): bigint {
  return roundUpTo(nanos(a), NANOS_PER_UNIT);
}
/** Thousandths, rounded away from zero, exact. `Quantity.MilliValue()` of Go. */
export function exactMilliValue(a: Amount): bigint {
  return roundUpTo(nanos(a), NANOS_PER_MILLI);
}
/** Whole units, rounded away from zero. The snapshot's limits keep it a safe integer. */
export function value(a: Amount): number {
  if (typeof a === "bigint") return Number(exactValue(a));
  const rest = a % 1000;
  if (rest === 0) return a / 1000;
  return (a - rest) / 1000 + (rest > 0 ? 1 : -1);
}
/** Thousandths, rounded away from zero. The snapshot's limits keep it a safe integer. */
export const milliValue = (a: Amount): number => (typeof a === "number" ? a : Number(exactMilliValue(a)));

/** True when the amount is a whole number of units. */
export const isWhole = (a: Amount): boolean =>
  typeof a === "number" ? Number.isInteger(a / 1000) : a % NANOS_PER_UNIT === 0n;
export const toNanos = nanos;
