import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  curveWeight,
  linearWeight,
  milliCpuToQuota,
  milliCpuToShares,
  quotaToMilliCpu,
  sharesToMilliCpu,
  weightToMilliCpu,
} from "../../api/decide/resources/cpu-convert.ts";

const MAX_SHARES = 262_144;
const everyShare = Array.from({ length: MAX_SHARES + 1 }, (_, s) => s);
/** The first few arguments for which two functions differ. */
const differences = (domain: readonly number[], want: (n: number) => number, got: (n: number) => number): string[] =>
  domain
    .filter((n) => want(n) !== got(n))
    .slice(0, 5)
    .map((n) => `${n}: want ${want(n)}, got ${got(n)}`);
const falls = (domain: readonly number[], f: (n: number) => number): readonly number[] =>
  domain.filter((n, i) => i > 0 && f(n) < f(domain[i - 1] as number)).slice(0, 5);

describe("cpu.weight over every cpu.shares", { timeout: 120_000 }, () => {
  test("the linear rule agrees with repeated addition", () => {
    // (shares - 2) * 9999 / 262142, added one share at a time, with the remainder carried over
    const slow: number[] = [];
    let weight = 1;
    let rest = 0;
    for (let shares = 2; shares < MAX_SHARES; shares++) {
      slow[shares] = weight;
      rest += 9999;
      if (rest >= 262_142) {
        rest -= 262_142;
        weight++;
      }
    }
    slow[MAX_SHARES] = 10_000;
    // the kubelet never sets fewer than 2 shares
    expect(differences(everyShare.slice(2), (s) => slow[s] as number, linearWeight)).toEqual([]);
  });
  test("the curve agrees with the smallest weight whose logarithm reaches the exponent", () => {
    const slow: number[] = [0, 1, 1];
    let weight = 1;
    for (let shares = 3; shares < MAX_SHARES; shares++) {
      const l = Math.log(shares) / Math.LN2;
      const exponent = (l * l + 125 * l - 126) / 612; // 7/34 = 126/612
      while (Math.log10(weight) < exponent - 1e-12) weight++;
      slow[shares] = weight;
    }
    slow[MAX_SHARES] = 10_000;
    expect(differences(everyShare, (s) => slow[s] as number, curveWeight)).toEqual([]);
  });
  test("the curve equals that of opencontainers/cgroups 0.0.6 everywhere", () => {
    // the hash of the answers of Go's ConvertCPUSharesToCgroupV2Value, one value per line
    const lines = everyShare.map((s) => `${curveWeight(s)}\n`).join("");
    expect(createHash("sha256").update(lines).digest("hex")).toBe(
      "720b6c5405e2b799abdcdffecdf5392aafedce50de38076608c8cb0056be5356",
    );
  });
  test.each([
    ["line", linearWeight],
    ["curve", curveWeight],
  ] as const)("the %s is monotonic and stays within 1..10000", (_name, weightOf) => {
    const domain = everyShare.slice(2);
    expect(falls(domain, weightOf)).toEqual([]);
    expect(weightOf(2)).toBe(1);
    expect(weightOf(MAX_SHARES)).toBe(10_000);
    expect(weightOf(MAX_SHARES + 1)).toBe(10_000);
  });
  test("a linear weight converted to milliCPU and back is the same within one step", () => {
    const weights = Array.from({ length: 10_000 }, (_, i) => i + 1);
    // Go's integer divisions lose up to one step, which is 26 shares
    const off = weights.filter((w) => Math.abs(linearWeight(milliCpuToShares(weightToMilliCpu(w))) - w) > 1);
    expect(off).toEqual([]);
  });
});

const everyMilli = Array.from({ length: 20_001 }, (_, m) => m);
describe("every milliCPU from 0 to 20000", { timeout: 120_000 }, () => {
  test("shares agree with counting up from the definition", () => {
    let shares = 0;
    const slow = everyMilli.map((milli) => {
      while ((shares + 1) * 1000 <= milli * 1024) shares++;
      return Math.max(2, shares);
    });
    expect(differences(everyMilli, (m) => slow[m] as number, milliCpuToShares)).toEqual([]);
    expect(slow.filter((s) => s === 2).length).toBeGreaterThan(2);
  });
  test.each([1000, 1234, 5000, 10_000, 33_333, 100_000, 1_000_000])(
    "quotas in a period of %i us agree with repeated addition",
    (period) => {
      // one thousandth of a CPU at a time: whole microseconds, with the remaining thousandths carried over
      let whole = 0;
      let rest = 0;
      const slow = everyMilli.map((milli) => {
        if (milli === 0) return 0;
        whole += Math.floor(period / 1000);
        rest += period % 1000;
        if (rest >= 1000) {
          rest -= 1000;
          whole++;
        }
        return whole < 1000 ? 1000 : whole;
      });
      expect(
        differences(
          everyMilli,
          (m) => slow[m] as number,
          (m) => milliCpuToQuota(m, period),
        ),
      ).toEqual([]);
      expect(falls(everyMilli, (m) => milliCpuToQuota(m, period))).toEqual([]);
    },
  );
  test("a quota of a 100 ms period converts back to the limit, from 10m up", () => {
    const off = everyMilli.filter((m) => m >= 10 && quotaToMilliCpu(milliCpuToQuota(m, 100_000), 100_000) !== m);
    expect(off).toEqual([]);
  });
  test("shares convert back to the request, less one share's worth at most", () => {
    const off = everyMilli.filter(
      (m) => m >= 2 && m <= 256_000 && Math.abs(sharesToMilliCpu(milliCpuToShares(m)) - m) > 1,
    );
    expect(off).toEqual([]);
  });
});

describe("conversions recorded from the kubelet's functions", () => {
  test.each([
    [0, 2],
    [1, 2],
    [2, 2],
    [3, 3],
    [10, 10],
    [11, 11],
    [999, 1022],
    [1000, 1024],
    [255_999, 262_142],
    [256_000, 262_144],
    [9_000_000, 262_144],
  ])("%im are %i shares", (milli, shares) => expect(milliCpuToShares(milli)).toBe(shares));
  test.each([
    [0, 100_000, 0],
    [1, 100_000, 1000],
    [10, 100_000, 1000],
    [11, 100_000, 1100],
    [999, 100_000, 99_900],
    [11, 5000, 1000],
    [999, 5000, 4995],
  ])("%im in %i us are a quota of %i", (milli, period, quota) => expect(milliCpuToQuota(milli, period)).toBe(quota));
  const SHARES = [2, 3, 10, 51, 102, 204, 256, 512, 1024, 1536, 2048, 4096, 8192, 16384, 32768, 65536, 131072];
  const LINE = [1, 1, 1, 2, 4, 8, 10, 20, 39, 59, 79, 157, 313, 625, 1250, 2500, 5000];
  const CURVE = [1, 2, 4, 11, 17, 29, 35, 59, 100, 138, 174, 303, 532, 942, 1681, 3023, 5478];
  test("weights are the recorded ones by both rules", () => {
    expect(SHARES.map(linearWeight)).toEqual(LINE);
    expect(SHARES.map(curveWeight)).toEqual(CURVE);
  });
  test("inverse conversions are not symmetric: weight 100 is 2537m", () => {
    expect(sharesToMilliCpu(2)).toBe(2);
    expect(sharesToMilliCpu(2597)).toBe(2537);
    expect(weightToMilliCpu(100)).toBe(2537);
    expect(quotaToMilliCpu(-1, 100_000)).toBe(0);
    expect(quotaToMilliCpu(0, 100_000)).toBe(0);
    expect(quotaToMilliCpu(42_000, 100_000)).toBe(420);
  });
});
