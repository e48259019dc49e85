import { describe, expect, test } from "vitest";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { bestEffort } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, Gi, outcome, pathsOf, reasonsOf, refusalOf, valuesAt } from "./ask.ts";

describe("cgroupRoot", () => {
  test.each([
    ["", "/kubepods"],
    ["/", "/kubepods"],
    ["/lab", "/lab/kubepods"],
    ["lab", "/lab/kubepods"],
    ["/lab/node-1", "/lab/node-1/kubepods"],
  ])("`%s` puts everything below %s", (cgroupRoot, kubepods) => {
    const paths = pathsOf(configured({ cgroupRoot }, { pods: [bestEffort("e")] }));
    expect(paths).toEqual(
      ["", "/burstable", "/besteffort", "/besteffort/pode", "/besteffort/pode/c"].map((p) => kubepods + p),
    );
  });
  test("under systemd it becomes a part of every slice's name", () => {
    const paths = pathsOf(
      configured({ cgroupRoot: "/lab" }, { cgroup: { version: 2, driver: "systemd" }, pods: [bestEffort("e-1")] }),
    );
    expect(paths).toEqual([
      "/lab.slice/lab-kubepods.slice",
      "/lab.slice/lab-kubepods.slice/lab-kubepods-burstable.slice",
      "/lab.slice/lab-kubepods.slice/lab-kubepods-besteffort.slice",
      "/lab.slice/lab-kubepods.slice/lab-kubepods-besteffort.slice/lab-kubepods-besteffort-pode_1.slice",
      "/lab.slice/lab-kubepods.slice/lab-kubepods-besteffort.slice/lab-kubepods-besteffort-pode_1.slice/cri-containerd-c.scope",
    ]);
  });
  // a posted configuration must not lead the writer out of its root
  test.each([
    { cgroupRoot: "/../../etc" },
    { cgroupRoot: "a/../../b" },
    { enforceNodeAllocatable: ["kube-reserved"], kubeReservedCgroup: "/a/../../../b", kubeReserved: { cpu: "1" } },
  ])("%j leads nowhere above the root", (kubeletConfiguration) => {
    const decoded = decodeSnapshot(snapshot({ kubeletConfiguration }));
    const paths = decoded.ok ? pathsOf(snapshot({ kubeletConfiguration })) : [];
    expect(paths.filter((p) => p.split("/").includes(".."))).toEqual([]);
  });
});

describe("cgroupsPerQOS off", () => {
  const OFF = { cgroupsPerQOS: false, enforceNodeAllocatable: [] };
  test("there are neither tiers nor pods", () => {
    expect(pathsOf(configured(OFF, { pods: [bestEffort("e")] }))).toEqual([]);
  });
  // enforceNodeAllocatableCgroups updates cm.cgroupRoot whenever it has a name, and without tiers that is cgroupRoot itself
  test("a cgroupRoot of its own holds the node's capacity", () => {
    expect(valuesAt(configured({ ...OFF, cgroupRoot: "/lab" }), "/lab")).toMatchObject({
      cpuShares: 4096,
      memory: 8 * Gi,
    });
  });
});

describe("reserved cgroups in the tree", () => {
  const KEYS = { enforceNodeAllocatable: ["pods", "system-reserved", "kube-reserved"] };
  const RESERVED = {
    systemReserved: { cpu: "500m", memory: "512Mi", pid: "100" },
    kubeReserved: { cpu: "1", memory: "1Gi" },
  };
  const config = { ...KEYS, ...RESERVED, systemReservedCgroup: "/system", kubeReservedCgroup: "/kube/let" };
  test("lie where they are configured, behind kubepods", () => {
    expect(pathsOf(configured(config)).slice(0, 3)).toEqual(["/kubepods", "/system", "/kube/let"]);
    const systemd = { cgroup: { version: 2, driver: "systemd" } };
    const slices = { ...config, systemReservedCgroup: "/system.slice", kubeReservedCgroup: "runtime-kube.slice" };
    expect(pathsOf(configured(slices, systemd)).slice(1, 3)).toEqual([
      "/system.slice",
      "/runtime.slice/runtime-kube.slice",
    ]);
  });
  test("hold shares, memory and process ids of their reserve", () => {
    expect(filesAt(configured(config), "/system")).toEqual({
      "cpu.weight": "20",
      "memory.max": "536870912",
      "pids.max": "100",
    });
    expect(filesAt({ ...configured(config), cgroup: { version: 1 } }, "/kube/let")).toEqual({
      "cpu.shares": "1024",
      "memory.limit_in_bytes": "1073741824",
    });
  });
  test("in their compressible form hold shares alone", () => {
    const keys = ["pods", "system-reserved-compressible", "kube-reserved-compressible"];
    const soft = configured({ ...config, enforceNodeAllocatable: keys });
    expect(filesAt(soft, "/system")).toEqual({ "cpu.weight": "20" });
    expect(valuesAt(soft, "/kube/let")).toEqual({ cpuShares: 1024, cpuWeight: 39 });
  });
  test("without a reserve of memory have no memory limit", () => {
    const cpuOnly = configured({ ...config, kubeReserved: { cpu: "1" } });
    expect(filesAt(cpuOnly, "/kube/let")).toEqual({ "cpu.weight": "39" });
  });
  test("are absent when they are not enforced", () => {
    expect(pathsOf(configured({ ...config, enforceNodeAllocatable: ["pods"] })).slice(0, 2)).toEqual([
      "/kubepods",
      "/kubepods/burstable",
    ]);
  });
  // path.Base of Go drops a trailing slash; an empty name would be the root cgroup
  test("a slice with a trailing slash is that slice, not the root", () => {
    const slices = configured(
      { ...config, systemReservedCgroup: "/system.slice/" },
      { cgroup: { version: 2, driver: "systemd" } },
    );
    expect(pathsOf(slices)[1]).toBe("/system.slice");
  });
  test("each of their values has its reason, however their name is written", () => {
    const slices = configured(
      { ...config, systemReservedCgroup: "system.slice" },
      { cgroup: { version: 2, driver: "systemd" } },
    );
    const explained = new Set(reasonsOf(cgroupsOf(slices)).map((r) => `${r.at} ${r.field}`));
    for (const field of ["cpuShares", "memory", "pidsLimit"])
      expect([...explained]).toContain(`/system.slice ${field}`);
  });
  test("one cgroup for both is one cgroup in the answer", () => {
    const paths = pathsOf(configured({ ...config, kubeReservedCgroup: "/system" }));
    expect(paths.filter((p) => p === "/system").length).toBe(1);
  });
  // limits of a reserve on the root cgroup, or on kubepods itself, are no answer that may be carried out
  test.each(["/", "-.slice", "/kubepods"])(
    "a reserved cgroup `%s` is refused, or leaves every path once",
    (kubeReservedCgroup) => {
      for (const driver of ["cgroupfs", "systemd"]) {
        const input = configured({ ...config, kubeReservedCgroup }, { cgroup: { version: 2, driver } });
        const paths = outcome("cgroups", input) === "answered" ? pathsOf(input) : [];
        expect(paths).not.toContain("/");
        expect(paths.filter((p) => p.includes("/.slice"))).toEqual([]);
        expect(new Set(paths).size).toBe(paths.length);
      }
    },
  );
});

describe("what the tree cannot do without", () => {
  test("the cgroup version", () => {
    const { cgroup: _none, ...rest } = snapshot();
    expect(refusalOf("cgroups", rest)).toMatchObject({ code: "needs_input", needs: ["cgroup.version"] });
  });
  test("the pods, which an empty list names too", () => {
    const { pods: _none, ...rest } = snapshot();
    const refusal = refusalOf("cgroups", rest);
    expect(refusal).toMatchObject({ code: "needs_input", needs: ["pods"] });
    expect(refusal.message).toContain("snapshot.pods, [] where there are none");
    expect(refusalOf("cgroups", { node: rest["node"] }).needs).toEqual(["cgroup.version", "pods"]);
    expect(cgroupsOf({ ...rest, pods: [] }).needs).not.toContain("pods");
    expect(cgroupsOf({ ...rest, pods: { kind: "PodList", items: null } }).decision.cgroups.length).toBeGreaterThan(0);
    expect(outcome("allocatable", rest)).toBe("answered");
  });
  test("the machine's size", () => {
    const refusal = refusalOf("cgroups", { cgroup: { version: 2 }, pods: [] });
    expect(refusal).toMatchObject({
      code: "needs_input",
      needs: ["node.status.capacity.cpu", "node.status.capacity.memory"],
    });
    expect(refusalOf("allocatable", {}).needs).toEqual(refusal.needs);
    expect(refusal.message).toContain("post node.status.capacity.cpu and node.status.capacity.memory");
  });
  test("a configuration whose fields can be read; the refusal begins with the field's path", () => {
    const message = (config: Json): string => refusalOf("cgroups", configured(config)).message;
    expect(message({ cpuCFSQuotaPeriod: "2s" })).toMatch(/^kubeletConfiguration\.cpuCFSQuotaPeriod: invalid config/);
    expect(message({ reservedSystemCPUs: "a" })).toMatch(/^kubeletConfiguration\.reservedSystemCPUs: `a` is not/);
  });
  test("a list of reserved CPUs that is one", () => {
    expect(refusalOf("cgroups", configured({ reservedSystemCPUs: "0-" })).code).toBe("invalid_configuration");
  });
});
