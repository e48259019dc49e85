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
  ])("cgroupRoot `%s` puts kubepods at %s", (cgroupRoot, kubepods) => {
    const paths = pathsOf(configured({ cgroupRoot }, { pods: [bestEffort("e")] }));
    expect(paths).toEqual(
      ["", "/burstable", "/besteffort", "/besteffort/pode", "/besteffort/pode/c"].map((p) => kubepods + p),
    );
  });
  test("becomes a part of every slice's name with the systemd driver", () => {
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
  // a posted configuration must not make the actuator write outside its root
  test.each([
    { cgroupRoot: "/../../etc" },
    { cgroupRoot: "a/../../b" },
    { enforceNodeAllocatable: ["kube-reserved"], kubeReservedCgroup: "/a/../../../b", kubeReserved: { cpu: "1" } },
  ])("%j cannot escape the cgroup root", (kubeletConfiguration) => {
    const decoded = decodeSnapshot(snapshot({ kubeletConfiguration }));
    expect(decoded.ok ? [] : decoded.error.map(({ message }) => message)).toEqual([
      "must be a cgroup path such as /system or /system.slice, without `.` and `..`",
    ]);
  });
});

describe("cgroupsPerQOS: false", () => {
  const OFF = { cgroupsPerQOS: false, enforceNodeAllocatable: [] };
  test("creates no cgroups for QoS tiers and pods", () => {
    expect(pathsOf(configured(OFF, { pods: [bestEffort("e")] }))).toEqual([]);
  });
  // enforceNodeAllocatableCgroups updates the cgroup cm.cgroupRoot if it has a name; without QoS tiers this is
  // cgroupRoot itself
  test("puts the node's capacity on a configured cgroupRoot", () => {
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
  test("lie at their configured paths, listed after kubepods", () => {
    expect(pathsOf(configured(config)).slice(0, 3)).toEqual(["/kubepods", "/system", "/kube/let"]);
    const systemd = { cgroup: { version: 2, driver: "systemd" } };
    const slices = { ...config, systemReservedCgroup: "/system.slice", kubeReservedCgroup: "runtime-kube.slice" };
    expect(pathsOf(configured(slices, systemd)).slice(1, 3)).toEqual([
      "/system.slice",
      "/runtime.slice/runtime-kube.slice",
    ]);
  });
  test("have the CPU shares, memory limit and pids limit of their reserve", () => {
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
  test("have CPU shares only when enforced as compressible", () => {
    const keys = ["pods", "system-reserved-compressible", "kube-reserved-compressible"];
    const soft = configured({ ...config, enforceNodeAllocatable: keys });
    expect(filesAt(soft, "/system")).toEqual({ "cpu.weight": "20" });
    expect(valuesAt(soft, "/kube/let")).toEqual({ cpuShares: 1024, cpuWeight: 39 });
  });
  test("have no memory limit when no memory is reserved", () => {
    const cpuOnly = configured({ ...config, kubeReserved: { cpu: "1" } });
    expect(filesAt(cpuOnly, "/kube/let")).toEqual({ "cpu.weight": "39" });
  });
  test("are absent when enforceNodeAllocatable does not list them", () => {
    expect(pathsOf(configured({ ...config, enforceNodeAllocatable: ["pods"] })).slice(0, 2)).toEqual([
      "/kubepods",
      "/kubepods/burstable",
    ]);
  });
  // Go's path.Base drops a trailing slash; an empty name would mean the root cgroup
  test("keep their slice when its configured name ends in a slash", () => {
    const slices = configured(
      { ...config, systemReservedCgroup: "/system.slice/" },
      { cgroup: { version: 2, driver: "systemd" } },
    );
    expect(pathsOf(slices)[1]).toBe("/system.slice");
  });
  test("give each value a reason, whichever way their name is written", () => {
    const slices = configured(
      { ...config, systemReservedCgroup: "system.slice" },
      { cgroup: { version: 2, driver: "systemd" } },
    );
    const explained = new Set(reasonsOf(cgroupsOf(slices)).map((r) => `${r.at} ${r.field}`));
    for (const field of ["cpuShares", "memory", "pidsLimit"])
      expect([...explained]).toContain(`/system.slice ${field}`);
  });
  test("are listed once when both reserves name the same cgroup", () => {
    const paths = pathsOf(configured({ ...config, kubeReservedCgroup: "/system" }));
    expect(paths.filter((p) => p === "/system").length).toBe(1);
  });
  // a reserve's limits on the root cgroup or on kubepods would be harmful, so the decision is refused
  test.each(["/", "-.slice", "/kubepods"])(
    "a reserved cgroup named `%s` is refused, unless it names an ordinary cgroup",
    (kubeReservedCgroup) => {
      for (const driver of ["cgroupfs", "systemd"]) {
        const input = configured({ ...config, kubeReservedCgroup }, { cgroup: { version: 2, driver } });
        if (kubeReservedCgroup === "-.slice" && driver === "cgroupfs") {
          // with the cgroupfs driver this is an ordinary name
          const paths = pathsOf(input);
          expect(paths).toContain("/-.slice");
          expect(new Set(paths).size).toBe(paths.length);
        } else {
          expect(refusalOf("cgroups", input).message).toBe(
            `kubeletConfiguration.kubeReservedCgroup: \`${kubeReservedCgroup}\` holds the pods themselves; name a cgroup of its own`,
          );
        }
      }
    },
  );
});

describe("a cgroups decision is refused", () => {
  test("without the cgroup version", () => {
    const { cgroup: _none, ...rest } = snapshot();
    expect(refusalOf("cgroups", rest)).toMatchObject({ code: "needs_input", needs: ["cgroup.version"] });
  });
  test("without a list of pods, while an empty list is enough", () => {
    const { pods: _none, ...rest } = snapshot();
    const refusal = refusalOf("cgroups", rest);
    expect(refusal).toMatchObject({ code: "needs_input", needs: ["pods"] });
    expect(refusal.message).toContain("snapshot.pods, [] where there are none");
    expect(refusalOf("cgroups", { node: rest["node"] }).needs).toEqual(["cgroup.version", "pods"]);
    expect(cgroupsOf({ ...rest, pods: [] }).needs).not.toContain("pods");
    expect(cgroupsOf({ ...rest, pods: { kind: "PodList", items: null } }).decision.cgroups.length).toBeGreaterThan(0);
    expect(outcome("allocatable", rest)).toBe("answered");
  });
  test("without the machine's CPU and memory capacity", () => {
    const refusal = refusalOf("cgroups", { cgroup: { version: 2 }, pods: [] });
    expect(refusal).toMatchObject({
      code: "needs_input",
      needs: ["node.status.capacity.cpu", "node.status.capacity.memory"],
    });
    expect(refusalOf("allocatable", {}).needs).toEqual(refusal.needs);
    expect(refusal.message).toContain("post node.status.capacity.cpu and node.status.capacity.memory");
  });
  test("for an invalid configuration field, with the field's path first in the message", () => {
    const message = (config: Json): string => refusalOf("cgroups", configured(config)).message;
    expect(message({ cpuCFSQuotaPeriod: "2s" })).toMatch(/^kubeletConfiguration\.cpuCFSQuotaPeriod: invalid config/);
    expect(message({ reservedSystemCPUs: "a" })).toMatch(/^kubeletConfiguration\.reservedSystemCPUs: `a` is not/);
  });
  test("for a reservedSystemCPUs that is no CPU list", () => {
    expect(refusalOf("cgroups", configured({ reservedSystemCPUs: "0-" })).code).toBe("invalid_configuration");
  });
});
