import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { mergePatch } from "../../../api/base/merge-patch.ts";
import { libraryMachine } from "../../../api/cli/inputs/machine-library.ts";
import { LINT_SEVERITIES, type LintFinding } from "../../../api/decide/lint/finding.ts";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { PROFILES } from "../../../api/profiles/index.ts";
import { claiming, slice } from "../../kit/claims.ts";
import { node } from "../../kit/nodes.ts";
import { pod } from "../../kit/pods.ts";
import { captured } from "../../kit/real-node.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";

/** A device with a PCI address. */
const nic = (address: string): Json => ({
  name: "nic",
  attributes: { "resource.kubernetes.io/pciBusID": { string: address } },
});

type Case = readonly [code: string, severity: LintFinding["severity"], field: string, configuration: object];
const GIB = 1024 ** 3;

/** A configuration with exactly one finding for each code. */
const CASES: readonly Case[] = [
  ["eviction-defaults-dropped", "warning", "evictionHard", { evictionHard: { "memory.available": "500Mi" } }],
  ["eviction-defaults-dropped", "warning", "evictionHard", { evictionHard: {} }],
  ["merge-without-thresholds", "note", "mergeDefaultEvictionSettings", { mergeDefaultEvictionSettings: true }],
  [
    "pods-not-enforced",
    "warning",
    "enforceNodeAllocatable",
    { enforceNodeAllocatable: ["system-reserved"], systemReservedCgroup: "/system", systemReserved: { cpu: "1" } },
  ],
  ["report-frequency-dropped", "note", "nodeStatusReportFrequency", { nodeStatusUpdateFrequency: "20s" }],
  [
    "reserved-cpu-replaced",
    "note",
    'kubeReserved["cpu"]',
    { kubeReserved: { cpu: "500m" }, reservedSystemCPUs: "0", cpuManagerPolicy: "static" },
  ],
  [
    "soft-not-above-hard",
    "warning",
    'evictionSoft["nodefs.available"]',
    { evictionSoft: { "nodefs.available": "10%" }, evictionSoftGracePeriod: { "nodefs.available": "1m" } },
  ],
  [
    "reclaim-without-threshold",
    "warning",
    'evictionMinimumReclaim["pid.available"]',
    { evictionMinimumReclaim: { "pid.available": "100" } },
  ],
  [
    "grace-without-soft",
    "warning",
    'evictionSoftGracePeriod["memory.available"]',
    { evictionSoftGracePeriod: { "memory.available": "1m" } },
  ],
  [
    "threshold-ignored",
    "warning",
    'evictionHard["nodefs.available"]',
    { evictionHard: { "nodefs.available": "100%" }, mergeDefaultEvictionSettings: true },
  ],
  ["transition-zero", "note", "evictionPressureTransitionPeriod", { evictionPressureTransitionPeriod: "0s" }],
  ["transition-short", "warning", "evictionPressureTransitionPeriod", { evictionPressureTransitionPeriod: "5s" }],
  ["pod-grace-without-soft", "note", "evictionMaxPodGracePeriod", { evictionMaxPodGracePeriod: 60 }],
  [
    "soft-without-pod-grace",
    "warning",
    "evictionMaxPodGracePeriod",
    { evictionSoft: { "memory.available": "1Gi" }, evictionSoftGracePeriod: { "memory.available": "1m" } },
  ],
  ["image-gc-off", "note", "imageGCHighThresholdPercent", { imageGCHighThresholdPercent: 100 }],
  ["image-min-age-long", "note", "imageMinimumGCAge", { imageMinimumGCAge: "3h" }],
  ["shutdown-without-critical", "note", "shutdownGracePeriodCriticalPods", { shutdownGracePeriod: "30s" }],
  [
    "shutdown-without-others",
    "warning",
    "shutdownGracePeriodCriticalPods",
    { shutdownGracePeriod: "30s", shutdownGracePeriodCriticalPods: "30s" },
  ],
  ["image-age-short", "warning", "imageMaximumGCAge", { imageMaximumGCAge: "10m" }],
  [
    "image-gc-after-eviction",
    "warning",
    "imageGCHighThresholdPercent",
    { evictionHard: { "imagefs.available": "20%" }, mergeDefaultEvictionSettings: true },
  ],
  [
    "enforced-without-reserve",
    "warning",
    "systemReserved",
    { enforceNodeAllocatable: ["pods", "system-reserved"], systemReservedCgroup: "/system" },
  ],
  ["reserved-cgroup-idle", "note", "kubeReservedCgroup", { kubeReservedCgroup: "/kube" }],
  ["reserve-not-enforced", "note", "kubeReserved", { kubeReserved: { memory: "1Gi" } }],
  ["kubelet-outside-reserve", "warning", "kubeletCgroups", { kubeletCgroups: "/other", kubeReservedCgroup: "/kube" }],
  ["topology-without-hints", "warning", "topologyManagerPolicy", { topologyManagerPolicy: "restricted" }],
  [
    "topology-options-idle",
    "note",
    "topologyManagerPolicyOptions",
    { topologyManagerPolicyOptions: { "prefer-closest-numa-nodes": "true" } },
  ],
  ["topology-scope-idle", "note", "topologyManagerScope", { topologyManagerScope: "pod" }],
  [
    "closest-nodes-idle",
    "note",
    'topologyManagerPolicyOptions["prefer-closest-numa-nodes"]',
    {
      topologyManagerPolicy: "single-numa-node",
      topologyManagerPolicyOptions: { "prefer-closest-numa-nodes": "true" },
      cpuManagerPolicy: "static",
      reservedSystemCPUs: "0",
    },
  ],
  ["reserved-cpus-without-static", "warning", "reservedSystemCPUs", { reservedSystemCPUs: "0-1" }],
  ["reserved-memory-idle", "note", "reservedMemory", { reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }] }],
  ["qos-reserved-idle", "warning", "qosReserved", { qosReserved: { memory: "50%" } }],
  [
    "throttling-factor-idle",
    "note",
    "memoryThrottlingFactor",
    { memoryThrottlingFactor: 0.9, featureGates: { MemoryQoS: false } },
  ],
  ["swap-refused-by-default", "warning", "memorySwap.swapBehavior", { memorySwap: { swapBehavior: "LimitedSwap" } }],
  ["quota-period-idle", "note", "cpuCFSQuotaPeriod", { cpuCFSQuota: false, cpuCFSQuotaPeriod: "10ms" }],
  ["milli-bytes", "error", 'kubeReserved["memory"]', { kubeReserved: { memory: "500m" } }],
  ["milli-bytes", "error", "containerLogMaxSize", { containerLogMaxSize: "10m" }],
  ["bytes-without-unit", "warning", 'systemReserved["memory"]', { systemReserved: { memory: "512" } }],
  ["logs-not-rotated", "warning", "containerLogMaxSize", { containerLogMaxSize: "-1" }],
  ["reserved-cpu-rounded", "note", "kubeReserved", { cpuManagerPolicy: "static", kubeReserved: { cpu: "500m" } }],
  [
    "memory-threshold-small",
    "warning",
    'evictionHard["memory.available"]',
    { evictionHard: { "memory.available": "10Mi" }, mergeDefaultEvictionSettings: true },
  ],
  ["unknown-field", "error", "evctionHard", { evctionHard: { "memory.available": "1Gi" } }],
  ["unknown-field", "error", "memorySwap.swapBehaviour", { memorySwap: { swapBehaviour: "NoSwap" } }],
  ["deprecated-field", "note", "iptablesDropBit", { iptablesDropBit: 3 }],
  ["leaving-feature-gate", "note", 'featureGates["NodeSwap"]', { featureGates: { NodeSwap: true } }],
  ["wrong-type", "refuses-start", "maxPods", { maxPods: "110" }],
  [
    "wrong-api-version",
    "refuses-start",
    "apiVersion",
    { apiVersion: "kubelet.config.k8s.io/v1", kind: "KubeletConfiguration" },
  ],
  ["wrong-kind", "refuses-start", "kind", { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfig" }],
  ["wrong-kind", "refuses-start", "kind", { kind: "kubeletConfiguration" }],
  ["kind-missing", "refuses-start", "apiVersion", { apiVersion: "kubelet.config.k8s.io/v1beta1" }],
  ["wrong-type", "refuses-start", 'kubeReserved["cpu"]', { kubeReserved: { cpu: 1 } }],
  ["wrong-type", "refuses-start", "imageMinimumGCAge", { imageMinimumGCAge: "5 min" }],
  ["cannot-parse", "refuses-start", 'kubeReserved["memory"]', { kubeReserved: { memory: "1Gb" } }],
  ["unknown-value", "refuses-start", "topologyManagerPolicy", { topologyManagerPolicy: "single-numa" }],
  ["unknown-feature-gate", "refuses-start", 'featureGates["MemoryQos"]', { featureGates: { MemoryQos: true } }],
  ["static-without-reserved-cpu", "refuses-start", "reservedSystemCPUs", { cpuManagerPolicy: "static" }],
  [
    "reserved-memory",
    "refuses-start",
    "reservedMemory",
    { memoryManagerPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }] },
  ],
];
const byCode = (found: readonly LintFinding[], code: string, field: string) =>
  found.find((f) => f.code === code && f.field === field);

describe("lint findings of a configuration", () => {
  test.each(CASES)("have code %s with severity %s at %s for %j", (code, severity, field, configuration) => {
    const found = byCode(lintConfiguration(configuration), code, field);
    expect(found?.severity).toBe(severity);
    expect(found?.message).not.toBe("");
    expect(found?.advice).not.toBe("");
  });

  const file = join(import.meta.dirname, "../../data/lint/kubelet-1.36.3.json");
  const kubelets = JSON.parse(readFileSync(file, "utf8")) as readonly { readonly configuration: object }[];
  const all = [...CASES.map(([, , , configuration]) => configuration), ...kubelets.map((k) => k.configuration)];
  const underEach = all.flatMap((configuration) => PROFILES.map((profile) => ({ configuration, profile })));
  test.each(underEach)(
    "have fixes that remove them and cause no new refusal: $profile.version $configuration",
    ({ configuration, profile }) => {
      const before = lintConfiguration(configuration, undefined, profile);
      const said = ({ field, message }: LintFinding) => `${field}: ${message}`;
      const refusing = new Set(before.filter((f) => f.severity === "refuses-start").map(said));
      for (const { code, field, message, fix } of before.filter((f) => f.fix !== null)) {
        const after = lintConfiguration(mergePatch(configuration, fix), undefined, profile);
        expect(
          after.find((f) => f.field === field && f.message === message),
          `${code} ${field}`,
        ).toBeUndefined();
        const added = after.filter((f) => f.severity === "refuses-start" && !refusing.has(said(f)));
        expect(added, `${code} ${JSON.stringify(fix)}`).toEqual([]);
      }
    },
  );

  test.each<[object, string, RegExp | null, unknown]>([
    [{ kubeReserved: { cpu: -1 } }, 'kubeReserved["cpu"]', /cannot be negative: -1 \(zero or more\)$/, null],
    [{ evictionHard: { "nodefs.available": 10 } }, 'evictionHard["nodefs.available"]', /was Mi, Gi or %/, null],
    [{ imageGCHighThresholdPercent: "101" }, "imageGCHighThresholdPercent", /between 0 and 100/, null],
    [{ kubeReserved: { cpu: 1, memory: "1" } }, 'kubeReserved["cpu"]', null, { kubeReserved: { cpu: "1" } }],
  ])(
    "of a value that Go cannot read have a fix only when the corrected value is valid: %j",
    (configuration, field, then, fix) => {
      const found = byCode(lintConfiguration(configuration), "wrong-type", field);
      expect(found?.fix).toEqual(fix);
      if (then === null) expect(found?.advice).not.toContain("and then");
      else expect(found?.advice).toMatch(then);
    },
  );

  test.each<[object, string, unknown]>([
    // a value under the correct name stays unchanged
    [
      { evictionHard: { "memory.available": "500Mi", "memory.avail": "1Gi" } },
      'evictionHard["memory.avail"]',
      { evictionHard: { "memory.avail": null } },
    ],
    [
      { evictionHard: { "memory.availabel": "1Gi" } },
      'evictionHard["memory.availabel"]',
      { evictionHard: { "memory.availabel": null, "memory.available": "1Gi" } },
    ],
    [
      { featureGates: { MemoryQos: true, MemoryQoS: false } },
      'featureGates["MemoryQos"]',
      { featureGates: { MemoryQos: null } },
    ],
    // the only known value with this prefix
    [{ topologyManagerPolicy: "single-numa" }, "topologyManagerPolicy", { topologyManagerPolicy: "single-numa-node" }],
    [{ hairpinMode: "hairpin" }, "hairpinMode", { hairpinMode: "hairpin-veth" }],
    [{ topologyManagerPolicy: "x" }, "topologyManagerPolicy", { topologyManagerPolicy: null }],
  ])(
    "have a fix that puts the likely name in place of an unknown one, unless it is set already: %j",
    (configuration, field, fix) => {
      expect(lintConfiguration(configuration).find((f) => f.field === field)?.fix).toEqual(fix);
    },
  );

  test("require no apiVersion for fields of a request or a snapshot", () => {
    const refused = (head: object) => lintConfiguration(head).map(({ severity }) => severity);
    for (const head of [{}, { kind: "KubeletConfiguration" }, { apiVersion: "", kind: "" }, { apiVersion: null }]) {
      expect(refused(head), JSON.stringify(head)).toEqual([]);
    }
    const kubeletconfig = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    expect(lintConfiguration({ kubeletconfig })).toEqual([]);
  });

  test("are none for the defaults, in a file or as /configz prints them", () => {
    expect(lintConfiguration({})).toEqual([]);
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    expect(lintConfiguration(head)).toEqual([]);
    const hard = {
      "imagefs.available": "15%",
      "imagefs.inodesFree": "5%",
      "memory.available": "100Mi",
      "nodefs.available": "10%",
      "nodefs.inodesFree": "5%",
    };
    const kubeletconfig = { evictionHard: hard, imageMaximumGCAge: "0s", iptablesDropBit: 15 };
    expect(lintConfiguration({ kubeletconfig })).toEqual([]);
  });

  test("do not flag unknown fields of a real /configz, but those of a hand-written one", () => {
    const { kubeletconfig } = captured("configz.json") as { readonly kubeletconfig: Json };
    const codes = (of: Json) => lintConfiguration({ kubeletconfig: of }).map(({ code, field }) => `${code} ${field}`);
    expect(codes({ ...kubeletconfig, ofAnotherVersion: 1 })).toEqual(codes(kubeletconfig));
    expect(codes({ maxPod: 9 })).toEqual(["unknown-field maxPod"]);
  });

  test("include image-gc-after-eviction at one percent more, not at the same percentage", () => {
    const codes = (text: string) =>
      lintConfiguration({ evictionHard: { "imagefs.available": text }, mergeDefaultEvictionSettings: true }).map(
        ({ code, fix }) => [code, fix],
      );
    expect(codes("15%")).toEqual([]);
    expect(codes("16%")).toEqual([
      ["image-gc-after-eviction", { imageGCHighThresholdPercent: 84, imageGCLowThresholdPercent: 79 }],
    ]);
  });

  test("are sorted by severity, then by field", () => {
    const found = lintConfiguration({
      kubeReserved: { memory: "1Gi" },
      evictionHard: {},
      maxPods: -1,
      eventBurst: -1,
      whatever: 1,
    });
    const order = found.map(({ severity }) => LINT_SEVERITIES.indexOf(severity));
    expect(order).toEqual([...order].sort());
    expect(found.slice(0, 2).map(({ field }) => field)).toEqual(["eventBurst", "maxPods"]);
    expect(new Set(order).size).toBe(4);
  });

  test.each([[null], [[]], ["maxPods: 1"], [undefined]])("are no-configuration for %j", (given) => {
    expect(lintConfiguration(given)).toMatchObject([{ code: "no-configuration", severity: "error", field: "$" }]);
  });
  test("are too-large for a huge input, which is not searched", () => {
    const gates = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`Gate${i}`, true]));
    for (const given of [{ featureGates: gates }, { podLogsDir: "/a".repeat(100_000) }]) {
      expect(lintConfiguration(given)).toMatchObject([{ code: "too-large", severity: "error" }]);
    }
    const untold = new Proxy(new Array(3000).fill(1), {
      ownKeys: () => {
        throw new Error("millions of entries would be made before they are counted");
      },
    });
    expect(lintConfiguration({ whatever: untold })).toMatchObject([{ code: "too-large" }]);
    const many = Object.fromEntries(Array.from({ length: 1900 }, (_, i) => [`Gate${i}`, true]));
    expect(lintConfiguration({ featureGates: many })).toHaveLength(1900);
  });
  test("do not touch prototypes for hostile field names", () => {
    const given = JSON.parse('{"__proto__": {"maxPods": -1}, "constructor": 1, "evictionHard": {"__proto__": "1Gi"}}');
    expect(() => lintConfiguration(given)).not.toThrow();
    expect(({} as Record<string, unknown>)["maxPods"]).toBeUndefined();
  });
});

describe("lint findings of a configuration on a node", () => {
  const on = (configuration: object, snapshot: object) => {
    return lintConfiguration(configuration, decoded(snapshot));
  };
  const small = { node: node({ capacity: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" } }) };
  const fs = (capacityBytes: number) => ({ capacityBytes, availableBytes: capacityBytes / 2 });
  const stats = {
    node: { fs: fs(100 * GIB), runtime: { imageFs: fs(50 * GIB) }, rlimit: { maxpid: 4096, curproc: 100 } },
  };
  test.each<Case | readonly [...Case, object]>([
    [
      "threshold-above-capacity",
      "error",
      'evictionHard["memory.available"]',
      { evictionHard: { "memory.available": "8Gi" } },
    ],
    [
      "reclaim-above-capacity",
      "error",
      'evictionMinimumReclaim["memory.available"]',
      { evictionMinimumReclaim: { "memory.available": "8Gi" } },
    ],
    ["reserved-above-capacity", "refuses-start", "kubeReserved", { kubeReserved: { memory: "9Gi" } }],
    ["nothing-allocatable", "error", "kubeReserved", { kubeReserved: { cpu: "3" }, systemReserved: { cpu: "1" } }],
    ["pod-pids-above-node", "warning", "podPidsLimit", { podPidsLimit: 5000 }, { stats }],
    ["pod-pids-exhaust-node", "note", "podPidsLimit", { podPidsLimit: 1000 }, { stats }],
    ["max-pods-not-reached", "note", "podsPerCore", { podsPerCore: 10, maxPods: 100 }],
    ["pods-per-core-idle", "note", "podsPerCore", { podsPerCore: 50 }],
    [
      "image-gc-after-eviction",
      "warning",
      "imageGCHighThresholdPercent",
      { evictionHard: { "imagefs.available": "10Gi" } },
      { stats },
    ],
    [
      "soft-not-above-hard",
      "warning",
      'evictionSoft["nodefs.available"]',
      { evictionSoft: { "nodefs.available": "5Gi" }, evictionSoftGracePeriod: { "nodefs.available": "1m" } },
      { stats },
    ],
    [
      "two-cpu-owners",
      "error",
      "cpuManagerPolicy",
      { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } },
      { dra: { resourceSlices: [slice(["cpu0"], { driver: "dra.cpu" })] } },
    ],
    [
      "two-cpu-owners",
      "error",
      "cpuManagerPolicy",
      { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } },
      { dra: { resourceSlices: [slice([{ name: "0", nodeAllocatableResources: { cpu: { mapping: {} } } }])] } },
    ],
    [
      "two-cpu-owners",
      "error",
      "cpuManagerPolicy",
      { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } },
      { dra: { resourceSlices: [slice([{ name: "0", nodeAllocatableResourceMappings: { cpu: {} } }])] } },
    ],
    [
      "two-cpu-owners",
      "error",
      "cpuManagerPolicy",
      { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } },
      { dra: { drivers: [{ name: "dra.cpu" }] } },
    ],
    [
      "cdi-off",
      "error",
      "containerRuntimeEndpoint",
      {},
      { runtime: { info: { config: { enableCDI: false } } }, pods: [claiming("p", ["gpu"])] },
    ],
    [
      "plugin-and-driver",
      "warning",
      'featureGates["DRAExtendedResource"]',
      {},
      {
        devices: [{ resource: "example.com/gpu", id: "0" }],
        dra: { deviceClasses: [{ metadata: { name: "gpu" }, spec: { extendedResourceName: "example.com/gpu" } }] },
      },
    ],
    [
      "plugin-and-driver",
      "warning",
      'featureGates["DynamicResourceAllocation"]',
      {},
      {
        node: node({ capacity: { cpu: "2", memory: "8Gi", "nvidia.com/gpu": "1" } }),
        dra: { resourceSlices: [slice(["0"], { driver: "gpu.nvidia.com" })] },
      },
    ],
    [
      "plugin-and-driver",
      "warning",
      'featureGates["DRAExtendedResource"]',
      {},
      {
        node: node({ capacity: { cpu: "2", memory: "8Gi", "example.com/gpu": "1" } }),
        dra: { deviceClasses: [{ metadata: { name: "gpu" }, spec: { extendedResourceName: "example.com/gpu" } }] },
      },
    ],
    [
      "plugin-and-driver",
      "warning",
      'featureGates["DynamicResourceAllocation"]',
      {},
      {
        devices: [{ resource: "nvidia.com/gpu", id: "0" }],
        dra: { resourceSlices: [slice(["0"], { driver: "gpu.nvidia.com" })] },
      },
    ],
    [
      "plugin-and-driver",
      "warning",
      'featureGates["DynamicResourceAllocation"]',
      {},
      {
        devices: [{ resource: "example.com/nic", id: "0000:03:02.0" }],
        dra: { resourceSlices: [slice([nic("0000:03:02.0")], { driver: "net.example.org" })] },
      },
    ],
    [
      "cdi-off",
      "error",
      "containerRuntimeEndpoint",
      {},
      { runtime: { info: { config: { enableCDI: false } } }, dra: { drivers: [{ name: "gpu.example.com" }] } },
    ],
    ["cgroup-v1", "refuses-start", "failCgroupV1", {}, { cgroup: { version: 1 } }],
    [
      "needs-cgroup-v2",
      "refuses-start",
      "memorySwap.swapBehavior",
      { memorySwap: { swapBehavior: "LimitedSwap" } },
      { cgroup: { version: 1 } },
    ],
    ["swap-on", "refuses-start", "failSwapOn", {}, { machine: { swapBytes: GIB } }],
  ])("have code %s with severity %s at %s for %j", (code, severity, field, configuration, more = {}) => {
    expect(byCode(on(configuration, { ...small, ...more }), code, field)?.severity).toBe(severity);
    expect(byCode(lintConfiguration(configuration), code, field)).toBeUndefined();
  });

  test("do not include two-cpu-owners for CPU overhead or for CPUs in the driver's name only", () => {
    const gpu = slice([{ name: "0", nodeAllocatableResources: { cpu: { overhead: { perPod: "500m" } } } }]);
    const monitor = slice(["0"], { driver: "cpu-monitor.example.com" });
    const given = { ...small, dra: { resourceSlices: [gpu, monitor] } };
    const found = on({ cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } }, given);
    expect(byCode(found, "two-cpu-owners", "cpuManagerPolicy")).toBeUndefined();
  });

  test("do not include two-cpu-owners for a driver of CPUs on other nodes", () => {
    const elsewhere = {
      nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["other"] }] }],
    };
    const devices = [{ name: "cpu0", nodeName: "other" }];
    for (const spec of [
      { nodeName: undefined, nodeSelector: elsewhere, devices: [{ name: "cpu0" }] },
      { nodeName: undefined, perDeviceNodeSelection: true, devices },
    ]) {
      const given = { ...small, dra: { resourceSlices: [slice([], { driver: "dra.cpu", ...spec })] } };
      const found = on({ cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } }, given);
      expect(byCode(found, "two-cpu-owners", "cpuManagerPolicy"), JSON.stringify(spec)).toBeUndefined();
    }
  });

  test.each<[string, string, Json]>([
    ["a driver of another name, whose devices nobody tells apart", "net.nvidia.com", { name: "0" }],
    ["a driver that has other devices than the plugin", "gpu.nvidia.com", nic("0000:04:00.0")],
  ])("do not include plugin-and-driver for a device plugin beside %s", (_, driver, device) => {
    const devices = [{ resource: "nvidia.com/gpu", id: "0000:03:00.0::1" }];
    const dra = { resourceSlices: [slice([device], { driver })] };
    const found = on({}, { ...small, devices, dra });
    expect(byCode(found, "plugin-and-driver", 'featureGates["DynamicResourceAllocation"]')).toBeUndefined();
  });

  const machine = libraryMachine("xeon-2s")?.machine;
  const asked = (configuration: object, more: object = {}) => on(configuration, { ...small, machine, ...more });
  test("include the resource managers' refusals on the machine, in the kubelet's words", () => {
    const cpus = asked({ cpuManagerPolicy: "static", reservedSystemCPUs: "0-4095" });
    expect(cpus.map(({ code, severity }) => [code, severity])).toContainEqual([
      "reserved-cpus-absent",
      "refuses-start",
    ]);
    const state = {
      assignments: { cpu_manager_state: '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}' },
    };
    const [first] = asked({ cpuManagerPolicy: "static", reservedSystemCPUs: "0-1" }, state);
    expect(first).toMatchObject({ code: "state-file", severity: "refuses-start", field: "cpuManagerPolicy" });
    expect(first?.message).toContain('configured policy "static" differs from state checkpoint policy "none"');
  });
  test("require reservedMemory to equal the memory reserves exactly", () => {
    const memory = (text: string) => ({
      memoryManagerPolicy: "Static",
      kubeReserved: { memory: "1Gi" },
      reservedMemory: [{ numaNode: 0, limits: { memory: text } }],
    });
    const wrong = byCode(asked(memory("1Gi")), "reserved-memory", "reservedMemory");
    expect(wrong?.message).toBe(
      'the total amount "1Gi" of type "memory" is not equal to the value "1124Mi" determined by Node Allocatable feature',
    );
    expect(wrong?.advice).toContain("1124Mi");
    expect(asked(memory("1124Mi")).filter(({ severity }) => severity === "refuses-start")).toEqual([]);
  });
  test("count pods whose grace period exceeds evictionMaxPodGracePeriod", () => {
    const ending = (name: string, seconds: number) => pod(name, { spec: { terminationGracePeriodSeconds: seconds } });
    const soft = {
      evictionSoft: { "memory.available": "1Gi" },
      evictionSoftGracePeriod: { "memory.available": "1m" },
      evictionMaxPodGracePeriod: 60,
    };
    const found = on(soft, { ...small, pods: [ending("a", 30), ending("b", 600), ending("c", 61)] });
    expect(byCode(found, "pod-grace-cut", "evictionMaxPodGracePeriod")?.message).toMatch(/^2 of /);
  });
});
