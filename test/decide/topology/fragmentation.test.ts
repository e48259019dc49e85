import { describe, expect, test } from "vitest";
import { fragmentation } from "../../../api/decide/topology/largest-pod.ts";
import { bytes } from "../../../api/model/units.ts";

/** Two sockets with one NUMA node each, two cores of two threads; core numbers start again in each socket. */
const cpus = Array.from({ length: 8 }, (_, cpu) => ({
  cpu,
  core: Math.floor(cpu / 2) % 2,
  socket: Math.floor(cpu / 4),
  numa: Math.floor(cpu / 4),
}));
const GIB = 2 ** 30;
const room = (free: readonly number[], wholeCores = false) =>
  fragmentation({
    cpus,
    free: new Set(free),
    freeMemory: new Map([
      [0, bytes(GIB)],
      [1, bytes(3 * GIB)],
    ]),
    wholeCores,
  });

describe("fragmentation", () => {
  test("counts whole free cores apart from half-free ones", () => {
    expect(room([0, 2, 3, 4, 6])).toEqual({
      freeCpus: 5,
      freeCores: 1,
      freeMemory: 4 * GIB,
      largestBlock: 3,
      splitShare: 3 / 5,
      scattered: 2 / 5,
      nodes: [
        { numaNode: 0, freeCpus: 3, freeCores: 1, freeMemory: GIB, largestBlock: 3, splitShare: 1 / 3 },
        { numaNode: 1, freeCpus: 2, freeCores: 0, freeMemory: 3 * GIB, largestBlock: 2, splitShare: 1 },
      ],
    });
  });
  test("counts blocks in whole cores when CPUs are given by the core", () => {
    const { largestBlock, nodes, scattered } = room([0, 2, 3, 4, 6], true);
    expect(nodes.map((node) => node.largestBlock)).toEqual([2, 0]);
    expect({ largestBlock, scattered }).toEqual({ largestBlock: 2, scattered: 3 / 5 });
  });
  test("of an empty and of a full machine does not divide by zero", () => {
    expect(room([])).toMatchObject({ freeCpus: 0, largestBlock: 0, splitShare: 0, scattered: 0 });
    expect(room([0, 1, 2, 3, 4, 5, 6, 7])).toMatchObject({ freeCores: 4, splitShare: 0, scattered: 1 / 2 });
  });
  test("takes core 0 of two sockets on one NUMA node as two cores", () => {
    const flat = cpus.map((cpu) => ({ ...cpu, numa: 0 }));
    const { freeCores, splitShare } = fragmentation({
      cpus: flat,
      free: new Set([0, 1, 4]),
      freeMemory: new Map(),
      wholeCores: false,
    });
    expect({ freeCores, splitShare }).toEqual({ freeCores: 1, splitShare: 1 / 3 });
  });
  test("lists a NUMA node that has memory only", () => {
    const { nodes } = fragmentation({ cpus, free: new Set(), freeMemory: new Map([[7, bytes(5)]]), wholeCores: false });
    expect(nodes.map(({ numaNode, freeMemory }) => [numaNode, freeMemory])).toEqual([
      [0, 0],
      [1, 0],
      [7, 5],
    ]);
  });
});
