import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LintFinding } from "../../../api/decide/lint/finding.ts";
import { readFlags } from "../../../api/decide/lint/flags.ts";
import { lintStart, withFlags } from "../../../api/decide/lint/start.ts";
import { PROFILES, profileOf } from "../../../api/profiles/index.ts";
import { RECORDED } from "../../kit/recorded.ts";
import { decoded } from "../../kit/snapshots.ts";

/** Answers of the kubelet's own flag set, recorded by test/data/lint/flags/main.go. */
interface Answers {
  /** By flag name: the paths of the fields that some values change, and the deprecation message. */
  readonly flags: Readonly<Record<string, readonly [fields: string, deprecated: string]>>;
  readonly answers: readonly {
    readonly args: readonly string[];
    /** Why the kubelet does not start. */
    readonly error?: string;
    /** The messages about deprecated flags. */
    readonly said?: readonly string[];
    /** The fields that differ from their default, by path. */
    readonly set?: Readonly<Record<string, unknown>>;
  }[];
}
const answersOf = (release: string): Answers =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../../data/lint/flags/kubelet-${release}.json`), "utf8"));
const RELEASES = RECORDED.map(({ release }) => release);
/**
 * Real kubelets whose `--help` output was recorded: one file contains the names of its flags, another its feature
 * gates.
 */
const PRINTED_HELP = ["1.36.3", "1.37.2"] as const;

/**
 * Arguments with other answers here: the format of label names is not checked, and `--version` prints the version for
 * any value.
 */
const OTHER_ANSWERS = [["--node-labels=a b=c"], ["--version=x"]].map((args) => JSON.stringify(args));
/** The kubelet's output format of values that were given in another form. */
const PRINTED: Readonly<Record<string, string>> = { "1h": "1h0m0s" };

function leaves(value: unknown, path: string, into: Record<string, unknown>): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0) {
    for (const [name, inner] of Object.entries(value)) leaves(inner, path === "" ? name : `${path}.${name}`, into);
  } else into[path] = typeof value === "string" ? (PRINTED[value] ?? value) : value;
}

describe.each(RELEASES)("the command line of kubelet %s", (release) => {
  const profile = profileOf(release);
  const { flags, answers } = answersOf(release);

  test("every flag is known, with its field and its deprecation text", () => {
    expect([...profile.commandLine.keys()].sort()).toEqual(Object.keys(flags).sort());
    for (const [name, { field, deprecated }] of profile.commandLine) {
      const [paths, text] = flags[name] ?? ["", ""];
      expect([name, deprecated ?? ""]).toEqual([name, text]);
      const isOfField = (path: string): boolean => path === field || path.startsWith(`${field}.`);
      expect([name, paths === "" ? field === null : paths.split(" ").every(isOfField)]).toEqual([name, true]);
    }
  });

  test.each(answers.map((answer) => [answer.args.join(" "), answer] as const))(
    "%s",
    (_, { args, error, said, set }) => {
      if (OTHER_ANSWERS.includes(JSON.stringify(args))) return;
      const read = readFlags(args, profile);
      expect(read.faults[0]?.message).toBe(error);
      const reported: Record<string, unknown> = {};
      leaves(withFlags({}, read), "", reported);
      for (const [path, value] of Object.entries(set ?? {})) expect([path, reported[path]]).toEqual([path, value]);
      if (error !== undefined) return;
      const found = lintStart({ configuration: {}, dropIns: null, flags: read }, undefined, profile);
      const deprecated = found.filter(({ code }) => code === "deprecated-flag").map(({ message }) => message);
      expect(deprecated.sort()).toEqual([...new Set(said)].sort());
    },
  );
});

test.each(PRINTED_HELP)("the known flags are those of --help of a real kubelet %s", (release) => {
  const help = readFileSync(join(import.meta.dirname, `../../data/lint/flags/help-${release}.txt`), "utf8");
  expect([...profileOf(release).commandLine.keys()].sort()).toEqual(help.trimEnd().split("\n").sort());
});

test.each(PRINTED_HELP)("the gates, their stages and defaults are those of --help of a real kubelet %s", (release) => {
  const printed = readFileSync(join(import.meta.dirname, `../../data/lint/flags/gates-${release}.txt`), "utf8");
  // the output lists no stable or deprecated gates, and lists AllAlpha and AllBeta in separate lines
  const own = [...profileOf(release).gates].filter(([, { stage }]) => stage === "alpha" || stage === "beta");
  const lines = own.map(([name, { stage, isOn }]) => `${name} ${stage.toUpperCase()} ${isOn}`);
  expect(lines.sort()).toEqual(printed.trimEnd().split("\n").sort());
});

test.each(PROFILES.map((profile) => [profile.version, profile] as const))(
  "kubelet %s starts with cloud provider `external` or none only",
  (_, profile) => {
    const faultsOf = (...args: string[]) => readFlags(args, profile).faults;
    for (const name of ["", "external"]) expect(faultsOf(`--cloud-provider=${name}`)).toEqual([]);
    expect(faultsOf("--cloud-provider", "External")).toMatchObject([{ code: "disabled-cloud-provider" }]);
    const message =
      'cloud provider "aws" was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external and migrate to an external cloud provider';
    expect(faultsOf("--cloud-provider=aws")).toMatchObject([
      { severity: "refuses-start", field: "--cloud-provider", message, kubelet: true },
    ]);
  },
);

test("a flag that a version removed is reported with the last version that had it", () => {
  const args = ["--pod-infra-container-image=x", "--containerd", "/run/x", "--max_pods=5", "--maxPods=5", "--nonsense"];
  const unknown = ["1.34", "1.35", "1.36", "1.37"].map((version) =>
    readFlags(args, profileOf(version)).faults.map(({ code, field, advice }) => `${code} ${field}: ${advice}`),
  );
  const misspelt = ["unknown-flag --maxPods: was `--max-pods` meant?"];
  const nonsense = (version: string) => `unknown-flag --nonsense: take it out: kubelet ${version} has no such flag`;
  const sandbox = "removed-flag --pod-infra-container-image: take it out: kubelet 1.34 was the last that had it";
  const cadvisor = "removed-flag --containerd: take it out: kubelet 1.36 was the last that had it";
  expect(unknown).toEqual([
    [...misspelt, nonsense("1.34")],
    [sandbox, ...misspelt, nonsense("1.35")],
    [sandbox, ...misspelt, nonsense("1.36")],
    [sandbox, cadvisor, ...misspelt, nonsense("1.37")],
  ]);
});

describe("command-line flags beside a configuration file", () => {
  const found = (
    args: readonly string[],
    configuration: unknown,
    version = "1.37",
    dropIns: readonly object[] | null = null,
  ) => {
    const profile = profileOf(version);
    const files = dropIns?.map((document, i) => ({ file: `${i}.conf`, document: { ...HEAD, ...document } })) ?? null;
    return lintStart({ configuration, dropIns: files, flags: readFlags(args, profile) }, undefined, profile);
  };
  const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  const reportOf = (findings: readonly LintFinding[]) => findings.map(({ code, field }) => `${code} ${field}`);
  const patchOf = (findings: readonly LintFinding[], name: string) => findings.find(({ field }) => field === name)?.fix;

  test("a flag that differs from the file and its drop-ins takes precedence over them", () => {
    const over = found(["--max-pods=50"], { maxPods: 110 });
    expect(over).toMatchObject([
      {
        code: "flag-before-file",
        severity: "warning",
        field: "--max-pods",
        message: "--max-pods sets maxPods: 50, and maxPods: 110 of the file does not count",
        fix: { maxPods: 50 },
      },
    ]);
    expect(reportOf(found(["--max-pods=50"], { maxPods: 50 }))).toEqual(["deprecated-flag --max-pods"]);
    expect(patchOf(found(["--max-pods=50"], { maxPods: 50 }), "--max-pods")).toBeNull();
    expect(patchOf(found(["--max-pods=50"], {}), "--max-pods")).toEqual({ maxPods: 50 });
    expect(reportOf(found(["--max-pods=50"], HEAD, "1.37", [{ maxPods: 60 }]))).toEqual([
      "flag-before-file --max-pods",
    ]);
    expect(reportOf(found(["--max-pods=60"], { ...HEAD, maxPods: 5 }, "1.37", [{ maxPods: 60 }]))).toEqual([
      "deprecated-flag --max-pods",
    ]);
  });

  test("--feature-gates are merged one by one, and have a fix only when the file can express it", () => {
    const gates = found(["--feature-gates=MemoryQoS=false,PodsAPI=false"], {
      featureGates: { MemoryQoS: true, PodsAPI: false },
    });
    expect(gates.map(({ message }) => message)).toEqual([
      '--feature-gates sets featureGates["MemoryQoS"]: false, and featureGates["MemoryQoS"]: true of the file does not count',
    ]);
    const other = found(["--feature-gates=MemoryQoS=false"], { featureGates: { PodsAPI: false } });
    expect(other).toMatchObject([{ code: "deprecated-flag", fix: { featureGates: { MemoryQoS: false } } }]);
    const zero = found(["--minimum-image-ttl-duration=0s"], {});
    expect(zero).toMatchObject([{ fix: null, advice: expect.stringContaining("the file cannot say so") }]);
  });

  test("a value set by a flag is linted like a field, but has no fix in the file", () => {
    const refused = found(["--max-pods=-5"], { maxPods: 110 });
    expect(refused[0]).toMatchObject({
      severity: "refuses-start",
      field: "maxPods",
      message: "invalid configuration: maxPods (--max-pods) -5 must not be a negative number",
      advice: expect.stringMatching(/; --max-pods sets it$/),
      fix: null,
    });
    expect(patchOf(refused, "--max-pods")).toBeNull();
    // faults of the file no longer count, unless the file cannot be read at all
    expect(reportOf(found(["--max-pods=5"], { maxPods: -5 }))).toEqual(["flag-before-file --max-pods"]);
    expect(reportOf(found(["--max-pods=5"], { maxPods: "many" }))).toContain("wrong-type maxPods");
  });

  test("a gate that the version lacks is refused before the file is loaded", () => {
    const gone = ["--feature-gates=SidecarContainers=true"];
    expect(found(gone, {}, "1.36").some(({ severity }) => severity === "refuses-start")).toBe(false);
    expect(found(gone, {})[0]).toMatchObject({
      field: 'featureGates["SidecarContainers"]',
      message:
        "failed to set feature gates from initial flags-based config: unrecognized feature gate: SidecarContainers",
    });
    const inFile = found(["--v=2"], { featureGates: { SidecarContainers: true } })[0];
    expect(inFile?.message).toMatch(/^failed to merge global and in-flight/);
    expect(inFile?.fix).toEqual({ featureGates: { SidecarContainers: null } });
  });

  test("thresholds of a flag replace those of the file and its merged defaults", () => {
    const file = { evictionHard: { "memory.available": "1Gi" }, mergeDefaultEvictionSettings: true };
    const codes = reportOf(found(["--eviction-hard=memory.available<2Gi"], file));
    expect(codes).toEqual(["flag-before-file --eviction-hard", "eviction-defaults-dropped evictionHard"]);
  });

  test("flags are linted against the node too, and a /configz wrapper stays", () => {
    const profile = profileOf("1.37");
    const flags = readFlags(["--fail-cgroupv1=false", "--fail-swap-on=false"], profile);
    const v1 = decoded({ cgroup: { version: 1 } });
    const lint = (configuration: unknown, given: typeof flags | null) =>
      lintStart({ configuration, dropIns: null, flags: given }, v1, profile).map(({ code }) => code);
    expect(lint({}, null)).toContain("cgroup-v1");
    expect(lint({}, flags)).not.toContain("cgroup-v1");
    expect(withFlags({ kubeletconfig: { maxPods: 5 } }, flags)).toEqual({
      kubeletconfig: { maxPods: 5, failCgroupV1: false, failSwapOn: false },
    });
    expect(lint([], flags)).toContain("no-configuration");
  });
});

test("a flag's place is that of the last argument that sets it", () => {
  const { places } = readFlags(["--max-pods", "5", "-v=2", "word", "--max_pods=6", "---x"], profileOf("1.37"));
  expect([...places]).toEqual([
    ["--max-pods", 4],
    ["--v", 2],
    ["--", 3],
    ["---x", 5],
  ]);
});
