import { describe, expect, test } from "vitest";
import { nodeSets } from "../../../api/decide/memory/hints.ts";
import type { Container } from "../../../api/model/pod.ts";
import { add, machine, manager, on, podNamed, wanting, ways } from "./setup.ts";

const only = (uid: string, memory: number | string, also = {}): readonly [ReturnType<typeof podNamed>, Container] => {
  const p = podNamed(uid, [wanting("c", memory, also)]);
  return [p, p.spec.containers[0] as Container];
};

describe("hints for memory", () => {
  test("are every set of nodes that has it, smallest first; preferred are the smallest", () => {
    const m = manager(machine([5, 4, 4]));
    expect(ways(m, m.containerHints(...only("a", 4)))).toEqual({ memory: "0! 1! 2! 0,1 0,2 1,2 0,1,2" });
    expect(ways(m, m.containerHints(...only("a", 5)))).toEqual({ memory: "0,1! 0,2! 1,2! 0,1,2" });
    expect(ways(m, m.containerHints(...only("a", 12)))).toEqual({ memory: "0,1,2!" });
  });
  test("are none where no set has it: that is no preference, and the allocation refuses", () => {
    const m = manager(machine([5, 4]));
    expect(m.containerHints(...only("a", 9)).size).toBe(0);
  });
  test("prefer what an empty machine could do, also when it cannot be had now", () => {
    const m = manager(machine([5, 4]));
    add(m, podNamed("a", [wanting("c", 6)]));
    expect(ways(m, m.containerHints(...only("b", 2)))).toEqual({ memory: "0,1" });
  });
  test("leave out nodes of groups, and sets with a node that is used alone", () => {
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
  test("of a kind that the machine has no table of are an empty list", () => {
    const m = manager(machine([5]));
    expect([...m.containerHints(...only("a", 1, { "hugepages-1Gi": "1Gi" }))]).toEqual([["hugepages-1Gi", []]]);
  });
  test("of a container that has its memory are where that is; none when it is not what it asks for", () => {
    const m = manager(machine([5, 4]));
    const [p, c] = only("a", 2);
    add(m, p, on(m, [1]));
    expect(ways(m, m.containerHints(p, c))).toEqual({ memory: "1!" });
    expect(m.containerHints(...only("a", 3)).size).toBe(0);
    expect(m.containerHints(...only("a", 2, { "hugepages-2Mi": "2Mi" })).size).toBe(0);
  });
  test("count what init containers leave, on their very nodes", () => {
    const m = manager(machine([5, 4]));
    const p = podNamed("a", [wanting("c", 4)], { initContainers: [wanting("i", 4)] });
    m.allocate(p, p.spec.initContainers?.[0] as Container, on(m, [0]));
    expect(ways(m, m.containerHints(p, p.spec.containers[0] as Container))).toEqual({ memory: "0! 1!" });
    expect(ways(m, m.containerHints(...only("b", 4)))).toEqual({ memory: "1!" });
  });
});

describe("hints for a whole pod", () => {
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
  test("leave out kinds that only init containers ask for, as the kubelet does", () => {
    const m = manager(machine([9], { "2Mi": 512 }));
    const init = wanting("i", 1, { "hugepages-2Mi": "2Mi" });
    expect(ways(m, m.podHints(podNamed("a", [wanting("c", 1)], { initContainers: [init] })))).toEqual({ memory: "0!" });
  });
  test("of a pod whose first container has its memory are where that is, if it is as much as the whole pod needs", () => {
    const m = manager(machine([9, 4]));
    const two = podNamed("a", [wanting("c", 1), wanting("d", 1)]);
    add(m, two, on(m, [1]));
    expect(m.podHints(two).size).toBe(0);
    const one = podNamed("b", [wanting("c", 1)]);
    add(m, one, on(m, [1]));
    expect(ways(m, m.podHints(one))).toEqual({ memory: "1!" });
  });
  test("are none for a pod that has no memory of its own", () => {
    const m = manager(machine([9]));
    expect(m.podHints(podNamed("a", [{ name: "c" }])).size).toBe(0);
    expect(m.podHints(podNamed("a", [wanting("c", "1500m")])).size).toBe(0);
  });
});

describe("the sets of nodes", () => {
  test("come by size, then by their nodes, each once", () => {
    expect(nodeSets(3)).toEqual([0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111]);
    // {0,3} before {1,2}: by the nodes, not by the number
    expect(nodeSets(4).slice(4, 10)).toEqual([0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100]);
    for (let count = 0; count <= 10; count++) expect(new Set(nodeSets(count)).size).toBe(2 ** count - 1);
  });
});
