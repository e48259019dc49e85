import { describe, expect, test } from "vitest";
import { parseThreshold, thresholdQuantity } from "../../api/decide/eviction/threshold.ts";
import { fromUnits, value } from "../../api/model/amount.ts";
import { draws } from "./draws.ts";

const GiB = 2 ** 30;
/** The threshold in bytes; `null` if the kubelet ignores it, or the message if the kubelet refuses it. */
function bytesOf(text: string, capacity: number): number | null | string {
  const parsed = parseThreshold("nodefs.available", text);
  if (!parsed.ok) return parsed.error;
  return parsed.value === null ? null : value(thresholdQuantity(parsed.value, fromUnits(capacity)).amount);
}
/** Converts to float32 through a 4-byte buffer instead of Math.fround. */
const cell = new DataView(new ArrayBuffer(4));
const float32 = (n: number): number => {
  cell.setFloat32(0, n);
  return cell.getFloat32(0);
};
const slow = (percent: number, capacity: number): number => Math.floor(capacity * float32(float32(percent) / 100));

describe("percentages of eviction thresholds", { timeout: 120_000 }, () => {
  test.each([
    ["10%", 100, 10_737_418_400],
    ["15%", 100, 16_106_128_000],
    ["5%", 100, 5_368_709_200],
    ["10%", 500, 53_687_092_000],
    ["15%", 500, 80_530_640_000],
    ["5%", 500, 26_843_546_000],
    ["12.5%", 100, 13_421_772_800],
  ])("%s of %i GiB is what the kubelet reserved", (text, gib, bytes) => expect(bytesOf(text, gib * GiB)).toBe(bytes));
  test.each([
    ["0.1%", 100 * GiB, 107_374_187],
    ["33.3%", 100 * GiB, 35_755_603_200],
    ["99.9%", 100 * GiB, 107_266_809_600],
    ["1%", 100 * GiB, 1_073_741_800],
    ["7%", 100 * GiB, 7_516_192_800],
    ["0.001%", 24_776_900_608, 247_769],
    ["66.67%", Number.MAX_SAFE_INTEGER, 6_005_099_792_957_439],
    ["3%", Number.MAX_SAFE_INTEGER, 270_215_971_602_431],
    ["15%", 16_672, 2500],
  ])("%s of %i bytes is what Go's float32 gives", (text, capacity, bytes) =>
    expect(bytesOf(text, capacity)).toBe(bytes),
  );
  test("agree with float32 arithmetic for whole percents, and for thousandths up to ten", () => {
    const d = draws(20_261);
    const capacities = [0, 1, 99, 100, 4096, 100 * GiB, 500 * GiB, 24_776_900_608, Number.MAX_SAFE_INTEGER];
    for (let i = 0; i < 40; i++) capacities.push(d.spread(Number.MAX_SAFE_INTEGER));
    const percents = Array.from({ length: 101 }, (_, p) => p);
    for (let p = 1; p <= 10_000; p++) percents.push(p / 1000);
    const wrong: string[] = [];
    let inexact = 0;
    for (const capacity of capacities) {
      for (const percent of percents) {
        const want = percent === 0 || percent === 100 ? null : slow(percent, capacity);
        const got = bytesOf(`${percent}%`, capacity);
        if (got !== want) wrong.push(`${percent}% of ${capacity}: want ${want}, got ${got}`);
        if (want !== Math.floor((capacity * percent) / 100)) inexact++;
      }
    }
    expect(wrong.slice(0, 5)).toEqual([]);
    expect(inexact, "float32 shows somewhere").toBeGreaterThan(100_000);
  });
  test("reserve no less for a higher percentage", () => {
    let before = 0;
    for (let p = 1; p < 100_000; p += 7) {
      const now = bytesOf(`${p / 1000}%`, 100 * GiB) as number;
      expect(now >= before, `${p / 1000}%`).toBe(true);
      before = now;
    }
  });
  test('"0%" and "100%" are ignored, but not "0.0%" and "100.0%"', () => {
    expect(bytesOf("0%", GiB)).toBeNull();
    expect(bytesOf("100%", GiB)).toBeNull();
    expect(bytesOf("0.0%", GiB)).toBe(0);
    expect(bytesOf("100.0%", GiB)).toBe(GiB);
  });
  test.each(["0", "-1%", "101%", "-100Mi", "", "%", "ten%", "100Mi%"])("`%s` is refused", (text) => {
    expect(bytesOf(text, GiB)).toEqual(expect.any(String));
  });
  test("amounts in bytes are used as they are, whatever the capacity", () => {
    expect(bytesOf("100Mi", 0)).toBe(104_857_600);
    expect(bytesOf("1.5Gi", GiB)).toBe(1_610_612_736);
  });
  // Go's strconv.ParseFloat accepts neither blanks nor these prefixes; JavaScript's Number does
  test.each(["5 %", " 5%", "0x5%", "0b1%"])("`%s`, which JavaScript would parse, is refused", (text) => {
    expect(bytesOf(text, GiB)).toEqual(expect.any(String));
  });
});
