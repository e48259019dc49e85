import { describe, expect, test } from "vitest";
import type { DropIn } from "../../api/decide/lint/drop-ins.ts";
import { chooseProfile, PROFILES } from "../../api/profiles/index.ts";
import { KUBELET_GATES } from "../../api/profiles/kubelet-gates.ts";
import { configured, subjectOf } from "../../api/service/upgrade/asked.ts";
import { membersOf } from "../../api/service/upgrade/configuration.ts";
import { upgradeReport as formOfReport, type UpgradeReport } from "../../api/service/upgrade/report.ts";
import { type BesideFile, upgradeReport } from "../../api/service/upgrade/upgrade-report.ts";
import { realSnapshot } from "../decide/real-node.ts";

const VERSIONS = PROFILES.map(({ version }) => version);

/** A configuration alone, or `posted` with it in the place of its own. */
function report(
  from: string,
  to: string,
  configuration?: unknown,
  posted?: object,
  { args = null, dropIns = null }: Partial<BesideFile> = {},
): UpgradeReport {
  const versions = { from: chooseProfile(from), to: chooseProfile(to) };
  const subject = posted === undefined ? undefined : subjectOf(posted as Record<string, unknown>, configuration);
  if (subject?.ok === false) throw new Error(JSON.stringify(subject.error));
  const made = upgradeReport({
    ...(subject?.value ?? { ...configured(configuration, undefined), snapshot: undefined }),
    args,
    dropIns,
    ...versions,
  });
  // every report has the form that the API's document tells
  formOfReport.parse(JSON.parse(JSON.stringify(made)));
  return made;
}
const real = realSnapshot() as Readonly<Record<string, unknown>>;
const namesOf = (all: readonly { readonly name: string }[]): readonly string[] => all.map(({ name }) => name);
const flipsOf = ({ gates }: UpgradeReport): readonly string[] =>
  namesOf(gates.filter(({ changes }) => changes === "value"));

describe("drop-ins of a --config-dir", () => {
  const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  const dropIn = (file: string, fields: object) => ({ file, document: { ...HEAD, ...fields } });
  const withDropIns = (from: string, to: string, configuration: object, ...dropIns: DropIn[]): UpgradeReport =>
    report(from, to, configuration, undefined, { dropIns });

  test("count for findings, gates and defaults, the last that names a field", () => {
    const gates = (isOn: boolean) => ({ featureGates: { MemoryQoS: isOn } });
    expect(flipsOf(report("1.36", "1.37", {}))).toContain("MemoryQoS");
    const kept = withDropIns("1.36", "1.37", {}, dropIn("10.conf", gates(true)), dropIn("20.conf", gates(false)));
    expect(flipsOf(kept)).not.toContain("MemoryQoS");
    const gone = withDropIns("1.36", "1.37", {}, dropIn("10.conf", { featureGates: { SidecarContainers: true } }));
    expect(gone).toMatchObject({
      outcome: "refuses-start",
      starts: [{ message: expect.stringContaining("SidecarContainers") }],
    });
    const fields = ({ defaults }: UpgradeReport) => defaults.map(({ field }) => field);
    expect(fields(report("1.34", "1.35", {}))).toContain("failCgroupV1");
    expect(fields(withDropIns("1.34", "1.35", {}, dropIn("a.conf", { failCgroupV1: true })))).not.toContain(
      "failCgroupV1",
    );
  });

  test("are merged over the defaults of each version, as each kubelet does it", () => {
    const dropIns = [dropIn("a.conf", { evictionHard: { "memory.available": "1Gi" } })];
    // with no more than its own threshold the disk's defaults would be gone, which allocatable tells
    const snapshot = { ...real, kubeletConfiguration: {} };
    const threshold = (beside: Partial<BesideFile>, configuration: object) =>
      report("1.36", "1.37", configuration, snapshot, beside).decisions;
    expect(threshold({ dropIns }, {})).toEqual(
      threshold(
        {},
        {
          evictionHard: {
            "memory.available": "1Gi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "15%",
            "imagefs.inodesFree": "5%",
          },
        },
      ),
    );
    const { defaults } = report("1.36", "1.37", {}, undefined, { dropIns });
    expect(defaults).toEqual(report("1.36", "1.37", {}).defaults);
  });

  test("that the kubelet refuses, and flags that count before them", () => {
    const headless: DropIn = { file: "a.conf", document: { maxPods: 5 } };
    expect(withDropIns("1.36", "1.37", {}, headless).starts).toMatchObject([{ code: "drop-in-refused", isNew: false }]);
    const on = dropIn("a.conf", { featureGates: { MemoryQoS: true } });
    const args = ["--feature-gates=MemoryQoS=false"];
    expect(flipsOf(report("1.36", "1.37", {}, undefined, { dropIns: [on], args }))).not.toContain("MemoryQoS");
  });
});

describe("the captured node", () => {
  test("of 1.34 would not start with 1.35: it has cgroup v1, and the default of failCgroupV1 is another", () => {
    const { outcome, starts, assumed, staticPods, decisions, steps } = report("1.34", "1.35", undefined, real);
    expect(outcome).toBe("refuses-start");
    expect(assumed).toEqual(["failCgroupV1"]);
    expect(starts).toMatchObject([
      {
        field: "failCgroupV1",
        kubelet: true,
        isNew: true,
        fix: { failCgroupV1: false },
        message: expect.stringContaining("kubelet is configured to not run on a host using cgroup v1"),
      },
    ]);
    expect(steps[0]).toMatchObject({ patch: { failCgroupV1: false } });
    expect(staticPods).toEqual(["kube-system/static1-n1"]);
    expect(steps.some(({ what }) => what.includes("static pods"))).toBe(true);
    expect(decisions?.changed).toMatchObject([{ kind: "allocatable", from: "decided", to: "kubelet-refuses" }]);
  });

  test("starts with 1.35 once the patch is in, since its file says so then", () => {
    const kubeletConfiguration = membersOf(real["kubeletConfiguration"]);
    const { outcome, assumed, decisions } = report(
      "1.34",
      "1.35",
      { ...kubeletConfiguration, failCgroupV1: false },
      real,
    );
    expect([outcome, assumed]).toEqual(["changes", []]);
    expect(decisions?.changed).toEqual([]);
    // what the kubelet tells cannot say whether its file does
    const kubeletconfig = { ...kubeletConfiguration, failCgroupV1: false };
    expect(report("1.34", "1.35", { kubeletconfig }, real)).toMatchObject({ assumed: ["failCgroupV1"] });
  });

  test("has other gates with 1.36 and 1.37, its static pods go on, and 1.36 is what it is", () => {
    const next = report("1.36", "1.37", undefined, real);
    expect(next).toMatchObject({ outcome: "changes", direction: "upgrade", staticPods: [], node: "n1" });
    expect(flipsOf(next)).toContain("MemoryQoS");
    expect(next.defaults).toContainEqual({ field: "memoryThrottlingFactor", from: 0.9 });
    const own = report("v1.36.3", "1.36", undefined, real);
    expect(own).toMatchObject({ outcome: "same", direction: "none", gates: [], notes: [], steps: [] });
  });

  test("every kind that its snapshot is enough for is decided, the others are named with what they need", () => {
    const { kinds = [] } = report("1.36", "1.37", undefined, real).decisions ?? {};
    expect(kinds.find(({ kind }) => kind === "admission")).toMatchObject({ asked: 11, undecided: null });
    expect(kinds.find(({ kind }) => kind === "cgroups")).toMatchObject({ asked: 1 });
    expect(kinds.find(({ kind }) => kind === "container-gc")?.undecided).toContain("runtime.containers");
  });
});

describe("a configuration", () => {
  test.each<[string, string, object, string, RegExp]>([
    [
      "1.34",
      "1.35",
      { featureGates: { SizeMemoryBackedVolumes: true } },
      "SizeMemoryBackedVolumes",
      /unrecognized feature gate/,
    ],
    [
      "1.35",
      "1.36",
      { featureGates: { KubeletPSI: false } },
      "KubeletPSI",
      /cannot set feature gate KubeletPSI to false/,
    ],
    [
      "1.36",
      "1.37",
      { featureGates: { PreventStaticPodAPIReferences: true } },
      "PreventStaticPodAPIReferences",
      /unrecognized/,
    ],
    ["1.36", "1.35", { featureGates: { PodsAPI: false } }, "PodsAPI", /unrecognized feature gate: PodsAPI/],
  ])("of %s does not start with %s: %j", (from, to, configuration, gate, message) => {
    const { outcome, starts, gates } = report(from, to, configuration);
    expect(outcome).toBe("refuses-start");
    expect(starts[0]).toMatchObject({ kubelet: true, isNew: true, message: expect.stringMatching(message) });
    expect(gates.find(({ name }) => name === gate)).toMatchObject({ named: expect.any(Boolean), keep: null });
  });

  test("that neither version starts with is told as such", () => {
    expect(report("1.35", "1.36", { maxPods: -1 })).toMatchObject({
      outcome: "refuses-start",
      starts: [{ field: "maxPods", isNew: false }],
    });
  });

  test("a gate that it sets does not flip, and one that AllBeta sets follows its stage", () => {
    expect(flipsOf(report("1.36", "1.37", { featureGates: { MemoryQoS: false } }))).not.toContain("MemoryQoS");
    const all = report("1.36", "1.37", { featureGates: { AllBeta: false } });
    expect(flipsOf(all)).not.toContain("MemoryQoS");
  });

  test("what keeps a gate as it is starts", () => {
    for (const [from, to] of [
      ["1.34", "1.35"],
      ["1.35", "1.36"],
      ["1.36", "1.37"],
    ] as const) {
      const { gates } = report(from, to, {});
      for (const { keep, name } of gates.filter(({ keep }) => keep !== null))
        expect([name, report(to, to, keep).outcome]).toEqual([name, "same"]);
    }
  });

  test.each<[string, string, object, string, boolean]>([
    ["1.34", "1.35", { maxParallelImagePulls: 40 }, "maxParallelImagePulls", true],
    ["1.34", "1.35", { maxParallelImagePulls: 31 }, "maxParallelImagePulls", false],
    // mended on the way
    ["1.34", "1.37", { maxParallelImagePulls: 40 }, "maxParallelImagePulls", false],
    ["1.37", "1.36", { maxParallelImagePulls: 40 }, "maxParallelImagePulls", true],
    ["1.36", "1.37", { eventRecordQPS: 0 }, "eventRecordQPS", true],
    ["1.36", "1.37", {}, "eventRecordQPS", false],
    ["1.34", "1.35", {}, "the flag of the sandbox image", true],
    ["1.35", "1.34", {}, "the flag of the sandbox image", false],
    ["1.35", "1.34", {}, "/var/lib/kubelet/image_manager/pulled", true],
    ["1.37", "1.36", {}, "/var/lib/kubelet/cpu_manager_state", true],
  ])("%s -> %s with %j tells of %s: %j", (from, to, configuration, name, isTold) => {
    expect(namesOf(report(from, to, configuration).notes).includes(name)).toBe(isTold);
  });

  test("no configuration at all is answered for the defaults, and says so", () => {
    expect(report("1.36", "1.37")).toMatchObject({ configured: false, decisions: null, node: null });
    expect(report("1.36", "1.37", {}).configured).toBe(true);
  });
});

test("a pod with a uid of its own in its manifest keeps it", () => {
  const pods = [
    { hash: "0123456789abcdef0123456789abcdef", name: "hashed" },
    { hash: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", name: "own" },
  ].map(({ hash, name }) => ({
    metadata: {
      name,
      namespace: "kube-system",
      uid: hash,
      annotations: { "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": hash },
    },
    spec: { containers: [{ name: "c" }] },
  }));
  expect(report("1.34", "1.35", {}, { ...real, pods }).staticPods).toEqual(["kube-system/hashed"]);
});

test("whatever goes to whatever, a report is made, and on the way back the same gates flip", () => {
  for (const from of VERSIONS) {
    for (const to of VERSIONS) {
      const [there, back] = [flipsOf(report(from, to, {}, real)), flipsOf(report(to, from, {}, real))];
      expect([from, to, [...there].sort()]).toEqual([from, to, [...back].sort()]);
    }
  }
});

test("a kubelet's gate is one of some version's gates", () => {
  const known = new Set(PROFILES.flatMap(({ gates }) => [...gates.keys()]));
  expect([...KUBELET_GATES].filter((name) => !known.has(name))).toEqual([]);
});
