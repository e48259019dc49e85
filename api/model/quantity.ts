import { err, ok, type Result } from "../base/result.ts";
import { type Amount, fromNanos, fromUnits, isWhole, toNanos } from "./amount.ts";

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
  /** The text as posted, so that stored data reads as it came; for a computed quantity, the canonical text. */
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
  /** Thousandths per unit if a number can represent them (0: use `nanos`). */
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

const UNIT = SUFFIXES.get("") as Suffix;

interface QuantityFault {
  readonly code: "malformed" | "out_of_range";
  readonly message: string;
}

export const LONGEST_QUANTITY = 64;
/** The form of the texts that `parseQuantity` accepts as an amount of at least zero, unless it is out of range. */
export const QUANTITY_PATTERN = "^(?:[+]?[0-9]*[.]?[0-9]*|-0*[.]?0*)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,9})?$";
const MAX_MILLI_NANOS = (2n ** 63n - 1n) * 1_000_000n;
const MINUS = 45;
const DOT = 46;
/** 10^0 to 10^15: fifteen digits can have no more behind a dot. */
const TENS = Array.from({ length: 16 }, (_, i) => 10 ** i);

/**
 * Parses every notation and suffix that Go's `resource.ParseQuantity` accepts. Amounts finer than a billionth are rounded away
 * from zero. Errors: not a quantity; or an amount whose thousandths exceed int64 (Go would overflow silently there).
 */
export function parseQuantity(text: string): Result<Quantity, QuantityFault> {
  if (text.length > LONGEST_QUANTITY)
    return err({ code: "malformed", message: `quantity is longer than ${LONGEST_QUANTITY} characters` });
  // Go reads a sign, a dot or a suffix without digits as zero, but rejects the empty text.
  if (text === "") return malformed(text);
  const first = text.charCodeAt(0);
  const start = first === 43 || first === MINUS ? 1 : 0;
  let digits = 0;
  let dot = -1;
  let end = start;
  for (; end < text.length; end++) {
    const c = text.charCodeAt(end);
    if (c >= 48 && c <= 57) digits = digits * 10 + (c - 48);
    else if (c === DOT && dot < 0) dot = end;
    else break;
  }
  const suffix = suffixAt(text, end);
  if (suffix === undefined) return malformed(text);
  const behindDot = dot < 0 ? 0 : end - dot - 1;
  const milli =
    end - start <= 15 && suffix.milli > 0 ? exactMilli(digits, suffix.milli, TENS[behindDot] as number) : -1;
  const negative = first === MINUS;
  if (milli >= 0) return ok(new Quantity(negative && milli !== 0 ? -milli : milli, suffix.format, text));
  return parseExact(text, start, dot < 0 ? end : dot, end, dot >= 0, suffix, negative);
}

/** digits * milli / divisor if that is a whole number and all intermediate results are exact; else -1. */
function exactMilli(digits: number, milli: number, divisor: number): number {
  const product = milli % divisor === 0 ? digits * (milli / divisor) : digits * milli;
  if (product > Number.MAX_SAFE_INTEGER) return -1;
  if (milli % divisor === 0) return product;
  return product % divisor === 0 ? product / divisor : -1;
}

/** The suffix from `end` on: one or two characters, or an exponent. */
function suffixAt(text: string, end: number): Suffix | undefined {
  if (end === text.length) return UNIT;
  const found = SUFFIXES.get(text.slice(end));
  return found ?? exponentSuffix(text.slice(end));
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
  const exponent = Math.max(-LONGEST_QUANTITY * 2, Math.min(LONGEST_QUANTITY, Number(s.slice(1))));
  if (exponent < -9) return { format: "DecimalExponent", milli: exponent + 9, nanos: 1n };
  return { ...decimalSuffix(exponent), format: "DecimalExponent" };
}

export const quantityOf = (amount: Amount, format: QuantityFormat): Quantity => new Quantity(amount, format);
export const unitsQuantity = (units: number, format: QuantityFormat): Quantity =>
  new Quantity(fromUnits(units), format);

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
export const DECIMAL = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const EXPONENT = ["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"];
/** Index of thousandths in DECIMAL and EXPONENT. */
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
  for (; i < suffixes.length - 1; i++) {
    // of a safe integer no quotient is rounded to a whole one; dividing is much faster than a remainder of large numbers
    const next = mantissa / base;
    if (!Number.isInteger(next)) break;
    mantissa = next;
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
