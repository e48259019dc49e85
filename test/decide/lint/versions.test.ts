import { describe, expect, test } from "vitest";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { PROFILES, profileOf } from "../../../api/profiles/index.ts";
import { node } from "../../kit/nodes.ts";
import { decoded } from "../../kit/snapshots.ts";

const V = ["1.34", "1.35", "1.36", "1.37"] as const;
const reportOf = (configuration: object, version: string, snapshot: object = {}) =>
  lintConfiguration(configuration, decoded(snapshot), profileOf(version));
const refusals = (...asked: Parameters<typeof reportOf>) =>
  reportOf(...asked)
    .filter(({ severity }) => severity === "refuses-start")
    .map(({ message }) => message);

const GATES = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: ";
const unrecognized = (gate: string): string => `${GATES}unrecognized feature gate: ${gate}`;
const NONE = [null, null, null, null];

/** The messages of each version's kubelet; null: it starts. */
const CASES: readonly (readonly [configuration: object, words: readonly (string | RegExp | null)[]])[] = [
  [
    { featureGates: { DefaultPodSysctls: true } },
    [...V.slice(0, 3).map(() => unrecognized("DefaultPodSysctls")), null],
  ],
  [{ featureGates: { SidecarContainers: true } }, [null, null, null, unrecognized("SidecarContainers")]],
  [
    { featureGates: { MemoryManager: false } },
    [
      ...V.slice(0, 2).map(() => `${GATES}cannot set feature gate MemoryManager to false, feature is locked to true`),
      ...V.slice(2).map(() => unrecognized("MemoryManager")),
    ],
  ],
  // dependencies between gates are checked since 1.35
  [
    { featureGates: { GracefulNodeShutdown: false } },
    [null, ...V.slice(1).map(() => /depends on features that are disabled/)],
  ],
  [{ memoryReservationPolicy: "TieredReservation" }, [null, null, /requires MemoryQoS feature gate/, null]],
  [
    { tlsCurvePreferences: [1] },
    [null, null, /is not supported by the current Go/, /is not supported by the current Go/],
  ],
  [{ imageMinimumGCAge: "-1m" }, [null, null, /must not be negative/, /must not be negative/]],
  [{ logging: { flushFrequency: "-1s" } }, [null, ...V.slice(1).map(() => /Must be greater than zero/)]],
  [{ cpuCFSQuotaPeriod: "10ms" }, [/requires feature gate Custom/, /requires feature gate Custom/, null, null]],
  [
    { enableSystemLogQuery: true },
    [
      "invalid configuration: NodeLogQuery feature gate is required for enableSystemLogHandler",
      "invalid configuration: NodeLogQuery feature gate is required for enableSystemLogQuery",
      null,
      null,
    ],
  ],
  [
    { memoryThrottlingFactor: 0.8, featureGates: { MemoryQoS: false } },
    [
      null,
      null,
      null,
      "invalid configuration: memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled",
    ],
  ],
  [{ memoryThrottlingFactor: 0.9, featureGates: { MemoryQoS: false } }, NONE],
  [
    { crashLoopBackOff: { maxContainerRestartPeriod: "60s" } },
    [/KubeletCrashLoopBackOffMax not enabled/, null, null, null],
  ],
  [{ imagePullCredentialsVerificationPolicy: "AlwaysVerify" }, [/must not be set if/, null, null, null]],
  [
    { imageMaximumGCAge: "24h", featureGates: { ImageMaximumGCAge: false } },
    [
      "invalid configuration: ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge",
      ...V.slice(1).map(() => /feature is locked to true$/),
    ],
  ],
  [
    { showHiddenMetricsForVersion: "1.2" },
    [
      "--show-hidden-metrics-for-version must be omitted or have the value '1.33'. Only the previous minor version is allowed",
      "--show-hidden-metrics-for-version must be omitted or have the value '1.34'. Only the previous minor version is allowed",
      /Invalid value: "1.2": must be omitted or have the value '1.35'; only/,
      /Invalid value: "1.2": must be omitted or have the value '1.36'; only/,
    ],
  ],
  [
    {
      topologyManagerPolicyOptions: { "prefer-closest-numa-nodes": "true" },
      featureGates: { TopologyManagerPolicyOptions: false },
    },
    [
      ...V.slice(0, 2).map(
        () =>
          'topology manager policy options map[prefer-closest-numa-nodes:true] require feature gates "TopologyManagerPolicyOptions" enabled',
      ),
      ...V.slice(2).map(() => /feature is locked to true$/),
    ],
  ],
  [{ allowedUnsafeSysctls: ["user.*"] }, [...V.slice(0, 3).map(() => /"user\." are not known to be namespaced/), null]],
  [
    { allowedUnsafeSysctls: ["kernel.domainname"] },
    [...V.slice(0, 3).map(() => /are not known to be namespaced/), null],
  ],
];

describe("the refusal to start is in the words of the kubelet's version", () => {
  test.each(
    CASES.flatMap(([configuration, words]) =>
      V.map((version, i) => ({ version, configuration, words: words[i] ?? null })),
    ),
  )("$version: $configuration", ({ version, configuration, words }) => {
    const found = refusals(configuration, version);
    if (words === null) expect(found).toEqual([]);
    else if (typeof words === "string") expect(found).toContain(words);
    else expect(found).toContainEqual(expect.stringMatching(words));
  });

  const ALLOWLIST = { imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages" };
  test.each([
    ["reg.io/a/b", null, null],
    ["reg.io:5000/a", null, null],
    ["localhost/a", null, null],
    ["docker.io/library/busybox", null, null],
    ["docker.io/busybox", /neither tag nor digest is accepted in an image reference: docker\.io\/busybox$/, null],
    ["busybox", /neither tag nor digest is accepted/, null],
    ["a/b", /neither tag nor digest is accepted/, null],
    ["index.docker.io/a/b", /neither tag nor digest is accepted/, null],
    ["reg.io/a:1", /neither tag nor digest is accepted/, /neither tag nor digest is accepted/],
    ["a".repeat(64), /cannot specify 64-byte hexadecimal strings$/, null],
    ["reg.io/Abc", /repository name \(Abc\) must be lowercase$/, /an image name: repository name must be lowercase$/],
    ["reg.io/a b", /an image name: invalid reference format$/, /an image name: invalid reference format$/],
  ])("image %s in the allowlist is accepted by 1.35 unless %s, and by 1.36 unless %s", (image, before, since) => {
    const configuration = { ...ALLOWLIST, preloadedImagesVerificationAllowlist: [image] };
    for (const [version, words] of [
      ["1.35", before],
      ["1.36", since],
    ] as const) {
      const found = refusals(configuration, version);
      expect(found).toEqual(words === null ? [] : [expect.stringMatching(words)]);
    }
  });

  test.each<[object, readonly RegExp[]]>([
    [{ "net.ipv4.ip_forward": "1", "user.max_user_namespaces": "5" }, []],
    [{ BAD: "x" }, [/"BAD" is not a valid sysctl name for defaultPodSysctls$/]],
    [{ "vm.swappiness": "1" }, [/"vm\.swappiness" is not known to be namespaced for defaultPodSysctls$/]],
    [{ "kernel.shmall": "1", "kernel/shmall": "2" }, [/duplicate sysctl "kernel\.shmall" found in defaultPodSysctls$/]],
  ])("defaultPodSysctls %j", (defaultPodSysctls, words) => {
    const found = refusals({ defaultPodSysctls, featureGates: { DefaultPodSysctls: true } }, "1.37");
    expect(found).toEqual(words.map((one) => expect.stringMatching(one)));
  });
});

describe("finding cgroup-v1", () => {
  const v1 = { cgroup: { version: 1 } };
  const refused = "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is ";
  test.each<readonly [version: string, configuration: object, why: string | null]>([
    ["1.34", {}, null],
    ["1.34", { failCgroupV1: true }, "in maintenance mode"],
    ["1.35", { failCgroupV1: false }, null],
    ...V.slice(1).map((version) => [version, {}, "unsupported and will be removed in a future release"] as const),
  ])("%s with %j", (version, configuration, why) => {
    const found = reportOf(configuration, version, v1).find(({ code }) => code === "cgroup-v1");
    expect(found?.message).toBe(why === null ? undefined : refused + why);
    if (found !== undefined) expect(found).toMatchObject({ kubelet: true, fix: { failCgroupV1: false } });
  });
  test("depends on the kubelet version that the node reports", () => {
    const kubelet = (kubeletVersion: string) => ({ ...v1, node: node({ nodeInfo: { kubeletVersion } }) });
    const found = (version: string) => lintConfiguration({}, decoded(kubelet(version))).map(({ code }) => code);
    expect(found("v1.34.4")).toEqual([]);
    expect(found("v1.35.4")).toEqual(["cgroup-v1"]);
  });
});

describe("a field that the kubelet version does not have", () => {
  test.each([
    ["memoryReservationPolicy", "Bogus", ["1.34", "1.35"]],
    ["tlsCurvePreferences", [0], ["1.34", "1.35"]],
    ["defaultPodSysctls", { BAD: "x" }, ["1.34", "1.35", "1.36"]],
  ])("%s is reported as unknown, and its value is not checked", (field, value, without) => {
    for (const version of V) {
      const found = reportOf({ [field]: value }, version);
      const unknown = `strict decoding error: unknown field "${field}"`;
      if (without.includes(version))
        expect(found).toMatchObject([{ code: "unknown-field", kubelet: true, message: unknown }]);
      else expect(found.map(({ severity }) => severity)).toEqual(["refuses-start"]);
    }
  });
  test.each([
    [{ "max-pods": 3 }, "max-pods"],
    [{ 日本語: 1 }, "日本語"],
    [{ shutdownGracePeriodByPodPriority: [{ "a-b": 1 }] }, "shutdownGracePeriodByPodPriority[0].a-b"],
  ])("is named with its path like the kubelet does: %j", (configuration, name) => {
    const message = `strict decoding error: unknown field "${name}"`;
    expect(reportOf(configuration, "1.36")).toContainEqual(expect.objectContaining({ message }));
  });
});

test("maxParallelImagePulls above the kubelet's number of locks is found before 1.37", () => {
  const of = (n: number) => ({ maxParallelImagePulls: n, featureGates: { KubeletEnsureSecretPulledImages: true } });
  const codes = (n: number) => V.map((version) => reportOf(of(n), version).map(({ code }) => code));
  expect(codes(31)).toEqual([[], [], [], []]);
  expect(codes(32)).toEqual([["pulls-past-locks"], ["pulls-past-locks"], ["pulls-past-locks"], []]);
});

test("a memoryThrottlingFactor without effect is found before 1.37, in which its gate is on by default", () => {
  const codes = V.map((version) => reportOf({ memoryThrottlingFactor: 0.5 }, version).map(({ code }) => code));
  expect(codes).toEqual([...V.slice(0, 3).map(() => ["throttling-factor-idle"]), []]);
});

test("the defaults have no finding in any version", () => {
  for (const profile of PROFILES) expect(lintConfiguration(profile.defaults, undefined, profile)).toEqual([]);
});
