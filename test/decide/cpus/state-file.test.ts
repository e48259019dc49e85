import { describe, expect, test } from "vitest";
import { hashedV1, sharedCpus, writeCpuState } from "../../../api/decide/cpus/checkpoint.ts";
import { cpuPolicy } from "../../../api/decide/cpus/policy.ts";
import { cpuText } from "../../../api/decide/cpus/sets.ts";
import { freshState, type StartInput, startState } from "../../../api/decide/cpus/start.ts";
import { fnv1a } from "../../../api/decide/go/fnv1a.ts";
import { fromNanos } from "../../../api/model/amount.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { ALL_OPTIONS } from "../../kit/profiles.ts";
import { capturedText } from "../../kit/real-node.ts";
import { evenMachine, linesOf, nonePolicyOf, policyOn } from "./kit.ts";

/** The messages below are those of kubelet 1.36; test/decide/state-files.test.ts covers the other versions. */
const AS_1_36 = { profile: v1_36, podLevel: false };

/** Four cores of two threads, CPUs 0 and 4 reserved. */
const topology = evenMachine({ cores: 4 });
const policy = policyOn(topology, [], { numReserved: 2 });
const strict = policyOn(topology, ["strict-cpu-reservation"], { numReserved: 2 });
const none = nonePolicyOf();
const containers = new Map([
  ["id1", { uid: "uid-1", container: "c0" }],
  ["id2", { uid: "uid-1", container: "c1" }],
]);

/** The kubelet's message, or the pool and each container's CPUs. */
function startOf(file: string | undefined, more: Partial<StartInput> = {}): string | Readonly<Record<string, string>> {
  const state = startState({ ...AS_1_36, policy, file, containers, ...more });
  if (!state.ok) return state.error;
  const held = [...state.value.assignments].flatMap(([uid, list]) =>
    Array.from(list, ([name, set]) => [`${uid}/${name}`, cpuText(set)] as const),
  );
  return { pool: cpuText(state.value.defaultCpus), ...Object.fromEntries(held) };
}
const unread = (what: string, directory = "/var/lib/kubelet"): string =>
  `could not restore state from checkpoint: ${what}, please drain this node and delete the CPU manager checkpoint file "${directory}/cpu_manager_state" before restarting Kubelet`;
const fileOf = (defaultCpuSet: string, entries: object = {}, more: object = {}): string =>
  JSON.stringify({ policyName: "static", defaultCpuSet, entries, ...more });

describe("the written cpu_manager_state", () => {
  test("is read back unchanged, with its checksum", () => {
    const file =
      '{"policyName":"static","defaultCpuSet":"0-4","entries":{"a<b":{"z":"5"},"b":{"x":"6","y":"7"}},"checksum":1}';
    const state = startState({ ...AS_1_36, policy, file: file.replace(/,"checksum":1/, "") });
    if (!state.ok) throw new Error(state.error);
    const written = writeCpuState("static", state.value, AS_1_36);
    expect(written.replace(/"checksum":\d+/, '"checksum":1')).toBe(file.replace("<", "\\u003c"));
    expect(startOf(written)).toEqual({ pool: "0-4", "a<b/z": "5", "b/x": "6", "b/y": "7" });
  });
  test("matches the file of a real node byte for byte", () => {
    const real = capturedText("cpu_manager_state");
    const node = policyOn(evenMachine({ cores: 2, threads: 1 }));
    const state = startState({ ...AS_1_36, policy: node, file: real });
    expect(state.ok && writeCpuState("static", state.value, AS_1_36)).toBe(real);
  });
  test("matches the file that every kubelet with policy none writes", () => {
    expect(writeCpuState("none", freshState(none), AS_1_36)).toBe(
      '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
    );
  });
});

describe("a missing or empty cpu_manager_state", () => {
  test("without the file all CPUs are shared, except strictly reserved ones", () => {
    expect(startOf(undefined)).toEqual({ pool: "0-7" });
    expect(startOf(undefined, { policy: strict })).toEqual({ pool: "1-3,5-7" });
    expect(startOf(undefined, { policy: none })).toEqual({ pool: "" });
  });
  test("an empty default set without containers is initialised again", () => {
    expect(startOf(fileOf(""))).toEqual({ pool: "0-7" });
    expect(startOf(fileOf("", { u: { c: "1" } }))).toBe("default cpuset cannot be empty");
  });
  test("an empty or truncated file is refused", () => {
    const whole = writeCpuState("static", freshState(policy), AS_1_36);
    for (const text of ["", " \n", whole.slice(0, -1), whole.slice(0, 20)]) {
      expect(startOf(text)).toBe(unread("unexpected end of JSON input"));
    }
    expect(startOf("", { rootDir: "/data/kubelet/" })).toBe(unread("unexpected end of JSON input", "/data/kubelet"));
  });
});

describe("versions and checksums of cpu_manager_state", () => {
  const entries = { u: { c: "6", b: "7" } };
  const read = { pool: "0-5", "u/b": "7", "u/c": "6" };

  test("version 2 is accepted with the checksum of a kubelet before 1.36 and of its own type name", () => {
    expect(startOf(fileOf("0-5", entries, { checksum: 913283141 }))).toEqual(read);
    expect(startOf(fileOf("0-5", entries, { checksum: 1329628417 }))).toEqual(read);
    expect(startOf(fileOf("0-5", entries, { checksum: 1329628417 }), { podLevel: true })).toBe(
      unread("json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string"),
    );
  });
  test("a wrong checksum is reported with the error of parsing the file as version 1", () => {
    expect(startOf(fileOf("0-5", entries, { checksum: 5 }))).toBe(
      unread("json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string"),
    );
    expect(startOf(fileOf("0-7", {}, { checksum: 5 }))).toBe(unread("checkpoint is corrupted"));
  });
  test("a file without a checksum is accepted", () => {
    expect(startOf(fileOf("0-5", entries))).toEqual(read);
    expect(startOf(fileOf("0-5", entries, { checksum: 0 }))).toEqual(read);
  });
  test("version 1 identifies containers by their container ids", () => {
    const ids = new Map([
      ["id1", "6"],
      ["id2", "7"],
    ]);
    const checksum = fnv1a(hashedV1({ policyName: "static", defaultCpuSet: "0-5", entries: ids }));
    const file = fileOf("0-5", Object.fromEntries(ids), { checksum });
    expect(checksum).toBe(4146890701);
    expect(startOf(file)).toEqual({ pool: "0-5", "uid-1/c0": "6", "uid-1/c1": "7" });
    expect(startOf(file, { containers: new Map() })).toBe(
      unread("failed to migrate checkpoint from v1 to v2: containerID 'id1' not found in initial containers list"),
    );
  });
  test("version 3 is read only with its gate, and its pod CPUs are taken from the pool", () => {
    const file = fileOf("0-5", {}, { podEntries: { u: { cpuSet: "6,7" } }, checksum: 1877743232 });
    expect(startOf(file, { podLevel: true })).toEqual({ pool: "0-5" });
    expect(startOf(file)).toBe(unread("checkpoint is corrupted"));
  });
});

describe("a cpu_manager_state that does not fit the node is refused", () => {
  test.each([
    [
      "of another policy",
      '{"policyName":"none"}',
      unread('configured policy "static" differs from state checkpoint policy "none"'),
    ],
    [
      "with a pool without all reserved CPUs",
      fileOf("1-7", { u: { c: "0" } }),
      'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-7"',
    ],
    [
      "with a container's CPUs in the pool",
      fileOf("0-6", { u: { c: "6-7" } }),
      'pod: u, container: c cpuset: "6-7" overlaps with default cpuset "0-6"',
    ],
    [
      "with a CPU that the machine lacks",
      fileOf("0-7", { u: { c: "8" } }),
      'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
    ],
    [
      "without a CPU that the machine has",
      fileOf("0-5", { u: { c: "6" } }),
      'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"',
    ],
    [
      "with a list that is none",
      fileOf("0-7", { u: { c: "7-6" } }),
      unread('could not parse cpuset "7-6" for container "c" in pod "u": invalid range "7-6" (7 > 6)'),
    ],
  ])("%s", (_, file, message) => {
    expect(startOf(file)).toBe(message);
  });
  test("with a strictly reserved CPU in the default set", () => {
    expect(startOf(fileOf("0-7"), { policy: strict })).toBe(
      'some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"',
    );
    expect(startOf(fileOf("1-3,5-7"), { policy: strict })).toEqual({ pool: "1-3,5-7" });
  });
  test("with CPU lists larger than any machine", () => {
    expect(startOf(fileOf("0-4000000000"))).toBe(
      unread('could not parse default cpu set "0-4000000000": CPU 4000000000 is above 65535'),
    );
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`c${i}`, "0-65535"]));
    expect(startOf(fileOf("0-7", { u: many }))).toMatch(/the file lists more than 4194304 CPUs/);
  });
});

test("a file that gives two pods the same CPU is accepted, and the shared CPU is reported", () => {
  const state = startState({ ...AS_1_36, policy, file: fileOf("0-4", { u: { a: "5-6", b: "6" }, v: { c: "6-7" } }) });
  if (!state.ok) throw new Error(state.error);
  expect(sharedCpus(state.value.assignments)).toEqual([
    {
      cpus: new Set([6]),
      holders: [
        { uid: "u", container: "a" },
        { uid: "v", container: "c" },
      ],
    },
  ]);
});

/** Starts of the CPU manager of k8s.io/kubernetes v1.36.3, run as a library, on four cores of two threads. */
interface KubeletStart {
  readonly policy: string;
  readonly options: Readonly<Record<string, string>>;
  readonly reserved: string;
  readonly podLevelManagers: boolean;
  readonly text: string | null;
  readonly error?: string;
  /** The file's text after the start. */
  readonly file?: string;
}
describe("the kubelet's own errors on cpu_manager_state", () => {
  const starts = linesOf<KubeletStart>("state-files.jsonl.gz");
  const answered = (start: KubeletStart): Pick<KubeletStart, "error" | "file"> => {
    const made = cpuPolicy({
      ...start,
      topology,
      gates: ALL_OPTIONS,
      topologyPolicy: "none",
      reservedCpu: fromNanos(1_500_000_000n),
      reservedSystemCpus: "",
    });
    if (!made.ok) return { error: made.error };
    const form = { ...AS_1_36, podLevel: start.podLevelManagers };
    const state = startState({ ...form, policy: made.value, file: start.text ?? undefined, containers });
    return state.ok ? { file: writeCpuState(start.policy, state.value, form) } : { error: state.error };
  };
  test(`are the same for ${starts.length} recorded files`, () => {
    expect(starts.length).toBeGreaterThan(200);
    // a case where three CPUs are reserved for a kubelet that must reserve two cannot be posted, since
    // reservedSystemCPUs sets the number
    for (const start of starts.filter(({ reserved }) => reserved === "")) {
      const { error, file } = answered(start);
      expect(error, JSON.stringify(start)).toBe(start.error);
      // a kubelet writes the file only if its state changes
      if (start.text === null && !start.podLevelManagers) expect(file).toBe(start.file);
    }
  });
});
