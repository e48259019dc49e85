import { describe, expect, test } from "vitest";
import { nodeSets } from "../../../api/decide/memory/hints.ts";
import type { Container } from "../../../api/model/pod.ts";
import { add, machine, manager, on, podNamed, wanting, ways } from "./setup.ts";

const only = (uid: string, memory: number | string, also = {}): readonly [ReturnType<typeof podNamed>, Container] => {
  const p = podNamed(uid, [wanting("c", memory, also)]);
  return [p, p.spec.containers[0] as Container];
};

describe("memory hints of a container", () => {
  test("are all sets of NUMA nodes with enough memory, the smallest ones preferred", () => {
    const m = manager(machine([5, 4, 4]));
    expect(ways(m, m.containerHints(...only("a", 4)))).toEqual({ memory: "0! 1! 2! 0,1 0,2 1,2 0,1,2" });
    expect(ways(m, m.containerHints(...only("a", 5)))).toEqual({ memory: "0,1! 0,2! 1,2! 0,1,2" });
    expect(ways(m, m.containerHints(...only("a", 12)))).toEqual({ memory: "0,1,2!" });
  });
  test("are empty when no set has enough, so the allocation refuses later", () => {
    const m = manager(machine([5, 4]));
    expect(m.containerHints(...only("a", 9)).size).toBe(0);
  });
  test("prefer only sets of the size that an empty machine would allow", () => {
    const m = manager(machine([5, 4]));
    add(m, podNamed("a", [wanting("c", 6)]));
    expect(ways(m, m.containerHints(...only("b", 2)))).toEqual({ memory: "0,1" });
  });
  test("leave out nodes of a group, and sets with a node that is used singly", () => {
    const m = manager(machine([5, 4, 4]));
    add(m, podNamed("a", [wanting("c", 5)]), on(m, [0, 1]));
    expect(ways(m, m.containerHints(...only("b", 1)))).toEqual({ memory: "2! 0,1" });
    add(m, podNamed("c", [wanting("c", 1)]), on(m, [2]));
    expect(ways(m, m.containerHints(...only("b", 1)))).toEqual({ memory: "2! 0,1" });
    expect(ways(m, m.containerHints(...only("b", 4))).memory).toBeUndefined();
  });
  test("are the same for huge pages, which must be on the same nodes", () => {
    const m = manager(machine([5, 4], { "2Mi": 512 }));
    const way = "0! 1! 0,1";
    expect(ways(m, m.containerHints(...only("a", 1, { "hugepages-2Mi": "512Mi" })))).toEqual({
      "hugepages-2Mi": way,
      memory: way,
    });
    expect(ways(m, m.containerHints(...only("a", 1, { "hugepages-2Mi": "1025Mi" })))).toEqual({
      "hugepages-2Mi": "0,1!",
      memory: "0,1!",
    });
  });
  test("are an empty list for a page size that the machine lacks", () => {
    const m = manager(machine([5]));
    expect([...m.containerHints(...only("a", 1, { "hugepages-1Gi": "1Gi" }))]).toEqual([["hugepages-1Gi", []]]);
  });
  test("are its assigned nodes when it holds its memory, and empty when its request differs", () => {
    const m = manager(machine([5, 4]));
    const [p, c] = only("a", 2);
    add(m, p, on(m, [1]));
    expect(ways(m, m.containerHints(p, c))).toEqual({ memory: "1!" });
    expect(m.containerHints(...only("a", 3)).size).toBe(0);
    expect(m.containerHints(...only("a", 2, { "hugepages-2Mi": "2Mi" })).size).toBe(0);
  });
  test("count memory reused from init containers on their nodes", () => {
    const m = manager(machine([5, 4]));
    const p = podNamed("a", [wanting("c", 4)], { initContainers: [wanting("i", 4)] });
    m.allocate(p, p.spec.initContainers?.[0] as Container, on(m, [0]));
    expect(ways(m, m.containerHints(p, p.spec.containers[0] as Container))).toEqual({ memory: "0! 1!" });
    expect(ways(m, m.containerHints(...only("b", 4)))).toEqual({ memory: "1!" });
  });
});

describe("memory hints of a whole pod", () => {
  test("are for containers and sidecars together, or for its largest init container", () => {
    const m = manager(machine([9, 4]));
    const sidecar = wanting("s", 1, { restartPolicy: "Always" });
    const wide = (initContainers: readonly unknown[]) =>
      podNamed("a", [wanting("c", 2), wanting("d", 1)], { initContainers });
    expect(ways(m, m.podHints(wide([])))).toEqual({ memory: "0! 1! 0,1" });
    expect(ways(m, m.podHints(wide([sidecar])))).toEqual({ memory: "0! 1! 0,1" });
    expect(ways(m, m.podHints(wide([sidecar, wanting("i", 4)])))).toEqual({ memory: "0! 0,1" });
    expect(ways(m, m.podHints(wide([wanting("i", 4), sidecar])))).toEqual({ memory: "0! 1! 0,1" });
    expect(ways(m, m.podHints(wide([wanting("i", 10)])))).toEqual({ memory: "0,1!" });
  });
  test("leave out resources that only init containers request, as the kubelet does", () => {
    const m = manager(machine([9], { "2Mi": 512 }));
    const init = wanting("i", 1, { "hugepages-2Mi": "2Mi" });
    expect(ways(m, m.podHints(podNamed("a", [wanting("c", 1)], { initContainers: [init] })))).toEqual({ memory: "0!" });
  });
  test("are its first container's nodes when that holds as much as the whole pod needs", () => {
    const m = manager(machine([9, 4]));
    const two = podNamed("a", [wanting("c", 1), wanting("d", 1)]);
    add(m, two, on(m, [1]));
    expect(m.podHints(two).size).toBe(0);
    const one = podNamed("b", [wanting("c", 1)]);
    add(m, one, on(m, [1]));
    expect(ways(m, m.podHints(one))).toEqual({ memory: "1!" });
  });
  test("are empty for a pod that gets no memory assignment", () => {
    const m = manager(machine([9]));
    expect(m.podHints(podNamed("a", [{ name: "c" }])).size).toBe(0);
    expect(m.podHints(podNamed("a", [wanting("c", "1500m")])).size).toBe(0);
  });
});

describe("the enumeration of NUMA node sets", () => {
  test("is ordered by size, then by node ids, each set once", () => {
    expect(nodeSets(3)).toEqual([0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111]);
    // {0,3} comes before {1,2}: sets are ordered by their nodes, not as numbers
    expect(nodeSets(4).slice(4, 10)).toEqual([0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100]);
    for (let count = 0; count <= 10; count++) expect(new Set(nodeSets(count)).size).toBe(2 ** count - 1);
  });
});
