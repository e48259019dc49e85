import { describe, expect, test } from "vitest";
import { UsageHistory, type UsageRate } from "../../../actuator/stats/summary.ts";
import type { CgroupUsage } from "../../../actuator/stats/usage.ts";

const POD = "/kubepods/pod1";
const usage = (cpuNanos: number | null, periods = 0, throttledPeriods = 0): CgroupUsage => ({
  cpuNanos,
  throttling: { periods, throttledPeriods, throttledNanos: 0 },
  memory: null,
  pids: null,
  processes: null,
  pressure: null,
});
const UNKNOWN: UsageRate = { cpuNanoCores: null, throttledPermille: null };

/** The rates from measurements of one pod, each `[ms, usage]`. */
function ratesOf(...looks: readonly (readonly [number, CgroupUsage | null])[]): readonly (UsageRate | undefined)[] {
  const history = new UsageHistory();
  return looks.map(([atMs, one]) => history.rates(new Map(one === null ? [] : [[POD, one]]), atMs).get(POD));
}

describe("the rates of a pod's usage", () => {
  test("are unknown at the first look", () => {
    expect(ratesOf([5000, usage(1e9, 10, 10)])).toEqual([UNKNOWN]);
  });
  test("are the counters' increase divided by the time that passed", () => {
    const rates = ratesOf([0, usage(1e9, 100, 50)], [10_000, usage(6e9, 200, 75)], [12_000, usage(9e9, 220, 95)]);
    expect(rates.slice(1)).toEqual([
      { cpuNanoCores: 500_000_000, throttledPermille: 250 },
      { cpuNanoCores: 1_500_000_000, throttledPermille: 1000 },
    ]);
  });
  test("show no throttling when no period passed", () => {
    expect(ratesOf([0, usage(0, 7, 7)], [1000, usage(0, 7, 7)])[1]).toEqual({ cpuNanoCores: 0, throttledPermille: 0 });
  });
  test("never exceed all periods, even if the kernel counts the throttling first", () => {
    expect(ratesOf([0, usage(0, 7, 6)], [1000, usage(0, 8, 8)])[1]?.throttledPermille).toBe(1000);
  });
  test("are unknown after counters fell, since the cgroup was made again", () => {
    const rates = ratesOf([0, usage(5e9, 50, 5)], [1000, usage(1e9, 10, 0)], [2000, usage(2e9, 20, 5)]);
    expect(rates.slice(1)).toEqual([UNKNOWN, { cpuNanoCores: 1e9, throttledPermille: 500 }]);
  });
  test("are unknown when either look could not read the counter", () => {
    const rates = ratesOf([0, usage(1e9)], [1000, usage(null)], [2000, usage(3e9)], [3000, usage(4e9)]);
    expect(rates.map((rate) => rate?.cpuNanoCores)).toEqual([null, null, null, 1e9]);
  });
  test("are repeated by a look right after another, and the next one counts from the first of both", () => {
    const rates = ratesOf([0, usage(0)], [1000, usage(1e9)], [1050, usage(4e9)], [2000, usage(4e9)]);
    expect(rates.map((rate) => rate?.cpuNanoCores)).toEqual([null, 1e9, 1e9, 3e9]);
  });
  test("begin again after a look that left the pod out", () => {
    const rates = ratesOf([0, usage(0)], [1000, null], [2000, usage(4e9)]);
    expect(rates).toEqual([UNKNOWN, undefined, UNKNOWN]);
  });
});
