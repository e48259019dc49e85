import { describe, expect, test } from "vitest";
import { libraryMachine, machineNames } from "../../../api/cli/inputs/machine-library.ts";
import { startMemory } from "../../../api/decide/memory/start.ts";
import { topologyPolicy } from "../../../api/decide/topology/policy.ts";
import { expandLayout, type MachineLayout } from "../../../api/machines/layout.ts";
import { machineIssues } from "../../../api/model/decode.ts";
import { resourceList } from "../../../api/model/fields.ts";
import { machine as machineSchema } from "../../../api/model/machine.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import { ALL_OPTIONS } from "../../kit/profiles.ts";

interface Numbers {
  readonly sockets: number;
  readonly coresPerSocket: number;
  readonly cpus: number;
  readonly numaNodes: number;
  /** The number of uncore caches that the machine names: smaller or larger than a NUMA node; 0: it names none. */
  readonly uncoreCaches: number;
  /** Number of cores by their number of threads. */
  readonly threads: Readonly<Record<number, number>>;
}
/** The numbers that the processors' vendors publish. */
const NUMBERS: Readonly<Record<string, Numbers>> = {
  "arm64-1s": { sockets: 1, coresPerSocket: 80, cpus: 80, numaNodes: 1, uncoreCaches: 0, threads: { 1: 80 } },
  "arm64-2s": { sockets: 2, coresPerSocket: 48, cpus: 96, numaNodes: 4, uncoreCaches: 0, threads: { 1: 96 } },
  "desktop-hybrid": {
    sockets: 1,
    coresPerSocket: 16,
    cpus: 24,
    numaNodes: 1,
    uncoreCaches: 0,
    threads: { 1: 8, 2: 8 },
  },
  "epyc-2s-nps1": { sockets: 2, coresPerSocket: 64, cpus: 256, numaNodes: 2, uncoreCaches: 16, threads: { 2: 128 } },
  "epyc-2s-nps4": { sockets: 2, coresPerSocket: 64, cpus: 256, numaNodes: 8, uncoreCaches: 32, threads: { 2: 128 } },
  "epyc-uncore-split": { sockets: 1, coresPerSocket: 32, cpus: 64, numaNodes: 1, uncoreCaches: 8, threads: { 2: 32 } },
  "vm-small": { sockets: 1, coresPerSocket: 2, cpus: 4, numaNodes: 1, uncoreCaches: 0, threads: { 2: 2 } },
  "xeon-2s": { sockets: 2, coresPerSocket: 24, cpus: 96, numaNodes: 2, uncoreCaches: 0, threads: { 2: 48 } },
  "xeon-2s-snc2": { sockets: 2, coresPerSocket: 20, cpus: 80, numaNodes: 4, uncoreCaches: 2, threads: { 2: 40 } },
};

const shipped = (name: string) => {
  const found = libraryMachine(name);
  if (found === undefined) throw new Error(`${name} is in the library`);
  return found;
};
const different = <T>(list: readonly T[]): number => new Set(list).size;

describe("the machine library", () => {
  test("contains the expected machines, and no others", () => {
    expect(machineNames()).toEqual(Object.keys(NUMBERS));
    expect(libraryMachine("../library")).toBeUndefined();
    expect(libraryMachine("")).toBeUndefined();
  });
  describe.each(Object.entries(NUMBERS))("%s", (name, numbers) => {
    const { machine, description, facts } = shipped(name);
    const { cpus = [], numaNodes = [], distances = [] } = machine;
    test("is valid in a snapshot, without gaps or duplicate ids", () => {
      expect(machineSchema.parse(JSON.parse(JSON.stringify(machine)))).toEqual(machine);
      expect(machineIssues(machine, "machine")).toEqual([]);
      expect(cpus.map(({ cpu }) => cpu)).toEqual(cpus.map((_, i) => i));
      expect(numaNodes.map(({ id }) => id)).toEqual(numaNodes.map((_, i) => i));
    });
    test("has the numbers of its processor", () => {
      const cores = Map.groupBy(cpus, ({ core }) => core);
      const threads = [...Map.groupBy(cores.values(), ({ length }) => length)].map(([n, list]) => [n, list.length]);
      expect({
        sockets: different(cpus.map(({ socket }) => socket)),
        coresPerSocket: cores.size / different(cpus.map(({ socket }) => socket)),
        cpus: cpus.length,
        numaNodes: numaNodes.length,
        uncoreCaches: different(cpus.flatMap(({ uncoreCache = [] }) => uncoreCache)),
        threads: Object.fromEntries(threads),
      }).toEqual(numbers);
    });
    test("has the same size on each socket, NUMA node and cache", () => {
      for (const by of ["socket", "numa", "uncoreCache"] as const) {
        const sizes = [...Map.groupBy(cpus, (cpu) => cpu[by]).values()].map(({ length }) => length);
        expect(different(sizes), by).toBe(1);
      }
    });
    test("keeps a core on one NUMA node, and a NUMA node on one socket", () => {
      for (const group of Map.groupBy(cpus, ({ core }) => core).values()) {
        expect(different(group.map(({ numa, socket, uncoreCache }) => `${numa} ${socket} ${uncoreCache}`))).toBe(1);
        expect(group[0]?.core).toBe(group[0]?.cpu);
      }
      for (const group of Map.groupBy(cpus, ({ numa }) => numa).values()) {
        expect(different(group.map(({ socket }) => socket))).toBe(1);
      }
    });
    test("has symmetric distances, with the smallest to itself", () => {
      const socketOf = new Map(cpus.map(({ numa, socket }) => [numa, socket]));
      for (const [i, row] of distances.entries()) {
        expect(row[i]).toBe(10);
        for (const [j, distance] of row.entries()) {
          expect(distance).toBe(distances[j]?.[i]);
          if (i === j) continue;
          expect(distance).toBeGreaterThan(10);
          // NUMA nodes of one socket are nearer to each other than to those of other sockets
          expect(distance < 20).toBe(socketOf.get(i) === socketOf.get(j));
        }
      }
    });
    test("is accepted by the topology and memory managers", () => {
      const nodes = numaNodes.map(({ id }, i) => ({ id, distances: distances[i] }));
      const options = { "prefer-closest-numa-nodes": "true" };
      expect(topologyPolicy({ policy: "restricted", scope: "pod", options, gates: ALL_OPTIONS, nodes }).ok).toBe(true);
      const limits = resourceList.parse({ memory: "1Gi" });
      const started = startMemory({
        policy: "Static",
        numaNodes: numaNodes.map(({ id, memoryBytes = 0, hugepages }) => ({ id, memoryBytes, hugepages })),
        reservation: new Map(Object.entries(limits)),
        reservedMemory: [{ numaNode: 0, limits }],
        profile: NEWEST,
        podLevel: false,
        file: undefined,
      });
      expect(started.ok).toBe(true);
      expect(machine.memoryBytes).toBe(numaNodes.reduce((sum, { memoryBytes = 0 }) => sum + memoryBytes, 0));
    });
    test("has a one-line description and its source", () => {
      expect(description).toMatch(/^[^\n]{20,140}$/);
      expect(facts).toMatch(/^(?:Intel|AMD|HiSilicon|Ampere|AWS) [^\n]+\.$/);
    });
  });
});

describe("expanding a machine's layout", () => {
  const layout = (threads: readonly string[], uncoreCaches?: readonly number[]): MachineLayout => ({
    description: "",
    facts: "",
    cores: [{ socket: 0, numa: 0, threads, ...(uncoreCaches && { uncoreCaches }) }],
    numaNodes: [{ id: 0, memoryMiB: 1 }],
    distances: [[10]],
  });
  test("gives each core one CPU of every list, and each cache its share of the cores", () => {
    expect(expandLayout(layout(["0-3", "4-7"], [5, 6])).cpus?.map((c) => [c.cpu, c.core, c.uncoreCache])).toEqual([
      [0, 0, 5],
      [1, 1, 5],
      [2, 2, 6],
      [3, 3, 6],
      [4, 0, 5],
      [5, 1, 5],
      [6, 2, 6],
      [7, 3, 6],
    ]);
  });
  test.each([
    [["0-3", "4-6"], undefined, "0-3 and 4-6: not one CPU of each core in each list"],
    [["x"], undefined, "x: not one CPU of each core in each list"],
    [["0-2"], [0, 1], "3 cores do not share 2 caches equally"],
  ])("throws for the contradictory layout %s %s", (threads, caches, message) => {
    expect(() => expandLayout(layout(threads, caches))).toThrow(message);
  });
});
