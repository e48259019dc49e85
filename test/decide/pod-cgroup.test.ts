import { describe, expect, test } from "vitest";
import { container, sidecar } from "../kit/containers.ts";
import { bestEffort, burstable, guaranteed, podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { Mi, valuesAt } from "./ask.ts";

/** The shares, the quota and the memory limit of the pod's cgroup. */
function podValues(pod: Json, tier: "" | "/burstable" | "/besteffort", config: Json = {}): unknown[] {
  const v = valuesAt(configured(config, { pods: [pod] }), `/kubepods${tier}/podu`);
  return [v.cpuShares, v.cpuQuota, v.memory];
}
const BASE = container("c", { cpu: "100m", memory: "100Mi" }, { cpu: "200m", memory: "200Mi" });
const BARE = container("init");
const SIDECAR = sidecar("side", { cpu: "50m", memory: "50Mi" }, { cpu: "50m", memory: "50Mi" });
const OVERHEAD = { overhead: { cpu: "250m", memory: "120Mi" } };
const POD_LEVEL = { resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "2Gi" } } };
const unset = undefined;

describe("CPU shares, CPU quota and memory limit of a pod's cgroup", () => {
  test.each<[string, Json, unknown[]]>([
    ["one container", podOf([BASE]), [102, 20_000, 209_715_200]],
    ["with a bare init container", podOf([BASE], { initContainers: [BARE] }), [102, unset, unset]],
    [
      "with a limited sidecar, then a bare init container: it counts as limited",
      podOf([BASE], { initContainers: [SIDECAR, BARE] }),
      [153, 25_000, 262_144_000],
    ],
    [
      "with a bare init container, then a limited sidecar: it does not",
      podOf([BASE], { initContainers: [BARE, SIDECAR] }),
      [153, unset, unset],
    ],
    ["with overhead", podOf([BASE], OVERHEAD), [358, 45_000, 335_544_320]],
    ["with a cpu limit of 1m only", podOf([container("c", {}, { cpu: "1m" })]), [2, 1000, unset]],
    [
      "with pod-level resources and bare containers",
      podOf([container("c")], POD_LEVEL),
      [1024, 200_000, 2_147_483_648],
    ],
    [
      "with pod-level resources and overhead",
      podOf([container("c")], { ...POD_LEVEL, ...OVERHEAD }),
      [1280, 225_000, 2_273_312_768],
    ],
  ])("%s", (_name, pod, want) => expect(podValues(pod, "/burstable")).toEqual(want));
  test("of a BestEffort pod are 2 shares and no limits, with or without overhead", () => {
    expect(podValues(podOf([container("c")]), "/besteffort")).toEqual([2, unset, unset]);
    expect(podValues(podOf([container("c")], OVERHEAD), "/besteffort")).toEqual([2, unset, unset]);
  });
  test("of a Guaranteed pod with cpuCFSQuota off have quota -1", () => {
    const pod = podOf([container("c", undefined, { cpu: "1", memory: "1Gi" })]);
    expect(podValues(pod, "", { cpuCFSQuota: false })).toEqual([1024, -1, 1_073_741_824]);
    expect(podValues(pod, "")).toEqual([1024, 100_000, 1_073_741_824]);
  });
  test("of a Burstable pod without limits on all containers have no quota to switch off", () => {
    const half = podOf([container("a", undefined, { cpu: "1" }), container("b")]);
    expect(podValues(half, "/burstable", { cpuCFSQuota: false })).toEqual([1024, unset, unset]);
    expect(podValues(podOf([BASE]), "/burstable", { cpuCFSQuota: false })).toEqual([102, -1, 200 * Mi]);
  });
  // beta since 1.34 and not locked: without the gate the kubelet uses only the containers' resources
  test("ignore pod-level resources when their gate is off", () => {
    const off = { featureGates: { PodLevelResources: false } };
    expect(podValues(podOf([container("c")], POD_LEVEL), "/besteffort", off)).toEqual([2, unset, unset]);
  });
});

describe("requests of a pod", () => {
  const shares = (spec: Json, containers: Json[]): unknown => podValues(podOf(containers, spec), "/burstable")[0];
  test("are the larger of all containers and each init container with the sidecars before it", () => {
    const app = container("a", { cpu: "300m" });
    expect(shares({ initContainers: [container("i", { cpu: "1" })] }, [app])).toBe(1024);
    expect(shares({ initContainers: [sidecar("s", { cpu: "500m" }), container("i", { cpu: "1" })] }, [app])).toBe(1536);
    expect(shares({ initContainers: [container("i", { cpu: "1" }), sidecar("s", { cpu: "500m" })] }, [app])).toBe(1024);
    expect(shares({ initContainers: [sidecar("s", { cpu: "900m" })] }, [app])).toBe(1228);
  });
  test("take a limit without a request as the request", () => {
    expect(podValues(podOf([container("a", undefined, { cpu: "500m" })]), "/burstable")).toEqual([512, 50_000, unset]);
  });
  test("get overhead in a limit only when there is one", () => {
    expect(podValues(podOf([container("a", { cpu: "100m" })], OVERHEAD), "/burstable")).toEqual([358, unset, unset]);
  });
  test("with status Guaranteed have all values, 0 without a limit, to which overhead adds nothing", () => {
    const settled = { status: { qosClass: "Guaranteed" } };
    expect(podValues(podOf([container("a", { cpu: "1" })], {}, settled), "")).toEqual([1024, 0, 0]);
    const zero = podOf([container("a", { cpu: "1" }, { cpu: "0", memory: "0" })], OVERHEAD, settled);
    expect(podValues(zero, "")).toEqual([1280, 0, 0]);
  });
  test("round milli-bytes up to whole bytes", () => {
    const pod = podOf([container("a", undefined, { memory: "1048576500m" })]);
    expect(podValues(pod, "/burstable")[2]).toBe(1_048_577);
  });
});

describe("container limits beside pod-level limits", () => {
  test("are the container's own where it has them, else the pod's", () => {
    const spec = { resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "2Gi" } } };
    const pod = podOf(
      [
        container("own", undefined, { cpu: "500m", memory: "64Mi" }),
        container("half", { cpu: "100m" }, { memory: "32Mi" }),
        container("bare"),
      ],
      spec,
    );
    const of = (name: string): unknown[] => {
      const v = valuesAt(snapshot({ pods: [pod] }), `/kubepods/burstable/podu/${name}`);
      return [v.cpuShares, v.cpuQuota, v.memory];
    };
    expect(of("own")).toEqual([512, 50_000, 64 * Mi]);
    expect(of("half")).toEqual([102, 200_000, 32 * Mi]);
    // without a request at pod level, shares follow the pod's limit
    expect(of("bare")).toEqual([2048, 200_000, 2048 * Mi]);
  });
});

describe("the QoS tier of a pod's cgroup", () => {
  const tierOf = (pod: Json): string => {
    for (const tier of ["", "/burstable", "/besteffort"] as const) {
      try {
        podValues(pod, tier);
        return tier;
      } catch {
        // this cgroup does not exist
      }
    }
    return "nowhere";
  };
  const FULL = { cpu: "1", memory: "1Gi" };
  test.each<[string, Json, string]>([
    ["limits everywhere", podOf([container("a", undefined, FULL)]), ""],
    ["limits equal in other words", podOf([container("a", { cpu: "1000m", memory: "1024Mi" }, FULL)]), ""],
    [
      "sums alike, containers not",
      podOf([
        container("a", { cpu: "1", memory: "2Gi" }, { cpu: "2", memory: "2Gi" }),
        container("b", { cpu: "2", memory: "2Gi" }, { cpu: "1", memory: "2Gi" }),
      ]),
      "",
    ],
    [
      "an init container without limits",
      podOf([container("a", undefined, FULL)], { initContainers: [container("i")] }),
      "/burstable",
    ],
    ["no memory limit", podOf([container("a", undefined, { cpu: "1" })]), "/burstable"],
    ["only a request", podOf([container("a", { cpu: "1m" })]), "/burstable"],
    [
      "only an init container requests",
      podOf([container("a")], { initContainers: [container("i", { cpu: "1m" })] }),
      "/burstable",
    ],
    ["zero quantities", podOf([container("a", { cpu: "0", memory: "0" }, { cpu: "0", memory: "0" })]), "/besteffort"],
    [
      "other resources only",
      podOf([container("a", { "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi" }, { "hugepages-2Mi": "2Mi" })]),
      "/besteffort",
    ],
    [
      "pod-level resources decide alone",
      podOf([container("a", { cpu: "100m" })], { resources: { requests: FULL, limits: FULL } }),
      "",
    ],
    [
      "pod-level requests only",
      podOf([container("a", undefined, FULL)], { resources: { requests: FULL } }),
      "/burstable",
    ],
    [
      "status.qosClass wins",
      podOf([container("a", undefined, FULL)], {}, { status: { qosClass: "BestEffort" } }),
      "/besteffort",
    ],
    [
      "an empty status.qosClass says nothing",
      podOf([container("a", undefined, FULL)], {}, { status: { qosClass: "" } }),
      "",
    ],
  ])("%s: %#", (_name, pod, tier) => expect(tierOf(pod)).toBe(tier));
});

describe("CPU shares", () => {
  const pods = [guaranteed("g", "4", "1Gi"), burstable("b", "11095m", "1Gi"), bestEffort("e")];
  const node = snapshot({ pods }, { cpu: "32", memory: "256Gi" });
  test.each([
    ["/kubepods/podg", 4096],
    ["/kubepods/burstable", 11_361],
    ["/kubepods/besteffort", 2],
    ["/kubepods", 32_768],
  ])("of %s are %i", (path, shares) => expect(valuesAt(node, path).cpuShares).toBe(shares));
  test.each([
    ["200m", 204],
    ["500m", 512],
    ["100m", 102],
    ["2", 2048],
    ["1", 1024],
  ])("for a request of %s are %i", (cpu, shares) => {
    expect(podValues({ ...burstable("u", cpu, "1Mi") }, "/burstable")[0]).toBe(shares);
  });
  test("of kubepods with 30 allocatable CPUs are 30720", () => {
    const reserved = configured({ systemReserved: { cpu: "2", memory: "4Gi" } });
    expect(valuesAt({ ...reserved, node: (node as Json)["node"] }, "/kubepods").cpuShares).toBe(30_720);
  });
  test("of the burstable tier without pods are 2", () => {
    expect(valuesAt(snapshot({ pods: [guaranteed("g", "1", "1Gi")] }), "/kubepods/burstable").cpuShares).toBe(2);
  });
});
