import { describe, expect, test } from "vitest";
import {
  memoryReservation,
  type ReservedMemory,
  reservedMemoryIssues,
  systemReservedOf,
} from "../../../api/decide/memory/reserved-memory.ts";
import { resourceList } from "../../../api/model/fields.ts";
import type { Quantity } from "../../../api/model/quantity.ts";
import { Gi } from "./setup.ts";

const quantities = (list: Record<string, string>): ReadonlyMap<string, Quantity> =>
  new Map(Object.entries(resourceList.parse(list)));
type NodeReserve = readonly [number, Record<string, string>];
const reserve = (...nodes: readonly NodeReserve[]): ReservedMemory =>
  nodes.map(([numaNode, limits]) => ({ numaNode, limits: resourceList.parse(limits) }));
/** The reserve of each node, or the reason why the kubelet does not start. */
function reserved(reservation: Record<string, string>, ...nodes: readonly NodeReserve[]): unknown {
  const result = systemReservedOf([0, 1], quantities(reservation), reserve(...nodes));
  if (!result.ok) return result.error;
  return Object.fromEntries([...result.value].map(([id, list]) => [id, Object.fromEntries(list)]));
}
const differs = (has: string, wants: string, type = "memory"): string =>
  `the total amount "${has}" of type "${type}" is not equal to the value "${wants}" determined by Node Allocatable feature`;

describe("reservedMemory", () => {
  test("sums up over NUMA nodes to exactly the node's memory reserves", () => {
    expect(reserved({ memory: "3Gi" }, [0, { memory: "1Gi" }], [1, { memory: "2Gi" }])).toEqual({
      0: { memory: Gi },
      1: { memory: 2 * Gi },
    });
    expect(reserved({ memory: "3Gi" }, [1, { memory: "3Gi" }])).toEqual({ 0: {}, 1: { memory: 3 * Gi } });
    expect(reserved({ memory: "1000M" }, [0, { memory: "1G" }])).toEqual({ 0: { memory: 1e9 }, 1: {} });
  });
  test.each([
    ["less", { memory: "1Gi" }, { memory: "1000Mi" }, differs("1000Mi", "1Gi")],
    ["a byte more", { memory: "1Gi" }, { memory: "1073741825" }, differs("1073741825", "1Gi")],
    ["none of it", { memory: "1000M" }, {}, differs("0", "1G")],
    ["memory and nothing kept back", {}, { memory: "1Gi" }, differs("1Gi", "0")],
    [
      "huge pages, which the node cannot keep back",
      { memory: "1Gi" },
      { memory: "1Gi", "hugepages-2Mi": "2Mi" },
      differs("2Mi", "0", "hugepages-2Mi"),
    ],
    ["something else", { memory: "1Gi" }, { memory: "1Gi", cpu: "1" }, differs("1", "0", "cpu")],
  ])(
    "with %s refuses the kubelet's start",
    (_what, reservation: Record<string, string>, limits: Record<string, string>, error) => {
      expect(reserved(reservation, [0, limits])).toBe(error);
    },
  );
  test("is printed in the notation of the last node that has any", () => {
    const wants = { memory: "100Mi" };
    expect(reserved(wants, [0, { memory: "1024M" }], [1, { memory: "1Gi" }])).toBe(differs("2048576Ki", "100Mi"));
    expect(reserved(wants, [0, { memory: "1Gi" }], [1, { memory: "1024M" }])).toBe(differs("2097741824", "100Mi"));
    expect(reserved(wants, [0, { memory: "1Gi" }], [1, { memory: "1Gi" }])).toBe(differs("2Gi", "100Mi"));
  });
  test("is refused for a NUMA node that the machine lacks", () => {
    expect(reserved({ memory: "1Gi" }, [2, { memory: "1Gi" }])).toBe(
      "the reserved memory configuration references a NUMA node 2 that does not exist on this machine",
    );
  });
  test("is required for policy Static, which needs some reserve", () => {
    expect(reserved({})).toBe("[memorymanager] you should specify the system reserved memory");
  });
  test.each(["1.5Gi", "1.0Gi", "1500m", "1000m", "100Ti", "1000.0", "1e-1"])(
    "of %s is refused, as Go cannot convert it to int64",
    (memory) => {
      expect(reserved({ memory }, [0, { memory }])).toBe("could not covert a variable of type Quantity to int64");
    },
  );
  test.each([
    ["1536Mi", 1536 * 2 ** 20],
    ["1.5G", 1.5e9],
    ["10Ti", 10 * 2 ** 40],
    ["1e9", 1e9],
    ["0.5k", 500],
    ["0001000.5k", 1_000_500],
    ["1000000", 1e6],
  ])("of %s is accepted as int64", (memory, bytes) => {
    expect(reserved({ memory }, [0, { memory }])).toEqual({ 0: { memory: bytes }, 1: {} });
  });
});

describe("validation of the reservedMemory field", () => {
  test("refuses other resources than memory and huge pages, zero amounts and duplicates", () => {
    expect(
      reservedMemoryIssues(
        reserve([0, { memory: "1Gi", cpu: "1", "hugepages-1Gi": "0" }], [1, { memory: "1Gi" }], [0, { memory: "2Gi" }]),
      ),
    ).toEqual([
      'invalid configuration: the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted',
      'invalid configuration: reserved memory may not be zero for NUMA node 0 and resource "hugepages-1Gi"',
      'invalid configuration: the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
    ]);
    expect(reservedMemoryIssues([])).toEqual([]);
    expect(
      reservedMemoryIssues(reserve([0, { memory: "1Gi", "hugepages-2Mi": "2Mi" }], [1, { memory: "1Gi" }])),
    ).toEqual([]);
  });
});

describe("the memory that reservedMemory must equal", () => {
  const capacity = quantities({ memory: "8Gi", cpu: "4", "hugepages-2Mi": "0" });
  const kept = (system: Record<string, string>, kube: Record<string, string>, eviction: Record<string, string>) =>
    Object.fromEntries(
      [
        ...memoryReservation(
          capacity,
          { system: resourceList.parse(system), kube: resourceList.parse(kube) },
          quantities(eviction),
        ),
      ].map(([name, q]) => [name, q.text]),
    );
  test("is systemReserved, kubeReserved and hard eviction, in the notation of the first", () => {
    expect(kept({ memory: "512Mi" }, { memory: "512Mi" }, { memory: "500Mi" })).toEqual({ memory: "1524Mi" });
    expect(kept({}, { memory: "1G", cpu: "1" }, { memory: "1000Mi" })).toEqual({ memory: "2048576k" });
    expect(kept({ memory: "0" }, {}, { memory: "100Mi" })).toEqual({ memory: "100Mi" });
    expect(kept({}, {}, {})).toEqual({});
  });
});
