import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { podOf } from "../kit/pods.ts";
import { configured } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, valuesAt } from "./ask.ts";

const pod = podOf([container("c", { cpu: "500m" }, { cpu: "1500m", memory: "1Gi" })]);
const POD = "/kubepods/burstable/podu";
const V1 = { cgroup: { version: 1 } };

describe("cpuCFSQuotaPeriod", () => {
  test.each([
    ["100ms", 100_000, 150_000],
    ["5ms", 5000, 7500],
    ["10ms", 10_000, 15_000],
    ["1s", 1_000_000, 1_500_000],
    ["1ms", 1000, 1500],
    ["33333us", 33_333, 49_999],
  ])("%s: period %i, quota %i on pod and container", (cpuCFSQuotaPeriod, period, quota) => {
    const input = configured({ cpuCFSQuotaPeriod }, { pods: [pod] });
    for (const path of [POD, `${POD}/c`]) {
      expect(valuesAt(input, path)).toMatchObject({ cpuPeriod: period, cpuQuota: quota });
      expect(filesAt(input, path)["cpu.max"]).toBe(`${quota} ${period}`);
      const v1 = filesAt({ ...input, ...V1 }, path);
      expect([v1["cpu.cfs_period_us"], v1["cpu.cfs_quota_us"]]).toEqual([String(period), String(quota)]);
    }
  });
  test("the CPU quota is at least 1 ms, however small the limit and the period are", () => {
    const tiny = podOf([container("c", undefined, { cpu: "1m" })]);
    expect(filesAt(configured({ cpuCFSQuotaPeriod: "1ms" }, { pods: [tiny] }), POD)["cpu.max"]).toBe("1000 1000");
  });
  // ValidateKubeletConfiguration: between 1ms and 1sec
  test.each(["0s", "-100ms", "999us", "1001ms", "2h", "2562047h"])(
    "cpuCFSQuotaPeriod %s is refused",
    (cpuCFSQuotaPeriod) => {
      const input = configured({ cpuCFSQuotaPeriod }, { pods: [pod] });
      expect(() => cgroupsOf(input)).toThrow(/cpuCFSQuotaPeriod/);
    },
  );
});

describe("cpuCFSQuota: false", () => {
  test("sets -1 on the pod and nothing on the container, and leaves the CPU shares", () => {
    const input = configured({ cpuCFSQuota: false }, { pods: [pod] });
    expect(valuesAt(input, POD)).toMatchObject({ cpuShares: 512, cpuQuota: -1, cpuPeriod: 100_000 });
    expect(filesAt(input, POD)["cpu.max"]).toBe("max 100000");
    expect(filesAt({ ...input, ...V1 }, POD)["cpu.cfs_quota_us"]).toBe("-1");
    expect(valuesAt(input, `${POD}/c`)).not.toHaveProperty("cpuQuota");
    expect(valuesAt(input, `${POD}/c`)).not.toHaveProperty("cpuPeriod");
    expect(filesAt(input, `${POD}/c`)).not.toHaveProperty("cpu.max");
  });
});
