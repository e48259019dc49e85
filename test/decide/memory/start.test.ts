import { describe, expect, test } from "vitest";
import { checksumOf, type Version } from "../../../api/decide/memory/checkpoint.ts";
import { NIL_POINTER } from "../../../api/decide/memory/machine-memory.ts";
import { memoryManager } from "../../../api/decide/memory/manager.ts";
import { readCheckpoint } from "../../../api/decide/memory/read-checkpoint.ts";
import { type MemoryStart, memoryStateFile, startMemory } from "../../../api/decide/memory/start.ts";
import { ANY_NODE } from "../../../api/decide/topology/hint.ts";
import { resourceList } from "../../../api/model/fields.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { add, Gi, podNamed, wanting } from "./setup.ts";

/** The messages below are those of kubelet 1.36; test/decide/state-files.test.ts covers the other versions. */
const AS_1_36 = { profile: v1_36, podLevel: false };
const { behaviour } = v1_36;

/** Two nodes of 4 GiB, with 1 GiB reserved on the first. */
const setting = (change: Partial<MemoryStart> = {}): MemoryStart => ({
  policy: "Static",
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * Gi })),
  reservation: new Map(Object.entries(resourceList.parse({ memory: "1Gi" }))),
  reservedMemory: [{ numaNode: 0, limits: resourceList.parse({ memory: "1Gi" }) }],
  ...AS_1_36,
  file: undefined,
  ...change,
});
const started = (change: Partial<MemoryStart> = {}) => {
  const result = startMemory(setting(change));
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
};
function why(change: Partial<MemoryStart>): string {
  const result = startMemory(setting(change));
  return result.ok ? "starts" : `${result.error.code}: ${result.error.message}`;
}
const notRestored = (what: string, path = "/var/lib/kubelet/memory_manager_state"): string =>
  `start: could not restore state from checkpoint: ${what}, please drain this node and delete the memory manager checkpoint file "${path}" before restarting Kubelet`;

/** A state file with a container on one node, or with `wide` on both. */
function fileOf(podLevel = false, wide = false): string {
  const m = memoryManager({ ...started({ podLevel }), podLevel, behaviour });
  add(m, wide ? podNamed("b", [wanting("c", 5)]) : podNamed("a", [wanting("c", 2)]));
  return memoryStateFile("Static", m.state, { ...AS_1_36, podLevel });
}
type Loose = Record<string, never> & { [key: string]: Loose };
/** The same file with a change, and the checksum of the changed content. */
function changed(
  change: (file: Loose) => void,
  { podLevel = false, wide = false, version = "v1" as Version } = {},
): string {
  const file = JSON.parse(fileOf(podLevel, wide)) as Loose;
  change(file);
  const unsigned = JSON.stringify({ ...file, checksum: 0 });
  const read = readCheckpoint(unsigned, { ...AS_1_36, podLevel });
  if (!read.ok) throw new Error(read.error);
  return JSON.stringify({ ...file, checksum: checksumOf(read.value, version) });
}

describe("a memory manager without a state file", () => {
  test("starts with nothing assigned", () => {
    const { policy, state } = started();
    expect(policy).toBe("Static");
    expect([...state.machineState.values()].map((n) => n.memoryMap.get("memory"))).toEqual([
      { total: 4 * Gi, systemReserved: Gi, allocatable: 3 * Gi, reserved: 0, free: 3 * Gi },
      { total: 4 * Gi, systemReserved: 0, allocatable: 4 * Gi, reserved: 0, free: 4 * Gi },
    ]);
    expect(memoryStateFile("Static", state, AS_1_36)).toMatch(
      /^\{"policyName":"Static",.*"cells":\[1\]\}\},"checksum":\d+\}$/,
    );
  });
  test("subtracts huge pages from memory, and keeps a table for page sizes without pages", () => {
    const numaNodes = [{ id: 0, memoryBytes: 4 * Gi, hugepages: { "2Mi": 512, "1048576Ki": 0 } }];
    expect(Object.fromEntries(started({ numaNodes }).state.machineState.get(0)?.memoryMap ?? [])).toEqual({
      "hugepages-1Gi": { total: 0, systemReserved: 0, allocatable: 0, reserved: 0, free: 0 },
      "hugepages-2Mi": { total: Gi, systemReserved: 0, allocatable: Gi, reserved: 0, free: Gi },
      memory: { total: 4 * Gi, systemReserved: Gi, allocatable: 2 * Gi, reserved: 0, free: 2 * Gi },
    });
  });
  test("needs no reserves under policy None, and writes no machine state", () => {
    const { state } = started({ policy: "None", reservedMemory: [] });
    expect(memoryStateFile("None", state, AS_1_36)).toBe(
      '{"policyName":"None","machineState":{},"checksum":4236770233}',
    );
  });
  test.each([
    ["BestEffort", 'start: policy "BestEffort" is not available for platform "linux"'],
    ["", 'start: unknown policy: ""'],
    ["static", 'start: unknown policy: "static"'],
  ])("does not start with policy `%s`", (policy, error) => expect(why({ policy })).toBe(error));
  test("does not start with reserves that do not add up", () => {
    expect(why({ reservedMemory: [] })).toBe(
      'start: the total amount "0" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature',
    );
  });
  test("is not answered when reserves exceed a node's memory or there are too many NUMA nodes", () => {
    expect(why({ numaNodes: [{ id: 0, memoryBytes: Gi - 1 }] })).toMatch(
      /^bound: more memory of NUMA node 0 is reserved/,
    );
    expect(why({ numaNodes: [{ id: 0, memoryBytes: 2 * Gi, hugepages: { "1Gi": 2 } }] })).toMatch(
      /^bound: more memory/,
    );
    const many = Array.from({ length: 17 }, (_, id) => ({ id, memoryBytes: 4 * Gi }));
    expect(why({ numaNodes: many })).toMatch(/^bound: 17 NUMA nodes have 2\^17 sets/);
    expect(why({ numaNodes: [...many.slice(0, 1), { id: 64, memoryBytes: Gi }] })).toMatch(/^panic: NUMA node 64/);
  });
});

describe("a memory manager with a state file", () => {
  test.each([false, true])("continues with its assignments (PodLevelResourceManagers: %s)", (podLevel) => {
    for (const wide of [false, true]) {
      const file = fileOf(podLevel, wide);
      const { state } = started({ file, podLevel });
      expect(memoryStateFile("Static", state, { ...AS_1_36, podLevel })).toBe(file);
      expect(state.entries.size).toBe(1);
    }
  });
  test("keeps how a group's memory is spread over its nodes", () => {
    const first = memoryManager({ ...started(), podLevel: false, behaviour });
    add(first, podNamed("a", [wanting("c", 4)]));
    add(first, podNamed("b", [wanting("c", 5)]));
    first.removeContainer("a", "c");
    add(first, podNamed("c", [wanting("c", "4097Mi")]));
    first.removeContainer("c", "c");
    const file = memoryStateFile("Static", first.state, AS_1_36);
    expect(memoryStateFile("Static", started({ file }).state, AS_1_36)).toBe(file);
  });
  test.each([
    ["an empty one", "", "unexpected end of JSON input"],
    ["one that is cut short", fileOf().slice(0, -1), "unexpected end of JSON input"],
    ["one cut in a word", "tru", "invalid character ' ' in literal true (expecting 'e')"],
    ["another text", "hello", "invalid character 'h' looking for beginning of value"],
    ["another number in it", fileOf().replace('"free":4', '"free":5'), "checkpoint is corrupted"],
    [
      "the file of another policy",
      '{"policyName":"None","machineState":{},"checksum":4236770233}',
      '[memorymanager] configured policy "Static" differs from state checkpoint policy "None"',
    ],
    ["null", "null", '[memorymanager] configured policy "Static" differs from state checkpoint policy ""'],
    ["a list", "[]", "json: cannot unmarshal array into Go value of type state.MemoryManagerCheckpointV1"],
    [
      "a size below zero",
      '{"entries":{"a":{"c":[{"size":-1}]}}}',
      "json: cannot unmarshal number -1 into Go struct field Block.entries.size of type uint64",
    ],
  ])("does not start with %s", (_what, file, error) => expect(why({ file })).toBe(notRestored(error)));
  test("names the path of the state file in its error", () => {
    expect(why({ file: "", path: '/k"/memory_manager_state' })).toBe(
      notRestored("unexpected end of JSON input", '/k\\"/memory_manager_state'),
    );
  });

  const DIFFERENT = "start: [memorymanager] the expected machine state is different from the real one";
  test.each([
    ["memory", { numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 5 * Gi })) }],
    ["a node more", { numaNodes: [0, 1, 2].map((id) => ({ id, memoryBytes: 4 * Gi })) }],
    ["huge pages", { numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * Gi, hugepages: { "2Mi": 0 } })) }],
    ["reserves", { reservedMemory: [{ numaNode: 1, limits: resourceList.parse({ memory: "1Gi" }) }] }],
  ])("does not start when the machine's %s changed", (_what, change: Partial<MemoryStart>) => {
    expect(why({ file: fileOf(), ...change })).toBe(DIFFERENT);
  });
  test.each<[string, (file: Loose) => void]>([
    ["a free amount", (f) => Object.assign(f["machineState"]?.["1"]?.["memoryMap"]?.["memory"] ?? {}, { free: 1 })],
    [
      "a reserved amount",
      (f) => Object.assign(f["machineState"]?.["0"]?.["memoryMap"]?.["memory"] ?? {}, { reserved: 1 }),
    ],
    ["a count of assignments", (f) => Object.assign(f["machineState"]?.["1"] ?? {}, { numberOfAssignments: 1 })],
    ["a group", (f) => Object.assign(f["machineState"]?.["0"] ?? {}, { cells: [0, 1] })],
    ["a container that has gone", (f) => Object.assign(f, { entries: {} })],
  ])("does not start when %s contradicts the assignments, whatever the checksum", (_what, change) => {
    expect(why({ file: changed(change) })).toBe(DIFFERENT);
  });
  test("does not start with assignments on NUMA nodes or of resources that do not exist", () => {
    const blocks = (block: object) => changed((f) => Object.assign(f["entries"]?.["a"] ?? {}, { c: [block] }));
    const uses = "start: [memorymanager] (pod: a, container: c) the memory assignment uses";
    expect(why({ file: blocks({ numaAffinity: [0, 5], type: "memory", size: 1 }) })).toBe(
      `${uses} the NUMA that does not exist`,
    );
    expect(why({ file: blocks({ numaAffinity: [0], type: "hugepages-2Mi", size: 1 }) })).toBe(
      `${uses} memory resource that does not exist`,
    );
  });
  test("does not start with assignments but no machine state, and starts with neither", () => {
    const empty = changed((f) => Object.assign(f, { machineState: {} }));
    expect(why({ file: empty })).toBe(
      "start: [memorymanager] machine state can not be empty when it has memory assignments",
    );
    expect(why({ file: changed((f) => Object.assign(f, { machineState: null, entries: null })) })).toBe("starts");
  });
  test("compares only the sums of a group", () => {
    const moved = changed(
      (f) => {
        for (const [id, reserved] of [
          [0, Gi],
          [1, 4 * Gi],
        ] as const) {
          Object.assign(f["machineState"]?.[id]?.["memoryMap"]?.["memory"] ?? {}, {
            reserved,
            free: id === 0 ? 2 * Gi : 0,
          });
        }
      },
      { wide: true },
    );
    expect(why({ file: moved })).toBe("starts");
  });
  test("panics like the kubelet when NUMA nodes or memory tables in the file are null", () => {
    expect(why({ file: changed((f) => Object.assign(f["machineState"] ?? {}, { 0: null })) })).toBe(
      `panic: ${NIL_POINTER}`,
    );
    const table = changed((f) => Object.assign(f["machineState"]?.["1"]?.["memoryMap"] ?? {}, { memory: null }));
    expect(why({ file: table })).toBe(`panic: ${NIL_POINTER}`);
  });
  test("is not answered for amounts beyond 2^53, though Go accepts them", () => {
    const huge = fileOf(false, true).replace(/"size":\d+/, '"size":9007199254740993');
    const full = huge.replace(/"reserved":\d+,"free":\d+/g, (_, at) =>
      at < 300 ? `"reserved":${3 * Gi},"free":0` : `"reserved":${4 * Gi},"free":0`,
    );
    const read = readCheckpoint(full.replace(/"checksum":\d+/, '"checksum":0'), AS_1_36);
    if (!read.ok) throw new Error(read.error);
    const file = full.replace(/"checksum":\d+/, `"checksum":${checksumOf(read.value, "v1")}`);
    expect(why({ file })).toBe("bound: memory_manager_state has an amount beyond 2^53 bytes");
  });
});

describe("versions of memory_manager_state", () => {
  test("a file without a checksum, or with one of its type's own name, is accepted", () => {
    expect(why({ file: fileOf().replace(/"checksum":\d+/, '"checksum":0') })).toBe("starts");
    expect(why({ file: changed(() => {}, { version: "v1 by its type's name" }) })).toBe("starts");
    expect(why({ file: changed(() => {}, { version: "v1 by its type's name" }), podLevel: true })).toBe(
      notRestored("checkpoint is corrupted"),
    );
  });
  test("version 1 is migrated when PodLevelResourceManagers is enabled", () => {
    const { state } = started({ file: fileOf(false), podLevel: true });
    expect(memoryStateFile("Static", state, { ...AS_1_36, podLevel: true })).toBe(fileOf(true));
    expect(fileOf(true)).not.toBe(fileOf(false));
  });
  test("version 2 is refused when the gate is disabled again", () => {
    expect(why({ file: fileOf(true) })).toBe(notRestored("checkpoint is corrupted"));
  });
  test("version 2 keeps pod-level assignments", () => {
    const level = { cpu: "2", memory: "2Gi" };
    const m = memoryManager({ ...started({ podLevel: true }), podLevel: true, behaviour });
    m.allocatePod(podNamed("p", [{ name: "c" }], { resources: { requests: level, limits: level } }), ANY_NODE);
    const file = memoryStateFile("Static", m.state, { ...AS_1_36, podLevel: true });
    expect(file).toContain(
      '"podEntries":{"p":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":2147483648}]}}',
    );
    expect(started({ file, podLevel: true }).state.podEntries.get("p")).toHaveLength(1);
    expect(why({ file: file.replace(/"podEntries":.*\},"checksum"/, '"checksum"'), podLevel: true })).toBe(
      notRestored("checkpoint is corrupted"),
    );
  });
});
