import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { DropIn } from "../../api/decide/lint/drop-ins.ts";
import type { FlagsAndDropIns } from "../../api/decide/lint/start.ts";
import { chooseProfile, knownVersion, NEWEST, namedVersion, PROFILES } from "../../api/profiles/index.ts";
import { membersOf } from "../../api/service/own-configuration.ts";
import { configured, subjectOf, versionBefore } from "../../api/service/upgrade/asked.ts";
import { upgradeReport as formOfReport, type UpgradeReport } from "../../api/service/upgrade/report.ts";
import { caveats, headline, sectionsOf } from "../../api/service/upgrade/sections.ts";
import { upgradeReport } from "../../api/service/upgrade/upgrade-report.ts";
import { readCases } from "../conformance/run.ts";
import { KNOWN_VERSIONS, VERSIONS } from "../kit/profiles.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { RECORDED } from "../kit/recorded.ts";

const QOS = { MemoryQoS: true };
const RESERVED_CPU = "CPU of kubeReserved and systemReserved";

/** A report for a configuration alone, or for `posted` with that configuration instead of its own. */
function report(
  from: string,
  to: string,
  configuration?: unknown,
  posted?: object,
  { args = null, dropIns = null }: Partial<FlagsAndDropIns> = {},
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
  // every report matches the schema in the API's OpenAPI document
  formOfReport.parse(JSON.parse(JSON.stringify(made)));
  return made;
}
const real = realSnapshot() as Readonly<Record<string, unknown>>;
const namesOf = (all: readonly { readonly name: string }[]): readonly string[] => all.map(({ name }) => name);
const flipsOf = ({ gates }: UpgradeReport): readonly string[] =>
  namesOf(gates.filter(({ changes }) => changes === "value"));

describe("drop-ins of --config-dir in an upgrade report", () => {
  const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  const dropIn = (file: string, fields: object) => ({ file, document: { ...HEAD, ...fields } });
  const withDropIns = (from: string, to: string, configuration: object, ...dropIns: DropIn[]): UpgradeReport =>
    report(from, to, configuration, undefined, { dropIns });

  test("count for findings, gates and defaults, where the last file wins", () => {
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

  test("are merged over the defaults of each version, as by each kubelet", () => {
    const dropIns = [dropIn("a.conf", { evictionHard: { "memory.available": "1Gi" } })];
    // a configuration with only its own threshold would lose the default thresholds of the disk, which allocatable
    // shows
    const snapshot = { ...real, kubeletConfiguration: {} };
    const threshold = (beside: Partial<FlagsAndDropIns>, configuration: object) =>
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

  test("that the kubelet refuses are reported, and flags take precedence over them", () => {
    const headless: DropIn = { file: "a.conf", document: { maxPods: 5 } };
    expect(withDropIns("1.36", "1.37", {}, headless).starts).toMatchObject([{ code: "drop-in-refused", isNew: false }]);
    const on = dropIn("a.conf", { featureGates: { MemoryQoS: true } });
    const args = ["--feature-gates=MemoryQoS=false"];
    expect(flipsOf(report("1.36", "1.37", {}, undefined, { dropIns: [on], args }))).not.toContain("MemoryQoS");
  });
});

describe("the upgrade report of the captured node", () => {
  test("from 1.34 to 1.35 says it would not start: cgroup v1 and the default of failCgroupV1", () => {
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

  test("says it starts with 1.35 once the patch is applied", () => {
    const kubeletConfiguration = membersOf(real["kubeletConfiguration"]);
    const { outcome, assumed, decisions } = report(
      "1.34",
      "1.35",
      { ...kubeletConfiguration, failCgroupV1: false },
      real,
    );
    expect([outcome, assumed]).toEqual(["changes", []]);
    expect(decisions?.changed).toEqual([]);
    // /configz does not show whether the kubelet's file sets the field
    const kubeletconfig = { ...kubeletConfiguration, failCgroupV1: false };
    expect(report("1.34", "1.35", { kubeletconfig }, real)).toMatchObject({ assumed: ["failCgroupV1"] });
  });

  test("from 1.36 to 1.37 lists changed gates and keeps static pods, and from 1.36 to 1.36 is empty", () => {
    const next = report("1.36", "1.37", undefined, real);
    expect(next).toMatchObject({ outcome: "changes", direction: "upgrade", staticPods: [], node: "n1" });
    expect(flipsOf(next)).toContain("MemoryQoS");
    expect(next.defaults).toContainEqual({ field: "memoryThrottlingFactor", from: 0.9 });
    const own = report("v1.36.3", "1.36", undefined, real);
    expect(own).toMatchObject({ outcome: "same", direction: "none", gates: [], notes: [], steps: [] });
  });

  test("on cgroup v2 mentions writes of kernel defaults by 1.37 in one line, and not as a change", () => {
    const reported = report("1.36", "1.37", undefined, { ...real, cgroup: { version: 2, driver: "systemd" } });
    expect(reported.decisions?.changed).toEqual([]);
    const section = sectionsOf(reported).find(({ id }) => id === "decisions");
    expect(section?.more).toMatch(/^these would differ only in writing what the kernel has by itself: 1 of cgroups; /);
    expect(sectionsOf(reported).some(({ id }) => id === "changed")).toBe(false);
    expect(reported.steps.some(({ what }) => what.includes("otherwise"))).toBe(false);
  });

  test("decides every kind that its snapshot suffices for, and names the others with what they need", () => {
    const { kinds = [] } = report("1.36", "1.37", undefined, real).decisions ?? {};
    expect(kinds.find(({ kind }) => kind === "admission")).toMatchObject({ asked: 11, undecided: null });
    expect(kinds.find(({ kind }) => kind === "cgroups")).toMatchObject({ asked: 1 });
    expect(kinds.find(({ kind }) => kind === "container-gc")?.undecided).toContain("runtime.containers");
  });
});

/** The unknown fields in the kubelet's words; its strict decoding reports all of them in one line. */
const unknownIn = ({ decodeError = "" }: { readonly decodeError?: string } = {}): readonly string[] =>
  decodeError.startsWith("strict decoding error: ")
    ? [...decodeError.matchAll(/unknown field "[^"]+"/g)].map(([field]) => `strict decoding error: ${field}`)
    : [];
/**
 * Configurations that one of two kubelets refuses in strict decoding, with the messages of the older and the newer one.
 */
const strictCases = RECORDED.flatMap(({ version, release }) => {
  if (version === "1.36") return [];
  const path = join(import.meta.dirname, `../vectors/${release}/config-validation.jsonl.gz`);
  return (readCases(path) as readonly StrictCase[]).flatMap(({ name, in: configuration, out, "out_1.36.3": of36 }) => {
    const [own, other] = [out, of36 ?? out].map(unknownIn) as [readonly string[], readonly string[]];
    const isLater = Number(version.slice(2)) > 36;
    const [from, to, older, newer] = isLater ? ["1.36", version, other, own] : [version, "1.36", own, other];
    const alone = older.filter((field) => !newer.includes(field));
    return alone.length === 0 ? [] : [{ name, configuration, from, to, alone }];
  });
});
interface StrictCase {
  readonly name: string;
  readonly in: object;
  readonly out: { readonly decodeError?: string };
  readonly "out_1.36.3"?: { readonly decodeError?: string };
}

describe("a field unknown to the older of two kubelets", () => {
  const some = PROFILES.flatMap(({ version }) => strictCases.filter(({ from }) => from === version).slice(0, 8));
  const messages = (all: readonly { readonly code: string; readonly message: string }[]): readonly string[] =>
    all.flatMap(({ code, message }) => (code === "unknown-field" ? [message] : []));
  test("occurs in recorded answers of all versions", () => {
    expect(new Set(some.map(({ from }) => from))).toEqual(new Set(VERSIONS.slice(0, VERSIONS.indexOf("1.36") + 1)));
  });
  test.each(some)(
    "$name: $from reports it in its own words, and $to accepts it",
    ({ configuration, from, to, alone }) => {
      const there = report(from, to, configuration);
      expect(messages(there.startsNow).toSorted()).toEqual(alone.toSorted());
      expect(there.outcome).not.toBe("same");
      const back = report(to, from, configuration);
      expect(messages(back.starts.filter(({ isNew }) => isNew)).toSorted()).toEqual(alone.toSorted());
      expect(messages(back.startsNow)).toEqual([]);
    },
  );

  test("is a step with the patch that removes it, whatever its name, also in a drop-in", () => {
    const configuration = { memoryReservationPolicy: "None", tlsCurvePreferences: [29], defaultPodSysctls: {} };
    const { startsNow, steps } = report("1.34", "1.37", configuration);
    const fixes = Object.keys(configuration).map((field) => ({ [field]: null }));
    expect(startsNow.map(({ fix }) => fix)).toEqual(expect.arrayContaining(fixes));
    expect(steps.map(({ patch }) => patch)).toEqual(expect.arrayContaining(fixes));
    expect(steps.map(({ what }) => what)).toContain(
      "defaultPodSysctls: kubelet 1.34 leaves it out, and 1.37 goes by it: take it out, unless that is meant",
    );
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    const dropIns = [{ file: "10.conf", document: { ...head, memoryReservationPolicy: "None" } }];
    expect(report("1.35", "1.36", {}, undefined, { dropIns })).toMatchObject({
      outcome: "changes",
      startsNow: [{ message: "10.conf: a KubeletConfiguration of 1.35 has no field memoryReservationPolicy" }],
    });
    // neither version has the field
    expect(report("1.36", "1.36", { maxPod: 5 })).toMatchObject({ outcome: "same", starts: [], startsNow: [] });
  });
});

describe("an unknown current kubelet version", () => {
  const nodeOf = (kubeletVersion: string) => {
    const { node } = real as { readonly node: { readonly status: object } };
    return { ...real, node: { ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } } };
  };
  const ofNode = (kubeletVersion: string, to: string): UpgradeReport => {
    const subject = subjectOf(nodeOf(kubeletVersion), undefined);
    if (!subject.ok) throw new Error(JSON.stringify(subject.error));
    const from = versionBefore(null, subject.value.snapshot);
    if (!from.ok) throw new Error(from.error.message);
    return upgradeReport({ ...subject.value, args: null, dropIns: null, from: from.value, to: chooseProfile(to) });
  };

  test.each([
    ["v1.33.13", "1.37", "1.34", "upgrade"],
    ["v1.33.13-eks-1", "1.34", "1.34", "upgrade"],
    ["v1.99.0", "1.37", NEWEST.version, "downgrade"],
    ["v1.99.0", "1.36", NEWEST.version, "downgrade"],
  ])("in %s -> %s is answered by %s, and says so", (own, to, version, direction) => {
    const reported = ofNode(own, to);
    const why = `kubelet ${own.slice(1, 5)} is not known here: ${version} is the nearest that is`;
    expect(reported).toMatchObject({
      node: "n1",
      from: { version, exact: false, why },
      to: { version: to, exact: true },
    });
    expect(reported.direction).toBe(direction);
    // the version differs, but its changes are not known
    expect(reported.outcome).not.toBe("same");
    expect(headline(reported)).toContain(`kubelet ${version} (the nearest known) -> ${to}`);
    expect(caveats(reported)).toContain(`${why}; what changed between the two is not listed`);
    const near = report(version, to, undefined, nodeOf(own));
    expect({ ...reported, from: near.from, direction: near.direction, outcome: near.outcome }).toEqual(near);
  });

  test("is refused when it is no version, or the target version", () => {
    expect(namedVersion("from", "1.33")).toMatchObject({ ok: true, value: { asked: "1.33", note: { exact: false } } });
    expect(namedVersion("from", "newest")).toMatchObject({ ok: false, error: { path: "from" } });
    const message = `kubelet 1.40 is not known here: the versions are ${KNOWN_VERSIONS}`;
    expect(knownVersion("to", "1.40")).toEqual({ ok: false, error: { path: "to", message } });
    expect(versionBefore(null, undefined)).toMatchObject({ ok: false, error: { path: "from" } });
  });
});

describe("the upgrade report of a configuration", () => {
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
  ])("from %s says it does not start with %s: %j", (from, to, configuration, gate, message) => {
    const { outcome, starts, gates } = report(from, to, configuration);
    expect(outcome).toBe("refuses-start");
    expect(starts[0]).toMatchObject({ kubelet: true, isNew: true, message: expect.stringMatching(message) });
    expect(gates.find(({ name }) => name === gate)).toMatchObject({ named: expect.any(Boolean), keep: null });
  });

  test("with which neither version starts says so", () => {
    expect(report("1.35", "1.36", { maxPods: -1 })).toMatchObject({
      outcome: "refuses-start",
      starts: [{ field: "maxPods", isNew: false }],
    });
  });

  test("with which only the current kubelet does not start says so in its words, with what to do", () => {
    const reported = report("1.35", "1.37", { featureGates: { PodsAPI: true } });
    const message = expect.stringContaining("unrecognized feature gate: PodsAPI");
    expect(reported).toMatchObject({
      outcome: "changes",
      starts: [],
      startsNow: [{ severity: "refuses-start", message }],
    });
    expect(reported.startsNow[0]).toMatchObject({ fix: { featureGates: { PodsAPI: null } }, kubelet: true });
    expect(reported.startsNow[0]?.advice).toBe(
      `kubelet 1.35 does not start so, and 1.37 does; until then: take it out: this version has no such gate; there is one in ${VERSIONS.slice(VERSIONS.indexOf("1.36")).join(", ")}`,
    );
  });

  test("lists no change of a gate that it sets, and AllBeta follows the gate's stage", () => {
    expect(flipsOf(report("1.36", "1.37", { featureGates: { MemoryQoS: false } }))).not.toContain("MemoryQoS");
    const all = report("1.36", "1.37", { featureGates: { AllBeta: false } });
    expect(flipsOf(all)).not.toContain("MemoryQoS");
  });

  test("gives a patch for each changed gate with which the kubelet starts", () => {
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
    ["1.36", "1.37", { eventRecordQPS: 0 }, "eventRecordQPS", true],
    ["1.36", "1.37", {}, "eventRecordQPS", false],
    ["1.36", "1.37", { systemReserved: { cpu: 0.0004 } }, RESERVED_CPU, true],
    ["1.37", "1.36", { kubeReserved: { cpu: "100.5m" } }, RESERVED_CPU, true],
    ["1.36", "1.37", { kubeReserved: { cpu: "100m" }, systemReserved: { cpu: 2 } }, RESERVED_CPU, false],
    ["1.36", "1.37", { kubeReserved: { cpu: "100.5m" }, reservedSystemCPUs: "0" }, RESERVED_CPU, false],
    ["1.34", "1.35", {}, "the flag of the sandbox image", true],
    ["1.35", "1.34", {}, "the flag of the sandbox image", false],
    ["1.35", "1.34", {}, "/var/lib/kubelet/image_manager/pulled", true],
    ["1.37", "1.36", {}, "/var/lib/kubelet/cpu_manager_state", true],
    ["1.35", "1.36", { featureGates: QOS }, "memory.min", true],
    ["1.35", "1.36", { featureGates: QOS, memoryReservationPolicy: "TieredReservation" }, "memory.min", false],
    ["1.35", "1.37", {}, "memory.min", false],
  ])("%s -> %s with %j notes %s: %j", (from, to, configuration, name, isReported) => {
    expect(namesOf(report(from, to, configuration).notes).includes(name)).toBe(isReported);
  });

  test.each<[string, string, number, number]>([
    ["1.34", "1.35", 40, 1],
    ["1.34", "1.35", 31, 0],
    // 1.35 starts to refuse the value, and a later version accepts it again
    ["1.34", "1.37", 40, 0],
    ["1.37", "1.36", 40, 1],
    // both versions refuse the value
    ["1.35", "1.36", 40, 0],
  ])("%s -> %s with %d parallel image pulls has one step, or none: %d", (from, to, maxParallelImagePulls, count) => {
    const { steps } = report(from, to, { maxParallelImagePulls });
    expect(steps.filter(({ what }) => what.startsWith("maxParallelImagePulls: ")).length).toBe(count);
  });

  test("counts huge pages when the node's capacity is known, and says so when it is not", () => {
    const { node, ...rest } = real as { readonly node: { readonly status: { readonly capacity: object } } };
    const reportOf = (capacity: object | undefined, from = "1.36", to = "1.37"): readonly string[] => {
      const snapshot = { ...rest, node: { ...node, status: { ...node.status, capacity } } };
      const { notes } = report(from, to, {}, snapshot);
      return notes.flatMap(({ name, what }) => (name === "memory.available" ? [what] : []));
    };
    const { capacity } = node.status;
    expect(reportOf({ ...capacity, "hugepages-2Mi": "1Gi" })).toEqual([expect.not.stringContaining("not known")]);
    expect(reportOf({ ...capacity, "hugepages-2Mi": "0" })).toEqual([]);
    expect(reportOf(undefined)).toEqual([
      expect.stringContaining(
        "are taken off it, so that evictions and MemoryPressure begin sooner; how many the node has is not known here",
      ),
    ]);
    expect(reportOf(undefined, "1.37", "1.36")).toEqual([
      expect.stringContaining("begin later; how many the node has is not known"),
    ]);
    // without a node, its number is not known either
    expect(namesOf(report("1.36", "1.37", {}).notes)).toContain("memory.available");
    expect(namesOf(report("1.36", "1.37", { featureGates: { HugepageAwareEviction: false } }).notes)).not.toContain(
      "memory.available",
    );
  });

  test("without a configuration is about the defaults, and says so", () => {
    expect(report("1.36", "1.37")).toMatchObject({ configured: false, decisions: null, node: null });
    expect(report("1.36", "1.37", {}).configured).toBe(true);
  });
});

test("a pod with its own uid in its manifest keeps that uid after an upgrade", () => {
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

test("an upgrade report can be made between any two versions, and the way back flips the same gates", () => {
  for (const from of VERSIONS) {
    for (const to of VERSIONS) {
      const [there, back] = [flipsOf(report(from, to, {}, real)), flipsOf(report(to, from, {}, real))];
      expect([from, to, [...there].sort()]).toEqual([from, to, [...back].sort()]);
    }
  }
});
