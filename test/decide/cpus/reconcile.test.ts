import { describe, expect, test } from "vitest";
import { cpuManager } from "../../../api/decide/cpus/manager.ts";
import { type CurrentCpus, reconcile } from "../../../api/decide/cpus/reconcile.ts";
import { freshState } from "../../../api/decide/cpus/start.ts";
import type { Pod } from "../../../api/model/pod.ts";
import { admit, cpuPod, cpus, evenMachine, freshManager, managerWith, nonePolicyOf, policyOn, shown } from "./kit.ts";

const RUNNING = { running: {} };
/** A pod whose containers have these states. */
function podInStates(uid: string, asked: Parameters<typeof cpuPod>[1], states: Record<string, object>, init = {}): Pod {
  const statuses = (of: Record<string, object>) =>
    Object.entries(of).map(([name, state]) => ({ name, containerID: `containerd://${uid}-${name}`, state }));
  const status = { containerStatuses: statuses(states), initContainerStatuses: statuses(init) };
  return cpuPod(uid, asked, { status });
}
const changesOf = (...asked: Parameters<typeof reconcile>): readonly string[] =>
  reconcile(...asked).changes.map((c) => `${c.pod.name}/${c.container} ${c.containerId}: ${c.from} -> ${c.cpus}`);
/** Looks up each container's current CPUs by `pod/container`. */
const having =
  (current: Readonly<Record<string, string>>): CurrentCpus =>
  (uid, container) => {
    const text = current[`${uid}/${container}`];
    return text === undefined ? undefined : cpus(text);
  };

describe("reconciling CPU sets when a pod with 16 exclusive CPUs comes to a node of 64 CPUs", () => {
  // 2 sockets, 4 NUMA nodes of 8 cores; other pods hold 12 CPUs, and one thread of two cores is reserved
  const topology = evenMachine({ sockets: 2, nodes: 4, cores: 32 });
  const policy = policyOn(topology, [], { numReserved: 2, reserved: cpus("0,7") });
  const manager = managerWith(policy, "0,7-32,39-63", { other: { c: "1-6,33-38" } });
  const shared = podInStates("pod-1", { app: "500m" }, { app: RUNNING });
  const coming = cpuPod("pod-2", { app: 16 });
  const started = podInStates("pod-2", { app: 16 }, { app: RUNNING });

  test("first gives the shared container all CPUs that are not exclusive", () => {
    expect(changesOf(manager, [shared], having({}))).toEqual(["pod-1/app pod-1-app: null -> 0,7-32,39-63"]);
    expect(changesOf(manager, [shared], having({ "pod-1/app": "0,7-32,39-63" }))).toEqual([]);
  });
  test("admits the pod with a whole NUMA node", () => {
    expect(admit(manager, coming)).toBeUndefined();
    expect(shown(manager)["pod-2/app"]).toBe("8-15,40-47");
  });
  test("then shrinks the shared container's set before the new container gets its own", () => {
    expect(changesOf(manager, [coming, shared], having({ "pod-1/app": "0,7-32,39-63" }))).toEqual([
      "pod-1/app pod-1-app: 0,7-32,39-63 -> 0,7,16-32,39,48-63",
    ]);
    expect(changesOf(manager, [started, shared], having({ "pod-1/app": "0,7-32,39-63", "pod-2/app": "0-63" }))).toEqual(
      ["pod-1/app pod-1-app: 0,7-32,39-63 -> 0,7,16-32,39,48-63", "pod-2/app pod-2-app: 0-63 -> 8-15,40-47"],
    );
  });
  test("changes nothing once all sets are applied", () => {
    const current = having({ "pod-1/app": "0,7,16-32,39,48-63", "pod-2/app": "8-15,40-47" });
    expect(reconcile(manager, [started, shared], current)).toEqual({ changes: [], skipped: [] });
  });
});

describe("reconciling skips", () => {
  const manager = freshManager(policyOn(evenMachine({ cores: 4 })));
  const skippedOf = (pod: Pod) => reconcile(manager, [pod], having({})).skipped.map((s) => `${s.container} ${s.code}`);

  test("the containers of a pod without a status", () => {
    expect(skippedOf(cpuPod("a", { c: "1m" }))).toEqual(["null no_status"]);
  });
  test("containers without an id, or with an id that names no runtime", () => {
    const status = (containerID: string | undefined) => ({
      status: { containerStatuses: [{ name: "c", containerID, state: RUNNING }] },
    });
    for (const id of [undefined, "", "abc", "a://b://c"]) {
      expect(skippedOf(cpuPod("a", { c: "1m" }, status(id)))).toEqual(["c no_container_id"]);
    }
    expect(skippedOf(cpuPod("a", { c: "1m" }, status('"containerd://x"')))).toEqual([]);
  });
  test("containers that wait or have ended, init containers first", () => {
    const pod = podInStates(
      "a",
      { "one-init": "1m", b: "1m", c: "1m" },
      { c: {}, b: { waiting: {} } },
      {
        "one-init": { terminated: { exitCode: 0 } },
      },
    );
    expect(skippedOf(pod)).toEqual(["one-init terminated", "b waiting", "c waiting"]);
  });
  test("shared containers when the shared pool is empty", () => {
    const strict = policyOn(evenMachine({ cores: 2 }), ["strict-cpu-reservation"]);
    const full = managerWith(strict, "", {});
    admit(full, cpuPod("all", { c: 3 }));
    const pod = podInStates("a", { c: "1m" }, { c: RUNNING });
    expect(reconcile(full, [pod], having({})).skipped).toEqual([
      { pod: { namespace: "default", name: "a", uid: "a" }, container: "c", code: "no_cpus" },
    ]);
  });
  test("all containers with policy none", () => {
    const idle = cpuManager(nonePolicyOf(), freshState(nonePolicyOf()));
    expect(reconcile(idle, [podInStates("a", { c: 1 }, { c: RUNNING })], having({}))).toEqual({
      changes: [],
      skipped: [],
    });
  });
});

describe("reconciling after a pod with exclusive CPUs was removed", () => {
  test("gives its CPUs back to the shared containers", () => {
    const manager = managerWith(policyOn(evenMachine({ cores: 4 })), "0,2-4,6-7", { gone: { c: "1,5" } });
    const pod = podInStates("a", { b: "1m", c: "1m" }, { c: RUNNING, b: RUNNING });
    manager.removeStale([pod]);
    expect(changesOf(manager, [pod], having({ "a/b": "0,2-4,6-7", "a/c": "0-7" }))).toEqual([
      "a/b a-b: 0,2-4,6-7 -> 0-7",
    ]);
  });
});
