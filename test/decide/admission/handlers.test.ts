import { describe, expect, it } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, CRITICAL, readyNode, refusal, wouldRefuse } from "./admission-kit.ts";

const shown = (snapshot: Json, pod: Json): string => {
  const { reason, message } = admitted(snapshot, pod).decision;
  return `${reason}: ${message}`;
};
const under = (...types: string[]): Json =>
  readyNode({}, { conditions: types.map((type) => ({ type, status: "True" })) });

describe("a node under pressure", () => {
  const bare = boundPod("bare");
  it("refuses BestEffort pods under MemoryPressure, unless they tolerate it", () => {
    const toleration = { key: "node.kubernetes.io/memory-pressure", operator: "Exists" };
    expect(shown(under("MemoryPressure"), bare)).toBe("Evicted: The node had condition: [MemoryPressure]. ");
    expect(admitted(under("MemoryPressure"), boundPod("p", { cpu: "1m" })).decision.admit).toBe(true);
    expect(admitted(under("MemoryPressure"), boundPod("p", {}, { tolerations: [toleration] })).decision.admit).toBe(
      true,
    );
    const other = { key: "node.kubernetes.io/disk-pressure", operator: "Exists" };
    expect(admitted(under("MemoryPressure"), boundPod("p", {}, { tolerations: [other] })).decision.admit).toBe(false);
  });
  it("refuses all but critical pods under any other pressure condition", () => {
    const pod = boundPod("p", { cpu: "1m" });
    expect(shown(under("DiskPressure"), pod)).toBe("Evicted: The node had condition: [DiskPressure]. ");
    expect(shown(under("PIDPressure", "MemoryPressure"), pod)).toMatch(
      /^Evicted: The node had condition: \[\w+ \w+\]\. $/,
    );
    expect(admitted(under("DiskPressure"), boundPod("p", {}, CRITICAL)).decision.admit).toBe(true);
  });
  it("is one with a condition of status True; without conditions the answer needs them", () => {
    const fine = readyNode({}, { conditions: [{ type: "DiskPressure", status: "False" }] });
    expect(admitted(fine, bare)).toMatchObject({ decision: { admit: true }, needs: [] });
    expect(admitted(readyNode({}, { conditions: undefined }), bare).needs).toEqual(["node.status.conditions"]);
  });
});

describe("sysctls", () => {
  const asking = (name: string, spec: Json = {}): Json =>
    boundPod("p", {}, { securityContext: { sysctls: [{ name, value: "1" }] }, ...spec });
  const allowing = (...allowedUnsafeSysctls: string[]): Json =>
    readyNode({ kubeletConfiguration: { allowedUnsafeSysctls } });
  it("are allowed when they are safe on the node's kernel version", () => {
    const kernel = (kernelVersion: string): Json => readyNode({}, { nodeInfo: { kernelVersion } });
    expect(admitted(readyNode(), asking("net.ipv4.tcp_syncookies")).decision.admit).toBe(true);
    expect(admitted(kernel("4.15.0-rc1"), asking("net.ipv4.tcp_rmem")).decision.admit).toBe(true);
    expect(shown(kernel("4.14.336"), asking("net.ipv4.tcp_rmem"))).toBe(
      'SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted',
    );
    expect(admitted(readyNode({}, { nodeInfo: {} }), asking("net.ipv4.tcp_rmem"))).toMatchObject({
      decision: { admit: true },
      needs: ["node.status.nodeInfo.kernelVersion"],
    });
  });
  it("are allowed when allowedUnsafeSysctls lists them by name or by prefix", () => {
    expect(admitted(allowing("net.core.somaxconn"), asking("net/core/somaxconn")).decision.admit).toBe(true);
    expect(admitted(allowing("kernel.msg*"), asking("kernel.msgmax")).decision.admit).toBe(true);
    expect(shown(allowing("kernel.msg*"), asking("kernel.sem"))).toContain('"kernel.sem" not allowlisted');
  });
  it("are refused in a namespace that the pod shares with the host", () => {
    expect(shown(readyNode(), asking("kernel.shm_rmid_forced", { hostIPC: true }))).toBe(
      'SysctlForbidden: forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled',
    );
    expect(shown(allowing("net.core.*"), asking("net.core.somaxconn", { hostNetwork: true }))).toBe(
      'SysctlForbidden: forbidden sysctl: "net.core.somaxconn" not allowed with host Net enabled',
    );
  });
  describe("that kubelet 1.37 added", () => {
    const under = (version: string, names: readonly string[] = [], kernelVersion = "6.1.0"): Json =>
      readyNode(
        { kubeletConfiguration: { allowedUnsafeSysctls: names } },
        { nodeInfo: { kernelVersion, kubeletVersion: `v${version}.0` } },
      );
    it.each(["1.34", "1.35", "1.36", "1.37"])("are safe only from 1.37 on: kubelet %s", (version) => {
      const isNew = version === "1.37";
      for (const [name, since] of [
        ["net.ipv4.tcp_slow_start_after_idle", "4.15"],
        ["net.ipv4.tcp_notsent_lowat", "4.6"],
      ] as const) {
        expect(admitted(under(version, [], since), asking(name)).decision.admit).toBe(isNew);
        expect(shown(under(version, [], "4.5.9"), asking(name))).toContain("not allowlisted");
      }
    });
    it("belong to a namespace: user.* to the user namespace, kernel.domainname to the UTS namespace", () => {
      const names = ["user.*", "kernel.domainname"];
      const at = under("1.37", names);
      for (const hostUsers of [undefined, true]) {
        expect(shown(at, asking("user.max_user_namespaces", { hostUsers }))).toBe(
          'SysctlForbidden: forbidden sysctl: "user.max_user_namespaces" not allowed with host User enabled',
        );
      }
      expect(admitted(at, asking("user.max_user_namespaces", { hostUsers: false })).decision.admit).toBe(true);
      expect(admitted(at, asking("kernel.domainname", { hostNetwork: true, hostIPC: true })).decision.admit).toBe(true);
      expect(refusal(under("1.36", names), boundPod("p")).message).toBe(
        'kubeletConfiguration.allowedUnsafeSysctls: the sysctls "user." are not known to be namespaced',
      );
    });
  });
  it("that are no valid allowedUnsafeSysctls refuse the configuration", () => {
    expect(refusal(allowing("vm.swappiness"), boundPod("p"))).toMatchObject({
      code: "invalid_configuration",
      message: 'kubeletConfiguration.allowedUnsafeSysctls: the sysctls "vm.swappiness" are not known to be namespaced',
    });
    expect(refusal(allowing("Net.X"), boundPod("p")).message).toContain(
      'sysctl "Net.X" must have at most 253 characters',
    );
  });
});

describe("a node that is shutting down", () => {
  const refused = "NodeShutdown: Pod was rejected as the node is shutting down.";
  it("refuses every pod, critical ones too", () => {
    expect(shown(readyNode({ kubelet: { shuttingDown: true } }), boundPod("p", {}, CRITICAL))).toBe(refused);
  });
  it("is recognised by its Ready condition", () => {
    const conditions = [{ type: "Ready", status: "False", message: "node is shutting down" }];
    expect(shown(readyNode({}, { conditions }), boundPod("p"))).toBe(refused);
  });
});

describe("the reasons of a refusal", () => {
  it("are listed in the order of the handlers, and the first one is shown", () => {
    const node = {
      metadata: { name: "n", labels: { zone: "a" } },
      spec: { taints: [{ key: "k", effect: "NoExecute" }] },
    };
    const conditions = [
      { type: "DiskPressure", status: "True" },
      { type: "Ready", status: "False", message: "node is shutting down" },
    ];
    const snapshot = readyNode({ kubelet: { appArmor: false } }, { conditions }, node);
    const pod = boundPod(
      "p",
      { cpu: "5", memory: "9Gi", "example.com/gpu": "1", "hugepages-2Mi": "2Mi" },
      {
        nodeName: "other",
        nodeSelector: { zone: "b" },
        os: { name: "windows" },
        securityContext: { appArmorProfile: { type: "RuntimeDefault" }, sysctls: [{ name: "vm.a" }, { name: "vm.b" }] },
      },
    );
    const answer = admitted(snapshot, pod, { managers: () => ({ reason: "TopologyAffinityError", message: "no" }) });
    expect(wouldRefuse(answer)).toEqual([
      "eviction Evicted",
      "sysctl SysctlForbidden",
      "sysctl SysctlForbidden",
      "resources TopologyAffinityError",
      "predicates PodOSNotSupported",
      "predicates OutOfcpu",
      "predicates OutOfmemory",
      "predicates OutOfhugepages-2Mi",
      "predicates NodeAffinity",
      "predicates NodeName",
      "predicates TaintToleration",
      "app-armor AppArmor",
      "shutdown NodeShutdown",
    ]);
    expect(answer.decision.wouldRefuse.filter((w) => w.shown).map((w) => w.reason)).toEqual(["Evicted"]);
    expect(answer.verdict).toBe("refused");
  });
});

describe("the resource managers in an admission", () => {
  const given = [{ container: "c", cpus: "1", exclusive: true, memory: [], devices: {} }];
  it("show their assignments, unless one of them refuses", () => {
    expect(
      admitted(readyNode(), boundPod("p"), { managers: () => null, assigned: () => given }).decision.assigned,
    ).toBe(given);
    const refuses = { managers: () => ({ reason: "r", message: "m" }), assigned: () => given };
    expect(admitted(readyNode(), boundPod("p"), refuses).decision).toMatchObject({
      admit: false,
      reason: "r",
      assigned: null,
    });
    expect(admitted(readyNode(), boundPod("p")).decision.assigned).toBeNull();
  });
  it("raise the node's allocatable devices to the number that containers hold", () => {
    const snapshot = readyNode({ pods: [boundPod("old", { "example.com/gpu": "1" })] });
    const pod = boundPod("p", { "example.com/gpu": "1" });
    const held = new Map([["example.com/gpu", 2]]);
    const gpu = admitted(snapshot, pod, { heldDevices: () => held }).decision.resources.at(-1);
    expect(gpu).toEqual({ resource: "example.com/gpu", requested: 1, used: 1, capacity: 2, insufficient: 0 });
  });
});
