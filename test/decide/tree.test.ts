import { describe, expect, test } from "vitest";
import { filesOf } from "../../api/decide/cgroups/files.ts";
import { containerLeaf, parseCgroupfs, parseSystemd, toCgroupfs, toSystemd } from "../../api/decide/cgroups/paths.ts";
import type { CgroupValues } from "../../api/model/cgroups.ts";
import { container, running } from "../kit/containers.ts";
import { bestEffort, burstable, guaranteed, podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { draws } from "../properties/draws.ts";
import { allocatableOf, filesAt, pathsOf, planAt } from "./ask.ts";

const UID = "8ee02b3a-a80f-487d";
const parts = (uid: string): Json =>
  podOf(
    [container("app", { cpu: "100m" }, { cpu: "200m", memory: "64Mi" })],
    {},
    {
      metadata: { name: "web", namespace: "shop", uid },
      status: { containerStatuses: [running("app", "3cab58")] },
    },
  );
const pods = [parts(UID), guaranteed("g-1", "1", "1Gi"), bestEffort("e-1")];

describe("the cgroup tree of a node", () => {
  test("with cgroupfs has nested directories, a container's named by its id, or by its name before it runs", () => {
    expect(pathsOf(snapshot({ pods }))).toEqual([
      "/kubepods",
      "/kubepods/burstable",
      "/kubepods/besteffort",
      `/kubepods/burstable/pod${UID}`,
      `/kubepods/burstable/pod${UID}/3cab58`,
      "/kubepods/podg-1",
      "/kubepods/podg-1/c",
      "/kubepods/besteffort/pode-1",
      "/kubepods/besteffort/pode-1/c",
    ]);
  });
  test("with systemd has nested slices with dashes escaped, and scopes for containers", () => {
    const burst = "/kubepods.slice/kubepods-burstable.slice";
    expect(pathsOf(snapshot({ cgroup: { version: 2, driver: "systemd" }, pods }))).toEqual([
      "/kubepods.slice",
      burst,
      "/kubepods.slice/kubepods-besteffort.slice",
      `${burst}/kubepods-burstable-pod8ee02b3a_a80f_487d.slice`,
      `${burst}/kubepods-burstable-pod8ee02b3a_a80f_487d.slice/cri-containerd-3cab58.scope`,
      "/kubepods.slice/kubepods-podg_1.slice",
      "/kubepods.slice/kubepods-podg_1.slice/cri-containerd-c.scope",
      "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pode_1.slice",
      "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pode_1.slice/cri-containerd-c.scope",
    ]);
  });
  test("has the driver of the snapshot, else of the configuration, else cgroupfs", () => {
    const systemd = { cgroupDriver: "systemd" };
    expect(pathsOf(configured(systemd, { cgroup: { version: 2 } }))[0]).toBe("/kubepods.slice");
    expect(pathsOf(configured(systemd))[0]).toBe("/kubepods");
    expect(pathsOf(snapshot({ cgroup: { version: 1 } }))[0]).toBe("/kubepods");
  });
  test("names the pod and container of each cgroup", () => {
    const pod = { namespace: "shop", name: "web", uid: UID };
    expect(planAt(snapshot({ pods }), `/kubepods/burstable/pod${UID}/3cab58`)).toMatchObject({
      level: "container",
      pod,
      container: "app",
      containerId: "3cab58",
    });
    expect(planAt(snapshot({ pods }), `/kubepods/burstable/pod${UID}`)).toMatchObject({
      level: "pod",
      pod,
      container: null,
      containerId: null,
    });
    expect(planAt(snapshot({ pods }), "/kubepods/podg-1/c")).toMatchObject({ containerId: null, container: "c" });
    expect(planAt(snapshot({ pods }), "/kubepods/burstable")).toMatchObject({ level: "qos", pod: null });
    expect(planAt(snapshot({ pods }), "/kubepods")).toMatchObject({ level: "node", pod: null });
  });
});

describe("the files of cgroup v2 and v1", () => {
  const POD = `/kubepods/burstable/pod${UID}`;
  const v1 = (path: string): Json => filesAt(snapshot({ cgroup: { version: 1 }, pods }), path);
  const v2 = (path: string, cgroup: Json = {}): Json =>
    filesAt(snapshot({ cgroup: { version: 2, ...cgroup }, pods }), path);
  test("of a pod have the kubelet's linear cpu.weight, and quota and period in one file on v2", () => {
    expect(v2(POD)).toEqual({ "cpu.weight": "4", "cpu.max": "20000 100000", "memory.max": "67108864" });
    expect(v1(POD)).toEqual({
      "cpu.shares": "102",
      "cpu.cfs_period_us": "100000",
      "cpu.cfs_quota_us": "20000",
      "memory.limit_in_bytes": "67108864",
    });
  });
  test("of a container have the runtime's cpu.weight curve, or an old runtime's line, and no swap", () => {
    expect(v2(`${POD}/3cab58`)).toEqual({
      "cpu.weight": "17",
      "cpu.max": "20000 100000",
      "memory.swap.max": "0",
      "memory.max": "67108864",
    });
    expect(v2(`${POD}/3cab58`, { runtimeCpuWeight: "linear" })["cpu.weight"]).toBe("4");
    expect(v1(`${POD}/3cab58`)).toEqual({
      "cpu.shares": "102",
      "cpu.cfs_period_us": "100000",
      "cpu.cfs_quota_us": "20000",
      "memory.limit_in_bytes": "67108864",
      "memory.memsw.limit_in_bytes": "67108864",
    });
  });
  test("of a container without limits have no quota and no memory limit, and still no swap on v2", () => {
    expect(v2("/kubepods/besteffort/pode-1/c")).toEqual({
      "cpu.weight": "1",
      "cpu.max": "max 100000",
      "memory.swap.max": "0",
    });
    expect(v1("/kubepods/besteffort/pode-1/c")).toEqual({ "cpu.shares": "2", "cpu.cfs_period_us": "100000" });
  });
  test("of QoS tiers and kubepods have weights, and a memory limit on kubepods only", () => {
    expect(v2("/kubepods/besteffort")).toEqual({ "cpu.weight": "1" });
    expect(v2("/kubepods/burstable")).toEqual({ "cpu.weight": "4" });
    expect(v2("/kubepods")).toEqual({ "cpu.weight": "157", "memory.max": "8589934592" });
    expect(v1("/kubepods")).toEqual({ "cpu.shares": "4096", "memory.limit_in_bytes": "8589934592" });
  });
  const text = (values: unknown, version: 1 | 2): string =>
    filesOf(values as CgroupValues, version)
      .map((f) => `${f.path}=${f.value}`)
      .join(" ");
  test.each<[Json, string, string]>([
    [{}, "", ""],
    [{ cpuQuota: -1 }, "cpu.cfs_quota_us=-1", "cpu.max=max 100000"],
    [{ cpuQuota: 0 }, "", ""],
    [{ cpuQuota: 5000, cpuPeriod: 10_000 }, "cpu.cfs_period_us=10000 cpu.cfs_quota_us=5000", "cpu.max=5000 10000"],
    [{ memory: 0 }, "", ""],
    [{ memory: -1 }, "memory.limit_in_bytes=-1", "memory.max=max"],
    [{ memorySwap: -1 }, "memory.memsw.limit_in_bytes=-1", "memory.swap.max=max"],
    [{ pidsLimit: 0 }, "pids.max=1", "pids.max=1"],
    [{ pidsLimit: -1 }, "pids.max=max", "pids.max=max"],
    [{ pidsLimit: 4096 }, "pids.max=4096", "pids.max=4096"],
    [
      { memorySwap: 7, memory: 5 },
      "memory.limit_in_bytes=5 memory.memsw.limit_in_bytes=7",
      "memory.swap.max=7 memory.max=5",
    ],
    [
      { memoryMin: 0, memoryLow: 1, memoryHigh: 2, memoryOomGroup: true },
      "",
      "memory.min=0 memory.low=1 memory.high=2 memory.oom.group=1",
    ],
    [{ cpuWeight: 0, cpuShares: 2 }, "cpu.shares=2", ""],
  ])("for the values %j are `%s` on v1 and `%s` on v2", (values, one, two) => {
    expect([text(values, 1), text(values, 2)]).toEqual([one, two]);
  });
  // qosReserved can lead to a negative limit: the kubelet writes it and the kernel refuses it; "max" would remove every
  // limit
  test("never have `max` for a negative memory limit", () => {
    const reserved = { featureGates: { QOSReserved: true }, qosReserved: { memory: "100%" } };
    const input = configured(reserved, { pods: [guaranteed("g", "1", "16Gi")] });
    expect(filesAt(input, "/kubepods/burstable")["memory.max"]).not.toBe("max");
  });
});

describe("cgroup names", () => {
  test("survive conversion to and from the paths of both drivers", () => {
    const d = draws(5);
    for (let i = 0; i < 2000; i++) {
      const part = (): string =>
        Array.from({ length: 1 + d.below(8) }, () => d.pick([..."abz019.-"]))
          .join("")
          .replace(/^[.-]+|[.-]+$/g, "x");
      const name = Array.from({ length: 1 + d.below(4) }, part);
      expect(parseCgroupfs(toCgroupfs(name)), name.join("/")).toEqual(name);
      expect(parseSystemd(toSystemd(name)), name.join("/")).toEqual(name);
      expect(toSystemd(name).split("/").length).toBe(name.length + 1);
    }
  });
  test("of the root are converted to the root path", () => {
    expect([toCgroupfs([]), toSystemd([]), toSystemd([""])]).toEqual(["/", "/", "/"]);
    expect([parseCgroupfs("/"), parseCgroupfs(""), parseCgroupfs("/a/b")]).toEqual([[], [], ["a", "b"]]);
    expect(containerLeaf("systemd", "x")).toBe("cri-containerd-x.scope");
  });
});

describe("the allocatable and cgroups decisions", () => {
  test("have the same values for the kubepods cgroup", () => {
    const input = configured({ kubeReserved: { cpu: "1", memory: "1Gi" } }, { pods: [burstable("b", "1", "1Gi")] });
    expect(planAt(input, "/kubepods").values).toMatchObject({ ...allocatableOf(input).decision.kubepods.values });
  });
});
