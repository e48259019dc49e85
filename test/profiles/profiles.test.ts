import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { kubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import {
  effectiveConfiguration,
  effectiveDocument,
  effectiveSnapshot,
  GATES,
  gateOn,
} from "../../api/profiles/effective.ts";
import { NEWEST, PROFILES, profileOf } from "../../api/profiles/index.ts";
import { isGateOn, profileAfter } from "../../api/profiles/profile.ts";
import { v1_34 } from "../../api/profiles/v1_34.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { VERSIONS } from "../kit/profiles.ts";
import { decoded } from "../kit/snapshots.ts";

const ROOT = join(import.meta.dirname, "../..");
const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [`${folder}/${entry.name}`] : [],
  );
const given = (fields: object) => kubeletConfiguration.parse(fields);
const of = (fields: object) => effectiveConfiguration(v1_36, given(fields));

describe.each(PROFILES)("the profile of $version", (profile) => {
  test("every nested field has a parent of an object type", () => {
    expect(profile.fields.size).toBeGreaterThan(100);
    for (const path of profile.fieldNames.keys())
      if (path !== "") expect(profile.fields.get(path), path).toMatch(/^[*[\]]*v1/);
  });
  test("every default is of a known field, and every field that decisions read has a value", () => {
    for (const name of Object.keys(profile.defaults)) expect(profile.fieldNames.get("")).toContain(name);
    const left = Object.keys(kubeletConfiguration.out.shape).filter(
      (name) => !Object.hasOwn(profile.configuration, name),
    );
    // kind is not a setting, one default depends on the machine, and one field no longer has a default
    const unset = Number(profile.version.slice("1.".length)) < 37 ? [] : ["memoryThrottlingFactor"];
    expect(left).toEqual(["kind", ...unset, "singleProcessOOMKill"]);
  });
  test("the policy version contains the Kubernetes version", () => {
    expect(profile.release.startsWith(`${profile.version}.`)).toBe(true);
    expect(profile.policyVersion).toMatch(new RegExp(`^kubelet-${profile.version}\\+\\d+$`));
  });
  test("required gates are known, and gates on by default require none that is off", () => {
    expect(profile.gates.size).toBeGreaterThan(200);
    for (const { requires } of profile.gates.values())
      for (const name of requires) expect(profile.gates.has(name)).toBe(true);
    const isOn = (gate: string): boolean => isGateOn(profile, {}, gate);
    for (const [name, { requires }] of profile.gates)
      if (isOn(name)) expect([name, requires.every(isOn)]).toEqual([name, true]);
  });
});

test("PROFILES is sorted, has each version once, and NEWEST is its last", () => {
  const minors = PROFILES.map(({ version }) => Number(version.split(".")[1]));
  expect(minors).toEqual([...new Set(minors)].sort((a, b) => a - b));
  expect(NEWEST).toBe(PROFILES.at(-1));
});

test.each([
  ["v1.36.3", "1.36"],
  ["1.36", "1.36"],
  ["v1.36.0-alpha.1+abc", "1.36"],
  // no version, and a future one
  [undefined, NEWEST.version],
  ["", NEWEST.version],
  ["devel", NEWEST.version],
  ["v1.999.0", NEWEST.version],
  // older than every profile
  ["v1.9.1", PROFILES[0].version],
])("kubelet version %s uses the profile %s", (version, profile) => {
  expect(profileOf(version).version).toBe(profile);
});

test("every gate that decisions use exists in some version", () => {
  expect(GATES.filter((gate) => !PROFILES.some(({ gates }) => gates.has(gate)))).toEqual([]);
});

test("a removed gate counts as on if it was locked on, and else as off", () => {
  const { version, release, policyVersion, grpcGo, notes } = NEWEST;
  const removed = ["DynamicResourceAllocation", "HugepageAwareEviction"];
  const without = new Map([...NEWEST.gates].filter(([name]) => !removed.includes(name)));
  const own = { version, release, policyVersion, grpcGo, notes };
  const after = profileAfter(NEWEST, { ...own, gates: without });
  for (const profile of [after, profileAfter(after, { ...own, gates: without })])
    expect(removed.map((gate) => isGateOn(profile, {}, gate))).toEqual([true, false]);
  expect(removed.map((gate) => isGateOn(NEWEST, {}, gate))).toEqual([true, true]);
  expect(["SidecarContainers", "NeverHeardOf"].map((gate) => isGateOn(NEWEST, {}, gate))).toEqual([true, false]);
});

test("every policy version is documented in policy-versions.md", () => {
  const page = readFileSync(join(ROOT, "docs/reference/policy-versions.md"), "utf8");
  const missing = PROFILES.map(({ policyVersion }) => policyVersion).filter((one) => !page.includes(`\`${one}\``));
  expect(missing).toEqual([]);
});

test("every gate that decisions use is marked as a kubelet gate in each version that has it", () => {
  const unmarked = PROFILES.flatMap(({ version, gates }) =>
    GATES.filter((gate) => gates.get(gate)?.isKubeletGate === false).map((gate) => `${gate} of ${version}`),
  );
  expect(unmarked).toEqual([]);
  expect(NEWEST.gates.get("SchedulerAsyncAPICalls")?.isKubeletGate).toBe(false);
});

/** Lists of versions, which must begin with the oldest one. A list after `under` is about these versions only. */
const LISTS = new RegExp(
  `(?<!under )${PROFILES[0].version.replace(".", "\\.")}(?: to 1\\.\\d+|(?:(?:,| and| or|, and|, or) 1\\.\\d+)+)`,
  "g",
);
const FOLDERS = [
  "docs/guide",
  "actuator",
  "actuator/deploy",
  "api/deploy",
  "api/deploy/github",
  "api/deploy/kubernetes",
];
const FILES = ["README.md", "docs/reference/settings.md", ...FOLDERS.flatMap(filesIn)];
const textOf = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const listsIn = (file: string): readonly string[] => textOf(file).match(LISTS) ?? [];

test.each(FILES.filter((file) => listsIn(file).length > 0))("%s lists all supported versions", (file) => {
  for (const list of listsIn(file)) {
    const named = list.match(/1\.\d+/g) ?? [];
    expect(named, list).toEqual(list.includes(" to ") ? [VERSIONS[0], NEWEST.version] : VERSIONS);
  }
});
test("guides and the daemon's example settings name the versions, with the newest as default", () => {
  const guides = ["daemon", "decide", "upgrade"].map((name) => `docs/guide/${name}.md`);
  for (const file of ["README.md", "actuator/deploy/actuator.yaml", ...guides])
    expect(listsIn(file), file).not.toEqual([]);
  expect(textOf("actuator/deploy/actuator.yaml")).toContain(`\n#kubeletVersion: "${NEWEST.version}"\n`);
});
test.each([".ci/run", "docs/contributing.md"])("%s builds the newest Kubernetes version", (file) => {
  const line = `k8s.io/kubernetes@v${NEWEST.release} kubelet kube-apiserver test/e2e/dra/test-driver`;
  expect(textOf(file).includes(line), line).toBe(true);
});

describe("feature gates of 1.36", () => {
  const on = (featureGates: Record<string, boolean>, gate: (typeof GATES)[number]) =>
    gateOn(of({ featureGates }), gate);
  test("a gate that is not set follows AllAlpha or AllBeta by its stage, else its default", () => {
    expect(on({}, "MemoryQoS")).toBe(false);
    expect(on({ AllAlpha: true }, "MemoryQoS")).toBe(true);
    expect(on({ AllAlpha: true, MemoryQoS: false }, "MemoryQoS")).toBe(false);
    expect(on({ AllBeta: false }, "PodLevelResources")).toBe(false);
    // a gate that this version does not have is off, even if the configuration sets it
    expect(isGateOn(v1_34, { PodLevelResourceManagers: true }, "PodLevelResourceManagers")).toBe(false);
    expect(isGateOn(v1_36, { PodLevelResourceManagers: true }, "PodLevelResourceManagers")).toBe(true);
    // the gate is deprecated, so neither AllBeta nor AllAlpha applies
    expect(on({ AllBeta: false, AllAlpha: false }, "DisableCPUQuotaWithExclusiveCPUs")).toBe(true);
  });
});

describe("an effective kubelet configuration", () => {
  test("without any field is the defaults, and records that no field was given", () => {
    const { given: posted, profile, ...rest } = effectiveConfiguration(NEWEST);
    expect(rest).toEqual(NEWEST.configuration);
    expect([posted, profile]).toEqual([{}, NEWEST]);
    expect(rest).toMatchObject({
      maxPods: 110,
      podPidsLimit: -1,
      enforceNodeAllocatable: ["pods"],
      cgroupsPerQOS: true,
    });
  });
  test.each(PROFILES)("in $version has the default for zero values that Go cannot tell from absent ones", (profile) => {
    const effective = (fields: object) => effectiveConfiguration(profile, given(fields));
    // the results of the kubelet's SetDefaults_KubeletConfiguration, run as a library
    expect(effective({ maxPods: 0 }).maxPods).toBe(110);
    for (const podPidsLimit of [-1, -2, -100]) expect(effective({ podPidsLimit }).podPidsLimit).toBe(-1);
    expect(effective({ podPidsLimit: 0, maxPods: 1 })).toMatchObject({ podPidsLimit: 0, maxPods: 1 });
  });
  test("keeps given zeros, false and empty lists, but not empty strings", () => {
    const fields = { podsPerCore: 0, cgroupsPerQOS: false, enforceNodeAllocatable: [], cgroupDriver: "systemd" };
    expect(of(fields)).toMatchObject(fields);
    expect(of({ cpuManagerPolicy: "", cgroupDriver: "", topologyManagerScope: "" })).toMatchObject({
      cpuManagerPolicy: "none",
      cgroupDriver: "cgroupfs",
      topologyManagerScope: "container",
      given: { cpuManagerPolicy: "" },
    });
  });
  test("has the given hard thresholds instead of all defaults, unless they are merged", () => {
    const evictionHard = { "memory.available": "1Gi" };
    expect(of({ evictionHard }).evictionHard).toEqual(evictionHard);
    expect(of({ evictionHard: {} }).evictionHard).toEqual({});
    expect(of({ evictionHard, mergeDefaultEvictionSettings: true }).evictionHard).toEqual({
      ...NEWEST.defaults.evictionHard,
      ...evictionHard,
    });
  });
  test("is computed without changing the defaults or the posted fields", () => {
    const posted = given({ evictionHard: { "memory.available": "1Gi" }, mergeDefaultEvictionSettings: true });
    const before = JSON.stringify([NEWEST.configuration, posted]);
    effectiveConfiguration(NEWEST, posted);
    expect(JSON.stringify([NEWEST.configuration, posted])).toBe(before);
  });
  test("of a snapshot is computed once, with the kubelet's version, without changing the snapshot", () => {
    const snapshot = decoded({
      node: { metadata: { name: "n" }, status: { nodeInfo: { kubeletVersion: "v1.36.1" } } },
    });
    const made = effectiveSnapshot(snapshot);
    expect(made.kubeletConfiguration.profile).toBe(profileOf("1.36"));
    expect(effectiveSnapshot(made)).toBe(made);
    expect(snapshot.kubeletConfiguration).toBeUndefined();
  });
});

describe("an effective configuration document", () => {
  const document = (posted: unknown) => effectiveDocument(NEWEST, posted);
  test("has the defaults for nothing, for a file and for a /configz wrapper", () => {
    for (const none of [undefined, null, {}, { kubeletconfig: {} }]) expect(document(none)).toEqual(NEWEST.defaults);
    expect(document({ maxPods: 5, clusterDomain: "cluster.local" })).toEqual({
      ...NEWEST.defaults,
      maxPods: 5,
      clusterDomain: "cluster.local",
    });
    expect(document({ kubeletconfig: { seccompDefault: true } }).seccompDefault).toBe(true);
  });
  test("ignores nulls and values of a wrong type, and empty strings where Go has no pointer", () => {
    const odd = { seccompDefault: "yes", maxPods: null, podLogsDir: "", containerLogMaxFiles: "3" };
    expect(document(odd)).toEqual(NEWEST.defaults);
    expect(document({ resolvConf: "" }).resolvConf).toBe("");
  });
  test.each([
    [{}, true],
    [{ maxParallelImagePulls: 1 }, true],
    [{ maxParallelImagePulls: 2 }, false],
    [{ maxParallelImagePulls: 2, serializeImagePulls: true }, true],
    [{ serializeImagePulls: false }, false],
  ])("has serializeImagePulls derived for %j: %s", (posted, serial) => {
    expect(document(posted).serializeImagePulls).toBe(serial);
  });
});

test("defaults that are needed before the version is known are the same in all versions", () => {
  const names = ["runtimeRequestTimeout", "podLogsDir", "containerRuntimeEndpoint", "port", "healthzPort"] as const;
  for (const { defaults } of PROFILES) {
    for (const name of [...names, "volumeStatsAggPeriod", "cgroupDriver"] as const)
      expect(defaults[name], name).toEqual(NEWEST.defaults[name]);
  }
});
