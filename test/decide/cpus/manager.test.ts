import { describe, expect, test } from "vitest";
import { sharedCpus } from "../../../api/decide/cpus/checkpoint.ts";
import { type CpuManager, cpuManager } from "../../../api/decide/cpus/manager.ts";
import type { TopologyHint } from "../../../api/decide/topology/hint.ts";
import type { Container } from "../../../api/model/pod.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import {
  admit,
  cpuPod,
  cpus,
  evenMachine,
  freshManager,
  managerWith,
  nonePolicyOf,
  policyOn,
  shown,
  topologyOf,
} from "./kit.ts";

/** Two sockets of four cores: CPUs 0-3 and 8-11, and CPUs 4-7 and 12-15. */
const twoSockets = evenMachine({ sockets: 2, cores: 8 });
const near = (nodes: number): TopologyHint => ({ nodes, preferred: true });

describe("exclusive CPUs", () => {
  test("go to containers of Guaranteed pods with whole CPU requests; others run in the shared pool", () => {
    const manager = freshManager(policyOn(twoSockets));
    expect(admit(manager, cpuPod("a", { whole: 2, half: "1500m" }))).toBeUndefined();
    const burstable = cpuPod("b", { c: 2 });
    delete burstable.spec.containers[0]?.resources?.limits;
    expect(admit(manager, burstable)).toBeUndefined();
    expect(shown(manager)).toEqual({ "a/whole": "1,9", pool: "0,2-8,10-15" });
  });
  test("are not given to a pod with pod-level resources", () => {
    const pod = cpuPod("a", { c: 2 });
    const whole = { ...pod, spec: { ...pod.spec, resources: pod.spec.containers[0]?.resources } };
    const manager = freshManager(policyOn(twoSockets));
    expect(admit(manager, whole)).toBeUndefined();
    expect(shown(manager)).toEqual({ pool: "0-15" });
    expect(
      manager.podHints(whole).size + manager.containerHints(whole, whole.spec.containers[0] as Container).size,
    ).toBe(0);
  });
  test("are given to no container by policy none, which also does not change the state", () => {
    const state = {
      defaultCpus: cpus("0-2"),
      assignments: new Map([["x", new Map([["c", cpus("3")]])]]),
      podCpus: new Map(),
    };
    const manager = cpuManager(nonePolicyOf(), state);
    const pod = cpuPod("a", { c: 2 });
    expect(admit(manager, pod)).toBeUndefined();
    manager.removeContainer("x", "c");
    manager.removeStale([]);
    expect(manager.state()).toEqual(state);
    expect([manager.cpusOf("x", "c"), manager.podHints(pod).size, manager.available().size]).toEqual([undefined, 0, 0]);
  });
});

describe("CPUs within a pod", () => {
  test("are reused from an init container, but not from a sidecar", () => {
    const manager = freshManager(policyOn(twoSockets));
    expect(admit(manager, cpuPod("a", { "big-init": 4, "log-side": 2, app: 2, more: 3 }))).toBeUndefined();
    // the sidecar is first to reuse the init container's CPUs, and keeps the ones that it took
    expect(shown(manager)).toEqual({
      "a/big-init": "1-2,9-10",
      "a/log-side": "1,9",
      "a/app": "2,10",
      "a/more": "3,8,11",
      pool: "0,4-7,12-15",
    });
  });
  test("of an init container are reused by its own pod only", () => {
    const manager = freshManager(policyOn(evenMachine({ cores: 2 })));
    expect(admit(manager, cpuPod("a", { "one-init": 3, app: 1 }))).toBeUndefined();
    expect(admit(manager, cpuPod("b", { app: 1 }))).toBe(
      "not enough cpus available to satisfy request: requested=1, available=0",
    );
    expect(shown(manager)).toEqual({ "a/one-init": "1-3", "a/app": "2", pool: "0" });
  });
  test("do not change when a container is allocated again", () => {
    const manager = freshManager(policyOn(twoSockets));
    const pod = cpuPod("a", { "one-init": 2, app: 3 });
    admit(manager, pod);
    const before = shown(manager);
    expect(admit(manager, pod)).toBeUndefined();
    expect(shown(manager)).toEqual(before);
  });
  test("stay with earlier containers when a later one fails to allocate", () => {
    const manager = freshManager(policyOn(evenMachine({ cores: 2, threads: 1 })));
    expect(admit(manager, cpuPod("two", { a: 1, b: 1 }))).toBe(
      "not enough cpus available to satisfy request: requested=1, available=0",
    );
    expect(shown(manager)).toEqual({ "two/a": "1", pool: "0" });
  });
});

describe("releasing CPUs", () => {
  test("frees those that no other container of the pod holds", () => {
    const manager = freshManager(policyOn(twoSockets));
    admit(manager, cpuPod("a", { "one-init": 4, app: 2 }));
    manager.removeContainer("a", "one-init");
    expect(shown(manager)).toEqual({ "a/app": "1,9", pool: "0,2-8,10-15" });
    manager.removeContainer("a", "app");
    manager.removeContainer("a", "app");
    manager.removeContainer("nobody", "app");
    expect(shown(manager)).toEqual({ pool: "0-15" });
  });
  test("drops entries of pods that are not active and of containers that their pod no longer lists", () => {
    const manager = managerWith(policyOn(twoSockets), "0-1,4-15", { gone: { c: "2" }, a: { old: "3" } });
    const pod = cpuPod("a", { c: 1 });
    admit(manager, pod);
    manager.removeStale([pod]);
    expect(shown(manager)).toEqual({ "a/c": "8", pool: "0-7,9-15" });
  });
});

describe("CPUs for a topology hint", () => {
  test("come from the hinted NUMA nodes first, and the rest from anywhere", () => {
    const manager = freshManager(policyOn(twoSockets));
    expect(admit(manager, cpuPod("a", { c: 10 }), near(0b10))).toBeUndefined();
    expect(shown(manager)).toEqual({ "a/c": "1,4-7,9,12-15", pool: "0,2-3,8,10-11" });
  });
  test("come from all NUMA nodes of the hinted sockets with align-by-socket", () => {
    const quarters = evenMachine({ sockets: 2, nodes: 4, cores: 8 });
    // the first socket has fewer free CPUs, so without align-by-socket the remaining CPUs come from there
    const [plain, bySocket] = [[], ["align-by-socket"]].map((options) =>
      managerWith(policyOn(quarters, options), "0,3-8,11-15", { other: { c: "1-2,9-10" } }),
    );
    for (const manager of [plain, bySocket]) admit(manager as CpuManager, cpuPod("a", { c: 6 }), near(0b1000));
    expect(shown(plain as CpuManager)["a/c"]).toBe("3,6-7,11,14-15");
    expect(shown(bySocket as CpuManager)["a/c"]).toBe("4-6,12-14");
  });
});

describe("full-pcpus-only", () => {
  const options = ["full-pcpus-only"];
  const allocate = (count: number, manager = freshManager(policyOn(twoSockets, options))) => {
    const pod = cpuPod("a", { c: count });
    return manager.allocate(pod, pod.spec.containers[0] as Container, { nodes: null, preferred: false });
  };
  test("refuses a request for part of a core with SMTAlignmentError", () => {
    expect(allocate(3)).toEqual({
      ok: false,
      error: {
        reason: "SMTAlignmentError",
        message: "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
      },
    });
  });
  test("does not count cores that hold reserved CPUs as available", () => {
    expect(allocate(16)).toEqual({
      ok: false,
      error: {
        reason: "SMTAlignmentError",
        message:
          "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2",
      },
    });
    expect(allocate(14)).toEqual({ ok: true, value: undefined });
  });
  test("may refuse a running container again after a restart, up to kubelet 1.36", () => {
    const gates = { alpha: true, beta: true, behaviour: v1_36.behaviour };
    const manager = managerWith(policyOn(twoSockets, options, { gates }), "0,8", { a: { c: "1-7,9-15" } });
    expect(allocate(14, manager).ok).toBe(false);
    expect(shown(manager)).toEqual({ "a/c": "1-7,9-15", pool: "0,8" });
  });
  test("lets a container keep the CPUs that it holds, even half a core", () => {
    const gates = { alpha: true, beta: true, behaviour: NEWEST.behaviour };
    const policy = policyOn(twoSockets, options, { gates });
    const manager = managerWith(policy, "0,2-8,10-15", { a: { c: "1,9" }, b: { c: "" } });
    for (const uid of ["a", "b"]) expect(admit(manager, cpuPod(uid, { c: 3 }))).toBeUndefined();
    expect(shown(manager)).toMatchObject({ "a/c": "1,9", pool: "0,2-8,10-15" });
    expect(admit(manager, cpuPod("d", { c: 3 }))).toMatch(/^SMT Alignment Error: requested 3 cpus/);
  });
});

describe("strict-cpu-reservation", () => {
  test("keeps the reserved CPUs out of the pool", () => {
    const manager = freshManager(policyOn(twoSockets, ["strict-cpu-reservation"]));
    expect(shown(manager)).toEqual({ pool: "1-15" });
    expect(admit(manager, cpuPod("a", { c: 15 }))).toBeUndefined();
    expect(shown(manager)).toEqual({ "a/c": "1-15", pool: "" });
  });
});

describe("a flaw of the kubelet's CPU manager is reproduced", () => {
  test("on cores of two sizes it assigns a CPU that another container holds", () => {
    // cores 0 and 1 have two threads, cores 2 to 4 have one: 1.4 threads per core, so a core with one free thread
    // counts as free
    const rows = [0, 0, 1, 1, 2, 3, 4].map((core, cpu) => ({ cpu, core, socket: 0, numa: 0 }));
    const manager = managerWith(policyOn(topologyOf(rows)), "0-1,3-6", { other: { c: "2" } });
    expect(admit(manager, cpuPod("a", { c: 4 }))).toBeUndefined();
    const { assignments } = manager.state();
    expect(shown(manager)).toEqual({ "other/c": "2", "a/c": "2-3,5-6", pool: "0-1,4" });
    expect(sharedCpus(assignments)).toEqual([
      {
        cpus: cpus("2"),
        holders: [
          { uid: "a", container: "c" },
          { uid: "other", container: "c" },
        ],
      },
    ]);
  });
});
