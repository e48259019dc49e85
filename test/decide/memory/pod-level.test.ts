import { describe, expect, test } from "vitest";
import { ANY_NODE } from "../../../api/decide/topology/hint.ts";
import type { Container } from "../../../api/model/pod.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { add, blocks, free, machine, manager, on, podNamed, wanting, ways } from "./setup.ts";

/** A pod with `memory` GiB at pod level. */
const levelled = (
  uid: string,
  memory: number,
  containers: readonly object[],
  initContainers: readonly object[] = [],
) => {
  const level = { cpu: "4", memory: `${memory}Gi` };
  return podNamed(uid, containers as never, { initContainers, resources: { requests: level, limits: level } });
};
const shared = { name: "shared" };
const sidecar = (name: string, gib: number) => wanting(name, gib, { restartPolicy: "Always" });

describe("pod-level memory with PodLevelResourceManagers under pod scope", () => {
  test("is assigned as a whole and shared by containers without their own memory", () => {
    const m = manager(machine([9, 9]), true);
    const a = levelled("a", 5, [wanting("c", 2), shared, { name: "too" }], [sidecar("s", 1)]);
    expect(ways(m, m.podHints(a))).toEqual({ memory: "0! 1! 0,1" });
    expect(m.allocatePod(a, on(m, [1]))).toEqual({ ok: true, value: undefined });
    expect(Object.fromEntries(["s", "c", "shared", "too"].map((name) => [name, blocks(m, "a", name)]))).toEqual({
      s: ["memory 1 on 1"],
      c: ["memory 2 on 1"],
      shared: ["memory 2 on 1"],
      too: ["memory 2 on 1"],
    });
    expect(free(m)).toEqual([8, 4]);
    expect(m.state.podEntries.get("a")).toEqual([{ numaAffinity: [1], type: "memory", size: 5 * 2 ** 30 }]);
  });
  test("gives an init container without its own memory everything that earlier sidecars leave", () => {
    const m = manager(machine([9]), true);
    const inits = [sidecar("s", 1), { name: "i" }, sidecar("t", 1), { name: "j" }, wanting("k", 4)];
    m.allocatePod(levelled("a", 5, [shared], inits), ANY_NODE);
    const held = ["s", "i", "t", "j", "k", "shared"].map((name) => blocks(m, "a", name)[0]?.split(" ")[1]);
    expect(held).toEqual(["1", "4", "1", "3", "4", "3"]);
    expect(free(m)).toEqual([3]);
  });
  test("is released with the pod's last container", () => {
    const m = manager(machine([9]), true);
    m.allocatePod(levelled("a", 5, [wanting("c", 2), shared]), ANY_NODE);
    m.removeContainer("a", "c");
    expect(free(m)).toEqual([3]);
    m.removeContainer("a", "shared");
    expect(free(m)).toEqual([8]);
    expect([m.state.entries.size, m.state.podEntries.size]).toEqual([0, 0]);
  });
  test("is refused with EmptyPodSharedPoolError when nothing is left to share", () => {
    const m = manager(machine([9]), true);
    const full = levelled("a", 3, [wanting("c", 2), shared], [sidecar("s", 1)]);
    const message =
      "pod rejected, sum of exclusive container memory requests equals pod budget, leaving no memory for shared containers";
    expect(m.allocatePod(full, ANY_NODE)).toEqual({
      ok: false,
      error: { reason: "EmptyPodSharedPoolError", message },
    });
    expect([...m.podHints(full)]).toEqual([["memory", []]]);
    const late = levelled("b", 3, [wanting("c", 1)], [sidecar("s", 3), { name: "i" }]);
    expect(m.allocatePod(late, ANY_NODE)).toMatchObject({
      error: { message: "pod rejected, pod has shared init containers but no memory available for them" },
    });
    expect(free(m)).toEqual([8]);
  });
  test("is refused with the usual message when the NUMA nodes have too little", () => {
    const m = manager(machine([9]), true);
    expect(m.allocatePod(levelled("a", 9, [shared]), ANY_NODE)).toEqual({
      ok: false,
      error: {
        message:
          "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
      },
    });
  });
  test("is not assigned to a pod that is not Guaranteed", () => {
    const m = manager(machine([9]), true);
    const burstable = podNamed("a", [shared], {
      resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "1Gi" } },
    });
    expect(m.allocatePod(burstable, ANY_NODE).ok).toBe(true);
    expect(free(m)).toEqual([8]);
  });
});

describe("pod-level memory with PodLevelResourceManagers under container scope", () => {
  const a = levelled("a", 5, [wanting("c", 2), { name: "d", resources: { requests: { cpu: "1", memory: "1Gi" } } }]);
  test("is not assigned to a container that would not be Guaranteed alone", () => {
    const m = manager(machine([9, 9]), true);
    expect(add(m, a)).toBeUndefined();
    expect(m.blocks("a", "d")).toEqual([]);
    expect(free(m)).toEqual([6, 9]);
  });
  test("in kubelet 1.36 has hints only for containers that would be Guaranteed alone, and the other fails", () => {
    const m = manager(machine([9, 9]), true, v1_36);
    const [c, d] = a.spec.containers as [Container, Container];
    expect(ways(m, m.containerHints(a, c))).toEqual({ memory: "0! 1! 0,1" });
    expect(m.containerHints(a, d).size).toBe(0);
    // for a container without a request the kubelet looks for the best of no hints and fails, unless nodes are already
    // chosen
    expect(add(m, a)).toBe(
      "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
    );
    expect(m.allocate(a, d, on(m, [0])).ok).toBe(true);
    expect(m.blocks("a", "d")).toEqual([]);
    expect(m.numaNodesOf("a", "d")).toBeUndefined();
    expect(free(m)).toEqual([6, 9]);
  });
});
