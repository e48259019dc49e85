import { describe, expect, test } from "vitest";
import { parseDuration } from "../../api/base/duration.ts";

const nanos = (text: string): number | string => {
  const parsed = parseDuration(text);
  return parsed.ok ? parsed.value.nanos : parsed.error;
};

describe("a duration", () => {
  test.each([
    ["0", 0],
    ["+0", 0],
    ["1ns", 1],
    ["1us", 1000],
    ["1µs", 1000],
    ["1μs", 1000],
    ["100ms", 100e6],
    ["0.1ms", 100e3],
    [".5s", 500e6],
    ["5.s", 5e9],
    ["10s", 10e9],
    ["5m0s", 300e9],
    ["1h15m30.918s", 4_530_918_000_000],
    ["-1.5h", -5_400_000_000_000],
    ["2m2s", 122e9],
    ["1s1s", 2e9],
    ["0.9ns", 0],
  ])("`%s` is %i ns", (text, want) => expect(nanos(text)).toBe(want));
  test.each(["", "s", ".", ".s", "1", "1e3s", " 1s", "1s ", "1 s", "1S", "1d", "--1s", "1s-1s", "0x1s", "inf", "1_0s"])(
    "`%s` is refused",
    (text) => expect(nanos(text)).toMatch(/is not a duration/),
  );
  test("above int64 nanoseconds is out of range", () => {
    expect(nanos("2562047h")).toBe(9_223_369_200_000_000_000);
    expect(nanos("2562048h")).toMatch(/out of range/);
    expect(nanos("9999999999999999999999h")).toMatch(/out of range/);
  });
  test("keeps its text, and its microseconds are rounded towards zero", () => {
    const parsed = parseDuration("1.0009ms");
    if (!parsed.ok) throw new Error(parsed.error);
    expect(JSON.stringify(parsed.value)).toBe('"1.0009ms"');
    expect(parsed.value.micros).toBe(1000);
    expect(parsed.value.millis).toBeCloseTo(1.0009);
  });
  test("is not echoed in the error when it is a long text", () => {
    expect(String(nanos("x".repeat(5000))).length).toBeLessThan(200);
  });
  // Go's time.ParseDuration uses whole numbers: a float product would give 1000999, and 1000 us
  test.each([
    ["1.001ms", 1_001_000],
    ["0.001001s", 1_001_000],
    ["1.003ms", 1_003_000],
    ["4.3256h", 15_572_160_000_000],
    ["8.8692h", 31_929_120_000_000],
  ])("`%s` is exactly %i ns, as in Go", (text, want) => expect(nanos(text)).toBe(want));
  test("of every microsecond from 1 ms to 100 ms is exact", () => {
    const wrong = Array.from({ length: 99_001 }, (_, i) => i + 1000).filter(
      (us) => nanos(`${us / 1000}ms`) !== us * 1000,
    );
    expect(wrong.length).toBe(0);
  });
});
