import { describe, expect, test } from "vitest";
import {
  type Amount,
  add,
  compare,
  exactMilliValue,
  exactValue,
  fromNanos,
  fromUnits,
  isNegative,
  isWhole,
  isZero,
  max,
  milliValue,
  sub,
  subToZero,
  toNanos,
  value,
} from "../../api/model/amount.ts";
import { canonicalText, parseQuantity } from "../../api/model/quantity.ts";
import { type Draws, draws, Met } from "./draws.ts";

const MILLI = 1_000_000n;
const UNIT = 1_000_000_000n;
/** The largest amount that is stored as a number. */
const SAFE_MILLI = BigInt(Number.MAX_SAFE_INTEGER) * MILLI;
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER) * UNIT;

/**
 * Billionths of every magnitude: small, near the limit of exact numbers, and beyond it; in whole units, thousandths and
 * smaller steps.
 */
function nanos(d: Draws): bigint {
  const step = d.pick([1n, MILLI, UNIT, UNIT * 1024n]);
  const size = BigInt(d.spread(2 ** 50)) * step;
  const edge = d.pick([SAFE_MILLI, LARGEST / 2n]);
  const n = d.chance(3) ? edge - size / d.pick([1n, 1_000_000n]) : size;
  return d.chance(4) ? -n : n;
}
const canonicalForm = (a: Amount): boolean =>
  typeof a === "number"
    ? Number.isSafeInteger(a) && !Object.is(a, -0)
    : a % MILLI !== 0n || a > SAFE_MILLI || a < -SAFE_MILLI;
const away = (n: bigint, unit: bigint): bigint => n / unit + (n % unit === 0n ? 0n : n > 0n ? 1n : -1n);
const sign = (n: bigint | number): number => (n < 0 ? -1 : n > 0 ? 1 : 0);

describe("amounts behave as exact billionths (seed 1)", { timeout: 120_000 }, () => {
  test("in add, sub, compare, max and rounding, with one representation per value", () => {
    const d = draws(1);
    const met = new Met();
    for (let i = 0; i < 20_000; i++) {
      const [x, y] = [nanos(d), d.chance(5) ? 0n : nanos(d)];
      const [a, b] = [fromNanos(x), fromNanos(y)];
      const at = `draw ${i}: ${x}n, ${y}n`;
      const sum = add(a, b);
      const difference = sub(a, b);
      if (toNanos(sum) !== x + y || toNanos(difference) !== x - y) expect.fail(`${at}: sum or difference is off`);
      for (const form of [a, b, sum, difference]) if (!canonicalForm(form)) expect.fail(`${at}: ${form} has two forms`);
      if (sum !== fromNanos(x + y) || sub(sum, b) !== a || add(b, a) !== sum) expect.fail(`${at}: === does not hold`);
      if (sign(compare(a, b)) !== sign(x - y) || max(a, b) !== (x >= y ? a : b)) expect.fail(`${at}: compare`);
      if (subToZero(a, b) !== fromNanos(x > y ? x - y : 0n)) expect.fail(`${at}: subToZero`);
      if (exactValue(a) !== away(x, UNIT) || exactMilliValue(a) !== away(x, MILLI)) expect.fail(`${at}: rounding`);
      if (value(a) !== Number(away(x, UNIT)) || milliValue(a) !== Number(away(x, MILLI))) expect.fail(`${at}: value`);
      if (isZero(a) !== (x === 0n) || isNegative(a) !== x < 0n || isWhole(a) !== (x % UNIT === 0n)) expect.fail(at);
      met.note("both numbers", typeof a === "number" && typeof b === "number" && typeof sum === "number");
      met.note(
        "numbers whose sum is not safe",
        typeof a === "number" && typeof b === "number" && typeof sum === "bigint",
      );
      met.note("a bigint and a number", typeof a !== typeof b);
      met.note("bigints whose difference is a number", typeof a === "bigint" && typeof difference === "number");
      met.note("negative", x < 0n);
      met.note("a fraction of a unit", x % UNIT !== 0n);
    }
    expect(met.hardly(50)).toEqual([]);
  });
  test("in whole units of every size, with that representation too", () => {
    for (const units of [0, 1, 1023, 2 ** 40, 9_007_199_254_740, 9_007_199_254_741, Number.MAX_SAFE_INTEGER]) {
      expect(toNanos(fromUnits(units))).toBe(BigInt(units) * UNIT);
      expect(canonicalForm(fromUnits(units)), String(units)).toBe(true);
      expect(value(fromUnits(units))).toBe(units);
    }
  });
});

const SUFFIXES = [
  "",
  "n",
  "u",
  "m",
  "k",
  "M",
  "G",
  "T",
  "P",
  "Ki",
  "Mi",
  "Gi",
  "Ti",
  "Pi",
  "e3",
  "E-3",
  "e0",
  "e-9",
  "e+6",
];
const POWER: Readonly<Record<string, bigint>> = { n: 1n, u: 1000n, m: MILLI, "": UNIT, k: 10n ** 12n, M: 10n ** 15n };
const digits = (d: Draws, most: number): string =>
  Array.from({ length: d.below(most + 1) }, () => String(d.below(10))).join("");

describe("texts of quantities (seed 2)", { timeout: 120_000 }, () => {
  test("the canonical text parses to the same amount, and is its own canonical text", () => {
    const d = draws(2);
    const met = new Met();
    for (let i = 0; i < 20_000; i++) {
      const text = `${d.pick(["", "", "-", "+"])}${digits(d, 9)}1${d.chance(3) ? `.${digits(d, 6)}` : ""}${d.pick(SUFFIXES)}`;
      const first = parseQuantity(text);
      met.note("out of range", !first.ok);
      if (!first.ok) continue;
      const { amount, format } = first.value;
      const again = parseQuantity(canonicalText(amount, format));
      if (!again.ok || again.value.amount !== amount) expect.fail(`draw ${i}: ${text} does not come back`);
      const { amount: a, format: f } = again.value;
      if (canonicalText(a, f) !== canonicalText(amount, format)) expect.fail(`draw ${i}: ${text} is not canonical`);
      met.note(`written as ${format}`);
      met.note("a bigint", typeof amount === "bigint");
      met.note("negative", isNegative(amount));
    }
    expect(met.hardly(200)).toEqual([]);
  });
  test("decimal suffixes are powers of a thousand, wherever the decimal point is", () => {
    const d = draws(3);
    for (let i = 0; i < 5000; i++) {
      const [whole, fraction, suffix] = [digits(d, 6), digits(d, 5), d.pick(Object.keys(POWER))];
      const scaled = BigInt(`0${whole}${fraction}`) * (POWER[suffix] as bigint);
      const unit = 10n ** BigInt(fraction.length);
      const parsed = parseQuantity(`0${whole}.${fraction}${suffix}`);
      const want = away(scaled, unit);
      if (want > (2n ** 63n - 1n) * MILLI) continue;
      if (!parsed.ok || toNanos(parsed.value.amount) !== want) expect.fail(`draw ${i}: 0${whole}.${fraction}${suffix}`);
    }
  });
  test("parsing never throws, and accepts finite amounts only", () => {
    const d = draws(4);
    const ALPHABET = [..."0123456789+-.eEmkKMGTPinuI _x\u0000\n\u{1F600}", "Ki", "Gi", "e9", "e-", "99999999"];
    const met = new Met();
    for (let i = 0; i < 20_000; i++) {
      const text = Array.from({ length: d.below(d.chance(50) ? 400 : 9) }, () => d.pick(ALPHABET)).join("");
      const parsed = parseQuantity(text);
      met.note(parsed.ok ? "taken" : parsed.error.code);
      if (parsed.ok) canonicalText(parsed.value.amount, parsed.value.format);
      else if (parsed.error.message.length > 300) expect.fail(`draw ${i}: the message echoes everything`);
    }
    expect(met.hardly(50)).toEqual([]);
  });
});
