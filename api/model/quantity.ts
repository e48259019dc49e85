import { type Amount, fromNanos, fromUnits, isWhole, toNanos } from "./amount.ts";
import { err, ok, type Result } from "./result.ts";

export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/** A resource quantity as Kubernetes writes it. */
export class Quantity {
  readonly amount: Amount;
  readonly format: QuantityFormat;
  #text: string | undefined;
  constructor(amount: Amount, format: QuantityFormat, text?: string) {
    this.amount = amount;
    this.format = format;
    this.#text = text;
  }
  /** What was posted, so that what is stored reads as it came; the canonical text of what was worked out. */
  get text(): string {
    this.#text ??= canonicalText(this.amount, this.format);
    return this.#text;
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
  // Go reads a sign, a dot or a suffix without digits as zero, but not the empty text.
  if (text === "") return malformed(text);
  const suffixText = text.slice(end);
  const suffix = SUFFIXES.get(suffixText) ?? exponentSuffix(suffixText);
  if (suffix === undefined) return malformed(text);
  const negative = first === 45;
  if (!hasDot && suffix.milli > 0 && end - start <= 15) {
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

export const quantityOf = (amount: Amount, format: QuantityFormat): Quantity => new Quantity(amount, format);
export const unitsQuantity = (units: number, format: QuantityFormat): Quantity =>
  new Quantity(fromUnits(units), format);

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const EXPONENT = ["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"];
/** Of DECIMAL and EXPONENT: where thousandths stand. */
const MILLI = 2;

/** The text that Go's `Quantity.String()` prints: the largest suffix that keeps the mantissa whole. */
export function canonicalText(amount: Amount, format: QuantityFormat): string {
  if (amount === 0) return "0";
  const binary = format === "BinarySI" && isWhole(amount) && isLarge(amount);
  const suffixes = format === "DecimalExponent" ? EXPONENT : DECIMAL;
  if (typeof amount === "number") {
    return binary ? withSuffix(amount / 1000, 1024, BINARY, 0) : withSuffix(amount, 1000, suffixes, MILLI);
  }
  const nanos = toNanos(amount);
  return binary ? withBigSuffix(nanos / 1_000_000_000n, 1024n, BINARY) : withBigSuffix(nanos, 1000n, suffixes);
}
/** Below 1024 units BinarySI is written as DecimalSI. */
const isLarge = (amount: Amount): boolean =>
  typeof amount === "number"
    ? Math.abs(amount) >= 1_024_000
    : amount >= 1_024_000_000_000n || amount <= -1_024_000_000_000n;

function withSuffix(n: number, base: number, suffixes: readonly string[], first: number): string {
  let mantissa = n;
  let i = first;
  while (i < suffixes.length - 1 && mantissa % base === 0) {
    mantissa /= base;
    i++;
  }
  return `${mantissa}${suffixes[i]}`;
}
function withBigSuffix(n: bigint, base: bigint, suffixes: readonly string[]): string {
  let mantissa = n;
  let i = 0;
  while (i < suffixes.length - 1 && mantissa % base === 0n) {
    mantissa /= base;
    i++;
  }
  return `${mantissa}${suffixes[i]}`;
}
