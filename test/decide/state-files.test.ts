import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { writeCpuState } from "../../api/decide/cpus/checkpoint.ts";
import { nonePolicy } from "../../api/decide/cpus/policy.ts";
import { startState } from "../../api/decide/cpus/start.ts";
import type { StateForm } from "../../api/decide/go/state-data.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { memoryManager } from "../../api/decide/memory/manager.ts";
import { readCheckpoint } from "../../api/decide/memory/read-checkpoint.ts";
import { memoryStateFile, startMemory } from "../../api/decide/memory/start.ts";
import { readCpuManagerState, readMemoryManagerState } from "../../api/model/assignments.ts";
import type { CpusDecision } from "../../api/model/cpus.ts";
import { resourceList } from "../../api/model/fields.ts";
import { PROFILES, profileOf } from "../../api/profiles/index.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { RECORDED } from "../kit/recorded.ts";
import { decoded } from "../kit/snapshots.ts";
import { admit, cpuPod, evenMachine, freshManager, policyOn } from "./cpus/kit.ts";
import { add, Gi, podNamed, wanting } from "./memory/setup.ts";

const topology = evenMachine({ cores: 4 });
const policy = policyOn(topology, [], { numReserved: 2 });
const formOf = (profile: Profile, ...gates: string[]): StateForm => ({
  profile,
  podLevel: gates.includes("PodLevelResourceManagers"),
  exclusiveResize: gates.includes("InPlacePodVerticalScalingExclusiveCPUs"),
});

type Answer = { readonly error?: string; readonly file?: string; readonly entries?: Record<string, unknown> };
/**
 * How the state code of each k8s.io/kubernetes version, run as a library, restores a file; `file`: what it writes
 * afterwards.
 */
interface Start {
  readonly manager: "cpu" | "memory";
  readonly policy: string;
  readonly gates: readonly string[];
  readonly text: string | null;
  readonly answers: Readonly<Record<string, Answer>>;
}
const CAPTURED = join(import.meta.dirname, "..", "data", "state-files", "starts.jsonl.gz");
const starts = gunzipSync(readFileSync(CAPTURED))
  .toString()
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Start);
const RESTORE = /^could not restore state from checkpoint: (.*), please drain this node and delete/s;
const restoreFault = (error: string | undefined): string | undefined => RESTORE.exec(error ?? "")?.[1];

function cpuAnswer({ policy: name, text }: Start, form: StateForm): Answer {
  const none = nonePolicy({});
  if (!none.ok) throw new Error(none.error);
  const containers = new Map(["id1", "id2"].map((id, i) => [id, { uid: "uid-1", container: `c${i}` }]));
  const made = name === "none" ? none.value : policy;
  const state = startState({ ...form, policy: made, file: text ?? undefined, containers });
  return state.ok ? { file: writeCpuState(name, state.value, form) } : { error: state.error };
}
/**
 * The machine of the tests; it fits none of these states, so a file that is accepted here is refused in a later step.
 */
const reserve = resourceList.parse({ memory: "1Gi" });
const MACHINE = {
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * Gi })),
  reservation: new Map(Object.entries(reserve)),
  reservedMemory: [{ numaNode: 0, limits: reserve }],
};
function memoryFault({ policy: name, text }: Start, form: StateForm): string | undefined {
  const started = startMemory({ ...MACHINE, ...form, policy: name, file: text ?? undefined });
  return started.ok ? undefined : restoreFault(started.error.message);
}

describe.each(RECORDED.map(({ release }) => release))("state files as kubelet %s reads them", (release) => {
  const profile = profileOf(release);
  const met = starts.filter(({ answers }) => Object.hasOwn(answers, release));
  test("give the same error or the same rewritten file for the CPU manager", () => {
    const cases = met.filter(({ manager, text }) => manager === "cpu" && text !== null);
    expect(cases.length).toBeGreaterThan(100);
    let written = 0;
    for (const start of cases) {
      const want = start.answers[release] as Answer;
      const got = cpuAnswer(start, formOf(profile, ...start.gates));
      const at = `${start.gates} ${start.text}`;
      expect(restoreFault(got.error), at).toBe(restoreFault(want.error));
      if (want.file === undefined || got.file === undefined) continue;
      // the recorded code only restores the file, and checks neither the machine nor the reserve
      expect(got.file, at).toBe(want.file);
      written++;
    }
    expect(written).toBeGreaterThan(10);
  });
  test("give the same error or the same containers for the memory manager", () => {
    const cases = met.filter(({ manager, text }) => manager === "memory" && text !== null);
    expect(cases.length).toBeGreaterThan(80);
    for (const start of cases) {
      const { error, entries = {} } = start.answers[release] as Answer;
      const form = formOf(profile, ...start.gates);
      const at = `${start.gates} ${start.text}`;
      expect(memoryFault(start, form), at).toBe(restoreFault(error));
      if (error !== undefined) continue;
      const read = readCheckpoint(start.text as string, form);
      expect(read.ok && Object.keys(entries).toSorted(), at).toEqual(
        read.ok && [...(read.value.entries?.keys() ?? [])].toSorted(),
      );
    }
  });
});

describe("the data text in state files of kubelet 1.37", () => {
  const form = formOf(profileOf("1.37"));
  test("is written like by kubelet 1.37.2 when it starts without a state file", () => {
    for (const { manager, policy: name, text, answers } of starts) {
      if (text !== null || manager !== "cpu") continue;
      const state = { defaultCpus: new Set<number>(), assignments: new Map(), podCpus: new Map() };
      expect(writeCpuState(name, state, form)).toBe(answers["1.37.2"]?.file);
    }
    const empty = { machineState: new Map(), entries: new Map(), podEntries: new Map() };
    expect(memoryStateFile("None", empty, form)).toBe(
      '{"policyName":"None","machineState":{},"checksum":4236770233,"data":"{\\"policyName\\":\\"None\\",\\"machineState\\":{}}","dataChecksum":3093843326}',
    );
  });
  test("takes precedence over the fields around it in versions that read it", () => {
    const inner = { policyName: "static", defaultCpuSet: "0", entries: { u: { c: "1" } } };
    const file = JSON.stringify({ policyName: "none", defaultCpuSet: "", data: JSON.stringify(inner) });
    expect(readCpuManagerState(file, true)).toEqual({ ok: true, value: inner });
    expect(readCpuManagerState(file, false)).toMatchObject({ value: { policyName: "none" } });
    expect(readMemoryManagerState('{"policyName":"None","data":"{"}', true)).toMatchObject({
      error: { message: "the file is cut short, or no JSON" },
    });
  });
});

const PAIRS = PROFILES.flatMap((from) => PROFILES.map((to) => [from.version, to.version, from, to] as const));
describe.each(PAIRS)("a kubelet update from %s to %s", (_, __, from, to) => {
  test("keeps the CPU assignments of containers", () => {
    const manager = freshManager(policy);
    expect(admit(manager, cpuPod("a", { "i-init": 2, c: 1 }))).toBeUndefined();
    const state = manager.state();
    const file = writeCpuState("static", state, formOf(from));
    expect(startState({ ...formOf(to), policy, file })).toEqual({ ok: true, value: state });
    for (const { behaviour } of [from, to]) {
      const read = readCpuManagerState(file, behaviour.stateFiles === "data");
      expect(read).toMatchObject({ value: { entries: { a: { "i-init": "1,5", c: "1" } } } });
    }
  });
  test("keeps the memory assignments of containers", () => {
    const setting = { ...MACHINE, policy: "Static" };
    const started = startMemory({ ...setting, ...formOf(from), file: undefined });
    if (!started.ok) throw new Error(started.error.message);
    const manager = memoryManager({ ...started.value, podLevel: false, behaviour: from.behaviour });
    expect(add(manager, podNamed("a", [wanting("c", 5)]))).toBeUndefined();
    const file = memoryStateFile("Static", manager.state, formOf(from));
    const again = startMemory({ ...setting, ...formOf(to), file });
    expect(again).toEqual({ ok: true, value: { policy: "Static", state: manager.state } });
    const read = readMemoryManagerState(file, to.behaviour.stateFiles === "data");
    expect(read).toMatchObject({ value: { entries: { a: { c: [{ numaAffinity: [0, 1], size: 5 * Gi }] } } } });
  });
});

test("a kubelet rolled back to 1.36 loses pod-level CPUs of its state file and does not start", () => {
  const whole = { defaultCpus: new Set([0, 1, 2, 4, 5, 6]), assignments: new Map(), podCpus: new Map() };
  const gate = "PodLevelResourceManagers";
  const newest = formOf(profileOf("1.37"), gate);
  const file = writeCpuState("static", { ...whole, podCpus: new Map([["u", new Set([3, 7])]]) }, newest);
  expect(startState({ ...newest, policy, file })).toMatchObject({
    ok: true,
    value: { podCpus: new Map([["u", new Set([3, 7])]]) },
  });
  const lost = `current set of available CPUs "0-7" doesn't match with CPUs in state "0-2,4-6"`;
  expect(startState({ ...formOf(profileOf("1.36"), gate), policy, file })).toEqual({ ok: false, error: lost });
  expect(startState({ ...newest, podLevel: false, policy, file })).toEqual({ ok: false, error: lost });
});

describe("a state file with a missing or wrong checksum", () => {
  const entries = { "u-a": { c: "1-2" } };
  const warningsOf = (kubeletVersion: string, cpu: object, memory?: object) => {
    const snapshot = decoded({
      node: { metadata: { name: "n" }, status: { nodeInfo: { kubeletVersion } } },
      machine: { cpus: [0, 1, 2, 3].map((id) => ({ cpu: id, core: id, socket: 0, numa: 0 })) },
      kubeletConfiguration: { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } },
      assignments: { cpu_manager_state: cpu, ...(memory && { memory_manager_state: memory }) },
    });
    const answer = decideKind("cpus", { snapshot, facts: {}, ask: { pod: null }, explain: "off" });
    if (!answer.ok) throw new Error(answer.error.message);
    const { warnings, startErrors } = answer.value.decision as CpusDecision;
    return [...warnings, ...startErrors.map((error) => error.replace(/, please.*/, ""))];
  };
  const old = { policyName: "static", defaultCpuSet: "0,3", entries };
  test("is accepted or refused by each version with a warning or an error", () => {
    const none = "cpu_manager_state: it has no checksum, and the kubelet takes it as it is";
    for (const { version } of PROFILES) expect(warningsOf(version, old)).toEqual([none]);
    const memory = { policyName: "None", machineState: {} };
    expect(warningsOf("1.36.3", old, memory)).toEqual([none, none.replace("cpu", "memory")]);
    expect(warningsOf("1.35.4", old, memory)).toEqual([
      none,
      "could not restore state from checkpoint: checkpoint is corrupted",
    ]);
  });
  test("is checked by 1.37 with the checksum of its data only", () => {
    const data = JSON.stringify(old);
    const file = { ...old, checksum: 7, data, dataChecksum: 8 };
    expect(warningsOf("1.37.2", file)).toEqual([
      "could not restore state from checkpoint: could not load v4 checkpoint: checkpoint is corrupted",
    ]);
    expect(warningsOf("1.36.3", file)[0]).toMatch(/^cpu_manager_state: its checksum is 7, its content gives/);
  });
});
