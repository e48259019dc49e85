import { describe, expect, test } from "vitest";
import { EMPTY_STATE, NIL_POINTER } from "../../../api/decide/memory/machine-memory.ts";
import { memoryManager } from "../../../api/decide/memory/manager.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import { add, blocks, free, Gi, machine, manager, on, podNamed, wanting } from "./setup.ts";

const NO_NODES =
  "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available";

describe("a container's memory assignment", () => {
  test("comes from the lowest NUMA node with room, and is no longer free there", () => {
    const m = manager(machine([4, 4]));
    expect(add(m, podNamed("a", [wanting("c", 2), wanting("d", 2)]))).toBeUndefined();
    expect(blocks(m, "a", "c")).toEqual(["memory 2 on 0"]);
    expect(blocks(m, "a", "d")).toEqual(["memory 2 on 1"]);
    expect(free(m)).toEqual([1, 2]);
    expect(m.numaNodesOf("a", "d")).toEqual([1]);
  });
  test("comes from as few NUMA nodes as suffice, filled in order, which then form a group", () => {
    const m = manager(machine([4, 4, 4]));
    add(m, podNamed("a", [wanting("c", 6)]));
    expect(blocks(m, "a", "c")).toEqual(["memory 6 on 0,1"]);
    expect(free(m)).toEqual([0, 1, 4]);
    expect([...m.state.machineState.values()].map((n) => n.cells)).toEqual([[0, 1], [0, 1], [2]]);
    // the GiB that is left on node 1 is available only to this group
    expect(add(m, podNamed("b", [wanting("c", 5)]))).toBe(NO_NODES);
    expect(add(m, podNamed("c", [wanting("c", 1)]))).toBeUndefined();
    expect(blocks(m, "c", "c")).toEqual(["memory 1 on 2"]);
    // more than one node has: only the group could hold it
    expect(add(m, podNamed("d", [wanting("c", "4097Mi")]))).toBe(NO_NODES);
  });
  test("returns to the nodes of its group in order, and the last one dissolves the group", () => {
    const m = manager(machine([4, 4]));
    add(m, podNamed("a", [wanting("c", 4)]));
    add(m, podNamed("b", [wanting("c", 5)]));
    expect(free(m)).toEqual([3, 0]);
    m.removeContainer("b", "c");
    m.removeContainer("a", "c");
    m.removeContainer("a", "c");
    expect(m.state).toEqual({ ...EMPTY_STATE, machineState: machine([4, 4]) });
  });
  test("includes huge pages on the same NUMA nodes", () => {
    const m = manager(machine([4, 4], { "2Mi": 512, "1Gi": 0 }));
    expect(free(m)).toEqual([2, 3]);
    add(m, podNamed("a", [wanting("c", 1, { "hugepages-2Mi": "1Gi" })]));
    expect(blocks(m, "a", "c")).toEqual(["hugepages-2Mi 1 on 0", "memory 1 on 0"]);
    expect([...m.state.machineState.values()].map((n) => n.numberOfAssignments)).toEqual([2, 0]);
    // node 0 has enough memory but no more huge pages
    add(m, podNamed("b", [wanting("c", 1, { "hugepages-2Mi": "2Mi" })]));
    expect(m.numaNodesOf("b", "c")).toEqual([1]);
    expect(free(m, "hugepages-2Mi")).toEqual([0, 1 - 2 / 1024]);
  });
  test("does not change when the container is allocated again", () => {
    const m = manager(machine([4]));
    const a = podNamed("a", [wanting("c", 2)]);
    add(m, a);
    expect(add(m, a)).toBeUndefined();
    expect(free(m)).toEqual([1]);
  });
  test("stays with earlier containers when a later one is refused", () => {
    const m = manager(machine([4]));
    expect(add(m, podNamed("a", [wanting("c", 2), wanting("d", 2)]))).toBe(NO_NODES);
    expect([...(m.state.entries.get("a") ?? [])].map(([name]) => name)).toEqual(["c"]);
    expect(free(m)).toEqual([1]);
  });
  test("is refused for a request that is no whole number of bytes", () => {
    const m = manager(machine([4]));
    expect(add(m, podNamed("a", [wanting("c", "1500m")]))).toBe(
      "[memorymanager] failed to represent quantity as int64",
    );
  });
  test("fails with the kubelet's nil pointer panic for a page size that the machine lacks", () => {
    const m = manager(machine([4]));
    const a = podNamed("a", [wanting("c", 1, { "hugepages-1Gi": "1Gi" })]);
    expect(add(m, a)).toBe(NIL_POINTER);
    expect(m.state.entries.size).toBe(0);
  });
});

describe("memory is assigned to containers of Guaranteed pods only", () => {
  test("a Burstable pod gets no memory assignment", () => {
    const m = manager(machine([4]));
    const burstable = podNamed("a", [{ name: "c", resources: { requests: { cpu: "1", memory: "1Gi" } } }]);
    expect(add(m, burstable)).toBeUndefined();
    expect(m.blocks("a", "c")).toEqual([]);
    expect(m.numaNodesOf("a", "c")).toBeUndefined();
  });
  test("a pod with pod-level resources gets none without the gate", () => {
    const level = { cpu: "1", memory: "2Gi" };
    const a = podNamed("a", [wanting("c", 1)], { resources: { requests: level, limits: level } });
    const m = manager(machine([4]));
    expect(add(m, a)).toBeUndefined();
    expect(free(m)).toEqual([3]);
  });
  test("policy None assigns nothing and keeps no state", () => {
    const m = memoryManager({ policy: "None", state: EMPTY_STATE, podLevel: false, behaviour: NEWEST.behaviour });
    const a = podNamed("a", [wanting("c", 1)]);
    expect(add(m, a)).toBeUndefined();
    expect([...m.containerHints(a, a.spec.containers[0] as never), ...m.podHints(a)]).toEqual([]);
    expect(m.removeStale([])).toEqual([]);
    expect(m.state).toEqual(EMPTY_STATE);
  });
});

describe("NUMA nodes of the topology hint", () => {
  test("are used as they are when they have room", () => {
    const m = manager(machine([4, 4]));
    expect(add(m, podNamed("a", [wanting("c", 1)]), on(m, [1]))).toBeUndefined();
    expect(blocks(m, "a", "c")).toEqual(["memory 1 on 1"]);
  });
  test("are extended by other nodes when they have too little", () => {
    const m = manager(machine([4, 4, 4]));
    expect(add(m, podNamed("a", [wanting("c", 5)]), on(m, [1]))).toBeUndefined();
    expect(blocks(m, "a", "c")).toEqual(["memory 5 on 0,1"]);
  });
  test("refuse the container when no extension has enough", () => {
    const m = manager(machine([4, 4]));
    add(m, podNamed("a", [wanting("c", 3)]), on(m, [0]));
    expect(add(m, podNamed("b", [wanting("c", 5)]), on(m, [1]))).toBe(
      "[memorymanager] failed to find NUMA nodes to extend the current topology hint",
    );
  });
  test("are chosen by the memory manager without a hint, but a preferred hint limits their number", () => {
    const m = manager(machine([5, 5]));
    add(m, podNamed("a", [wanting("c", 6)]));
    // a single empty node would hold 2 GiB, but only the group of both nodes exists
    expect(add(m, podNamed("b", [wanting("c", 2)]), { nodes: null, preferred: true })).toBe(
      "[memorymanager] failed to find the default preferred hint",
    );
    expect(add(m, podNamed("b", [wanting("c", 2)]))).toBeUndefined();
    expect(blocks(m, "b", "c")).toEqual(["memory 2 on 0,1"]);
  });
  test("refuse the container when the hint was preferred and the extension would not be", () => {
    const m = manager(machine([5, 5]));
    add(m, podNamed("a", [wanting("c", 6)]), on(m, [0, 1]));
    // the hinted node of the group has too little memory; the group has enough, and 2 GiB would fit on one empty node
    expect(add(m, podNamed("b", [wanting("c", 2)]), on(m, [0]))).toBe(
      "[memorymanager] failed to find the extended preferred hint",
    );
    expect(add(m, podNamed("b", [wanting("c", 2)]), on(m, [0], false))).toBeUndefined();
    expect(blocks(m, "b", "c")).toEqual(["memory 2 on 0,1"]);
  });
  test("may not mix single-node assignments with those of a group", () => {
    const m = manager(machine([4, 4]));
    add(m, podNamed("a", [wanting("c", 1)]));
    expect(add(m, podNamed("b", [wanting("c", 1)]), on(m, [0, 1]))).toBe(
      "[memorymanager] preferred hint violates NUMA node allocation",
    );
  });
});

describe("a node of a group chosen alone by other resources' hints", () => {
  test("serves a single-node assignment; memory is lost when the group's are released, as in the kubelet", () => {
    const m = manager(machine([6, 4]));
    add(m, podNamed("y", [wanting("c", 6)]), on(m, [0, 1]));
    add(m, podNamed("z", [wanting("c", 2)]), on(m, [0, 1]));
    m.removeContainer("y", "c");
    expect(add(m, podNamed("x", [wanting("c", 3)]), on(m, [0]))).toBeUndefined();
    expect(free(m)).toEqual([2, 2]);
    // z is on node 1, and its release is counted on node 0 first
    m.removeContainer("z", "c");
    m.removeContainer("x", "c");
    expect(free(m)).toEqual([5, 2]);
    expect([...m.state.machineState.values()].map((n) => n.numberOfAssignments)).toEqual([0, 0]);
  });
});

describe("memory of init containers", () => {
  const sizes = (uid: string, m: ReturnType<typeof manager>): Record<string, number> =>
    Object.fromEntries([...(m.state.entries.get(uid) ?? [])].map(([name, list]) => [name, (list[0]?.size ?? -1) / Gi]));
  test("is reused by the containers after them, and only the rest is newly taken", () => {
    const m = manager(machine([9]));
    add(m, podNamed("a", [wanting("c", 1), wanting("d", 1)], { initContainers: [wanting("i", 3), wanting("j", 2)] }));
    expect(sizes("a", m)).toEqual({ i: 0, j: 1, c: 1, d: 1 });
    expect(free(m)).toEqual([5]);
  });
  test("is enlarged to the need of a later container, and no more", () => {
    const m = manager(machine([9]));
    add(m, podNamed("a", [wanting("c", 4)], { initContainers: [wanting("i", 3)] }));
    expect(sizes("a", m)).toEqual({ i: 0, c: 4 });
    expect(free(m)).toEqual([4]);
  });
  test("is kept by sidecars", () => {
    const m = manager(machine([9]));
    const initContainers = [wanting("i", 2), wanting("s", 1, { restartPolicy: "Always" }), wanting("j", 3)];
    add(m, podNamed("a", [wanting("c", 2)], { initContainers }));
    // the sidecar uses 1 of i's 2 GiB, j uses the other one and 2 more, and c uses 2 of j's 3
    expect(sizes("a", m)).toEqual({ i: 0, s: 1, j: 1, c: 2 });
    expect(free(m)).toEqual([4]);
  });
  test("is released as far as it was not reused when the next container is created", () => {
    const m = manager(machine([9]));
    const a = podNamed("a", [wanting("c", 1)], {
      initContainers: [wanting("i", 3), wanting("s", 1, { restartPolicy: "Always" })],
    });
    add(m, a);
    m.containerCreated(a, "i");
    expect([...(m.state.entries.get("a") ?? [])].length).toBe(3);
    m.containerCreated(a, "c");
    expect([...(m.state.entries.get("a") ?? new Map()).keys()]).toEqual(["s", "c"]);
    expect(free(m)).toEqual([6]);
  });
  test("is not reused by another pod", () => {
    const m = manager(machine([9]));
    add(m, podNamed("a", [wanting("c", "1Mi")], { initContainers: [wanting("i", 3)] }));
    const before = free(m)[0] as number;
    add(m, podNamed("b", [wanting("c", 3)]));
    expect(free(m)).toEqual([before - 3]);
  });
});

describe("stale memory assignments", () => {
  test("are removed for containers that are in no active pod", () => {
    const m = manager(machine([9]));
    const [a, b] = [podNamed("a", [wanting("c", 1), wanting("gone", 1)]), podNamed("b", [wanting("c", 2)])];
    add(m, a);
    add(m, b);
    const active = podNamed("a", [wanting("c", 1)]);
    expect(m.removeStale([active])).toEqual([
      { podUid: "a", container: "gone" },
      { podUid: "b", container: "c" },
    ]);
    expect(free(m)).toEqual([7]);
    expect(m.removeStale([active])).toEqual([]);
  });
});
