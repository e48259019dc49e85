declare const unit: unique symbol;
type Unit<Name extends string> = number & { readonly [unit]: Name };

/** Thousandths of a CPU. */
export type MilliCpu = Unit<"MilliCpu">;
/** Bytes; whole, and safe: |n| <= 2^53-1. */
export type Bytes = Unit<"Bytes">;
/** cpu.shares of cgroup v1, 2..262144. */
export type CpuShares = Unit<"CpuShares">;
/** cpu.weight of cgroup v2, 1..10000. */
export type CpuWeight = Unit<"CpuWeight">;
/** Microseconds. */
export type Micros = Unit<"Micros">;
/** Milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = Unit<"EpochMs">;

const whole = (n: number, name: string): number => {
  if (!Number.isSafeInteger(n)) throw new RangeError(`${name} must be a whole number, got ${n}`);
  return n;
};
export const milliCpu = (n: number): MilliCpu => whole(n, "MilliCpu") as MilliCpu;
export const bytes = (n: number): Bytes => whole(n, "Bytes") as Bytes;
export const cpuShares = (n: number): CpuShares => whole(n, "CpuShares") as CpuShares;
export const cpuWeight = (n: number): CpuWeight => whole(n, "CpuWeight") as CpuWeight;
export const micros = (n: number): Micros => whole(n, "Micros") as Micros;
export const epochMs = (n: number): EpochMs => whole(n, "EpochMs") as EpochMs;

/** No limit for a huge page size, on a QoS tier. The kubelet has 1 << 62 there, which is no JSON number that all can read. */
export const NO_PAGE_LIMIT = -1 as Bytes;

/** Truncating division of whole numbers, as Go's int64 `/`; exact for all safe integers, which `Math.trunc(a / b)` is not. */
export const quotient = (a: number, b: number): number => (a - (a % b)) / b;

/** a * b / c as Go's int64 has it: exact product, then truncation. */
export function mulDiv(a: number, b: number, c: number): number {
  const product = a * b;
  return Number.isSafeInteger(product) ? quotient(product, c) : Number((BigInt(a) * BigInt(b)) / BigInt(c));
}
