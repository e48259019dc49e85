import { describe, expect, test } from "vitest";
import { exactMilliValue, exactValue, isNegative } from "../../api/model/amount.ts";
import { canonicalText, parseQuantity, type Quantity, unitsQuantity } from "../../api/model/quantity.ts";

function parsed(text: string): Quantity {
  const result = parseQuantity(text);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

/** Results of Go's apimachinery 0.36.3: text, String(), format, Value(), MilliValue(). */
const GO: readonly (readonly [string, string, string, string, string])[] = [
  ["0", "0", "DecimalSI", "0", "0"],
  ["1", "1", "DecimalSI", "1", "1000"],
  ["-1", "-1", "DecimalSI", "-1", "-1000"],
  ["+1", "1", "DecimalSI", "1", "1000"],
  ["1.", "1", "DecimalSI", "1", "1000"],
  ["1.5", "1500m", "DecimalSI", "2", "1500"],
  [".5", "500m", "DecimalSI", "1", "500"],
  ["+.5", "500m", "DecimalSI", "1", "500"],
  ["00.5", "500m", "DecimalSI", "1", "500"],
  ["005", "5", "DecimalSI", "5", "5000"],
  ["100m", "100m", "DecimalSI", "1", "100"],
  ["1500m", "1500m", "DecimalSI", "2", "1500"],
  ["1000m", "1", "DecimalSI", "1", "1000"],
  ["0.1m", "100u", "DecimalSI", "1", "1"],
  ["0.5m", "500u", "DecimalSI", "1", "1"],
  ["1u", "1u", "DecimalSI", "1", "1"],
  ["1000u", "1m", "DecimalSI", "1", "1"],
  ["1n", "1n", "DecimalSI", "1", "1"],
  ["999n", "999n", "DecimalSI", "1", "1"],
  ["1000000n", "1m", "DecimalSI", "1", "1"],
  ["1k", "1k", "DecimalSI", "1000", "1000000"],
  ["1000", "1k", "DecimalSI", "1000", "1000000"],
  ["1500", "1500", "DecimalSI", "1500", "1500000"],
  ["1M", "1M", "DecimalSI", "1000000", "1000000000"],
  ["1G", "1G", "DecimalSI", "1000000000", "1000000000000"],
  ["1T", "1T", "DecimalSI", "1000000000000", "1000000000000000"],
  ["2P", "2P", "DecimalSI", "2000000000000000", "2000000000000000000"],
  ["1023", "1023", "DecimalSI", "1023", "1023000"],
  ["1024", "1024", "DecimalSI", "1024", "1024000"],
  ["1e3", "1e3", "DecimalExponent", "1000", "1000000"],
  ["1E3", "1e3", "DecimalExponent", "1000", "1000000"],
  ["1e+3", "1e3", "DecimalExponent", "1000", "1000000"],
  ["1E-3", "1e-3", "DecimalExponent", "1", "1"],
  ["12e6", "12e6", "DecimalExponent", "12000000", "12000000000"],
  ["1.5e3", "1500", "DecimalExponent", "1500", "1500000"],
  ["100e-3", "100e-3", "DecimalExponent", "1", "100"],
  ["1e1", "10", "DecimalExponent", "10", "10000"],
  ["10e3", "10e3", "DecimalExponent", "10000", "10000000"],
  ["-1e3", "-1e3", "DecimalExponent", "-1000", "-1000000"],
  ["0e3", "0", "DecimalExponent", "0", "0"],
  ["1Ki", "1Ki", "BinarySI", "1024", "1024000"],
  ["1.Ki", "1Ki", "BinarySI", "1024", "1024000"],
  ["1Mi", "1Mi", "BinarySI", "1048576", "1048576000"],
  ["1Gi", "1Gi", "BinarySI", "1073741824", "1073741824000"],
  ["1Ti", "1Ti", "BinarySI", "1099511627776", "1099511627776000"],
  ["2Pi", "2Pi", "BinarySI", "2251799813685248", "2251799813685248000"],
  ["0.5Ki", "512", "BinarySI", "512", "512000"],
  ["0.1Ki", "102400m", "BinarySI", "103", "102400"],
  ["1.0005Ki", "1024512m", "BinarySI", "1025", "1024512"],
  ["1.5Ki", "1536", "BinarySI", "1536", "1536000"],
  ["1023Ki", "1023Ki", "BinarySI", "1047552", "1047552000"],
  ["1024Ki", "1Mi", "BinarySI", "1048576", "1048576000"],
  ["1025Ki", "1025Ki", "BinarySI", "1049600", "1049600000"],
  ["1.5Gi", "1536Mi", "BinarySI", "1610612736", "1610612736000"],
  ["-1Ki", "-1Ki", "BinarySI", "-1024", "-1024000"],
  ["-1024Ki", "-1Mi", "BinarySI", "-1048576", "-1048576000"],
  ["-0.5Ki", "-512", "BinarySI", "-512", "-512000"],
  ["0Mi", "0", "BinarySI", "0", "0"],
  ["259387964949600m", "259387964949600m", "DecimalSI", "259387964950", "259387964949600"],
  ["329341008Ki", "329341008Ki", "BinarySI", "337245192192", "337245192192000"],
  ["1.0000000001", "1000000001n", "DecimalSI", "2", "1001"],
  ["0.0000000001", "1n", "DecimalSI", "1", "1"],
  ["-0", "0", "DecimalSI", "0", "0"],
  ["+", "0", "DecimalSI", "0", "0"],
  ["-", "0", "DecimalSI", "0", "0"],
  [".", "0", "DecimalSI", "0", "0"],
];

describe("a quantity", () => {
  test.each(GO)(
    "`%s` is written canonically as `%s`, with Go's format and values",
    (text, canonical, format, value, milli) => {
      const { amount, format: got } = parsed(text);
      expect(canonicalText(amount, got)).toBe(canonical);
      expect(got).toBe(format);
      expect(exactValue(amount).toString()).toBe(value);
      expect(exactMilliValue(amount).toString()).toBe(milli);
    },
  );
  test("keeps its posted text, and has a canonical one when computed", () => {
    expect(JSON.stringify({ cpu: parsed("1000m") })).toBe('{"cpu":"1000m"}');
    expect(JSON.stringify(unitsQuantity(23_123_516 * 1024, "BinarySI"))).toBe('"23123516Ki"');
    expect(unitsQuantity(1000, "BinarySI").text).toBe("1k");
  });
  test("rounds a negative fraction away from zero, where Go's Value overflows", () => {
    expect(exactValue(parsed("-1500m").amount)).toBe(-2n);
    expect(exactMilliValue(parsed("-0.5m").amount)).toBe(-1n);
  });
});

describe("parsing of unusual quantities", () => {
  const BAD = [
    "",
    "1.2.3",
    "1Kb",
    "ki",
    "1K",
    "1mi",
    "1 Ki",
    " 1",
    "1 ",
    "1\n",
    "1e",
    "1e+",
    "1e3.5",
    "--1",
    "+-1",
    "1-",
  ];
  const WORSE = [
    "0x10",
    "NaN",
    "Infinity",
    "1_000",
    "1e1e1",
    "1Zi",
    "1Y",
    "１",
    "1e3Ki",
    "1,5",
    "1m.",
    "null",
    "0".repeat(65),
  ];
  test.each([...BAD, ...WORSE])("`%s` is malformed, with an error of one line", (text) => {
    const result = parseQuantity(text);
    expect(result.ok).toBe(false);
    if (result.ok) return;
    expect(result.error.code).toBe("malformed");
    expect(result.error.message.length).toBeLessThan(250);
    if (!text.includes("\n")) expect(result.error.message).not.toContain("\n");
  });
  test.each(["1E", "1Ei", "9223372036854775.808", "-9223372036854776", "1e16", "1e999", "9Pi"])(
    "`%s` is out of range, as it exceeds int64 thousandths",
    (text) => {
      const result = parseQuantity(text);
      expect(result.ok ? "taken" : result.error.code).toBe("out_of_range");
    },
  );
  test("the largest and the smallest amounts are exact", () => {
    expect(exactMilliValue(parsed("9223372036854775.807").amount)).toBe(2n ** 63n - 1n);
    expect(exactMilliValue(parsed("-9223372036854775.807").amount)).toBe(-(2n ** 63n) + 1n);
    expect(exactValue(parsed("8Pi").amount)).toBe(2n ** 53n);
  });
  // Go rounds 1e-10 and 5e-12 up to 1n
  test.each([
    ["1e-10", "1e-9"],
    ["5e-12", "1e-9"],
    ["100e-11", "1e-9"],
    ["481017e-12", "482e-9"],
  ])("`%s`, finer than a billionth, is rounded up to `%s`", (text, canonical) => {
    const { amount, format } = parsed(text);
    expect(isNegative(amount)).toBe(false);
    expect(canonicalText(amount, format)).toBe(canonical);
  });
  // Go reads a suffix without digits as zero; the API server accepts `memory: Ki` as 0
  test.each(["Ki", "m", "-G", "e3"])("`%s` is zero, as in Go", (text) => {
    expect(parsed(text).amount).toBe(0);
  });
});
