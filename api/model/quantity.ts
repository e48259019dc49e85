import { type Amount, fromNanos, fromUnits, isWhole, toNanos } from "./amount.ts";
import { err, ok, type Result } from "./result.ts";

export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/** A resource quantity as Kubernetes writes it; `text` is what was posted, so that what is stored reads as it came. */
export class Quantity {
  readonly amount: Amount;
  readonly format: QuantityFormat;
  readonly text: string;
  constructor(amount: Amount, format: QuantityFormat, text: string) {
    this.amount = amount;
    this.format = format;
    this.text = text;
  }
  toJSON(): string {
    return this.text;
  }
}

interface Suffix {
  readonly format: QuantityFormat;
  /** Thousandths per unit where a number holds them (0: use `nanos`). */
  readonly milli: number;
  readonly nanos: bigint;
}
const decimalSuffix = (exponent: number): Suffix => ({
  format: "DecimalSI",
  milli: exponent >= -3 && exponent <= 12 ? 10 ** (exponent + 3) : 0,
  nanos: 10n ** BigInt(exponent + 9),
});
const binarySuffix = (power: number): Suffix => ({
  format: "BinarySI",
  milli: power <= 4 ? 1024 ** power * 1000 : 0,
  nanos: 1024n ** BigInt(power) * 1_000_000_000n,
});
const SUFFIXES = new Map<string, Suffix>([
  ...(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"] as const).map((s, i) => [s, decimalSuffix(i * 3 - 9)] as const),
  ...(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] as const).map((s, i) => [s, binarySuffix(i + 1)] as const),
]);

export interface QuantityFault {
  readonly code: "malformed" | "out_of_range";
  readonly message: string;
}

const MAX_LENGTH = 64;
const MAX_MILLI_NANOS = (2n ** 63n - 1n) * 1_000_000n;
const digitsEnd = (s: string, from: number): number => {
  let i = from;
  while (i < s.length && s.charCodeAt(i) >= 48 && s.charCodeAt(i) <= 57) i++;
  return i;
};

/**
 * Parses every notation and suffix that Go's `resource.ParseQuantity` takes. Finer than a billionth rounds away from zero.
 * Errors: not a quantity; or an amount whose thousandths leave int64 (Go would overflow silently there).
 */
export function parseQuantity(text: string): Result<Quantity, QuantityFault> {
  if (text.length > MAX_LENGTH)
    return err({ code: "malformed", message: `quantity is longer than ${MAX_LENGTH} characters` });
  const first = text.charCodeAt(0);
  const signed = first === 43 || first === 45;
  const start = signed ? 1 : 0;
  const intEnd = digitsEnd(text, start);
  const hasDot = text.charCodeAt(intEnd) === 46;
  const end = hasDot ? digitsEnd(text, intEnd + 1) : intEnd;
  // Go reads a lone sign and a lone dot as zero, but not the empty text.
  if (end === start && (!signed || end < text.length)) return malformed(text);
  const suffixText = text.slice(end);
  const suffix = SUFFIXES.get(suffixText) ?? exponentSuffix(suffixText);
  if (suffix === undefined) return malformed(text);
  const negative = first === 45;
  if (!hasDot && suffix.milli !== 0 && end - start <= 15) {
    const milli = Number(text.slice(start, end)) * suffix.milli;
    if (Number.isSafeInteger(milli))
      return ok(new Quantity(negative && milli !== 0 ? -milli : milli, suffix.format, text));
  }
  return parseExact(text, start, intEnd, end, hasDot, suffix, negative);
}

function parseExact(
  text: string,
  start: number,
  intEnd: number,
  end: number,
  hasDot: boolean,
  suffix: Suffix,
  negative: boolean,
): Result<Quantity, QuantityFault> {
  const fraction = hasDot ? text.slice(intEnd + 1, end) : "";
  const mantissa = BigInt(text.slice(start, intEnd) + fraction); // BigInt("") is 0n
  const divisor = 10n ** BigInt(fraction.length);
  const product = mantissa * suffix.nanos;
  // a negative power of ten below nano is kept as a divisor in `milli` (see exponentSuffix)
  const whole = suffix.milli < 0 ? divisor * 10n ** BigInt(-suffix.milli) : divisor;
  const magnitude = product / whole + (product % whole === 0n ? 0n : 1n);
  if (magnitude > MAX_MILLI_NANOS) return outOfRange(text);
  return ok(new Quantity(fromNanos(negative ? -magnitude : magnitude), suffix.format, text));
}

const malformed = (text: string): Result<never, QuantityFault> =>
  err({
    code: "malformed",
    message: `\`${text}\` is not a quantity (a number with an optional suffix m, k, M, G, Ki, Mi, Gi ... or exponent e3)`,
  });
const outOfRange = (text: string): Result<never, QuantityFault> =>
  err({ code: "out_of_range", message: `quantity \`${text}\` is out of range: its thousandths leave int64` });

/** `e3`, `E-2`: a power of ten. Below 1e-9 the power is carried as a negative `milli`, a divisor of the exact path. */
function exponentSuffix(s: string): Suffix | undefined {
  if (!/^[eE][+-]?\d{1,9}$/.test(s)) return undefined;
  const exponent = Math.max(-MAX_LENGTH * 2, Math.min(MAX_LENGTH, Number(s.slice(1))));
  if (exponent < -9) return { format: "DecimalExponent", milli: exponent + 9, nanos: 1n };
  return { format: "DecimalExponent", milli: 0, nanos: 10n ** BigInt(exponent + 9) };
}

/** A quantity of whole units in the given format, with its canonical text. */
export function quantityOf(amount: Amount, format: QuantityFormat): Quantity {
  return new Quantity(amount, format, canonicalText(amount, format));
}
export const unitsQuantity = (units: number, format: QuantityFormat): Quantity => quantityOf(fromUnits(units), format);

/** The text that Go's `Quantity.String()` prints: the largest suffix that keeps the mantissa whole. */
export function canonicalText(amount: Amount, format: QuantityFormat): string {
  if (amount === 0) return "0";
  const nanos = toNanos(amount);
  const magnitude = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? "-" : "";
  if (format === "BinarySI" && magnitude >= 1024n * 1_000_000_000n && isWhole(amount)) {
    return sign + withSuffix(magnitude / 1_000_000_000n, 1024n, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
  }
  if (format === "DecimalExponent") {
    return sign + withSuffix(magnitude, 1000n, ["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"]);
  }
  return sign + withSuffix(magnitude, 1000n, ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]);
}

function withSuffix(magnitude: bigint, base: bigint, suffixes: readonly string[]): string {
  let mantissa = magnitude;
  let i = 0;
  while (i < suffixes.length - 1 && mantissa % base === 0n) {
    mantissa /= base;
    i++;
  }
  return `${mantissa}${suffixes[i]}`;
}
