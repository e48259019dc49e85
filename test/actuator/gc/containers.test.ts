import { expect, test } from "vitest";
import type { NodeObservation } from "../../../actuator/gc/observe-node.ts";
import { guardPodLogs } from "../../../actuator/gc/remove.ts";
import type { ContainerRemoval } from "../../../api/model/container-gc.ts";
import { podsRead } from "../../kit/manifests.ts";
import { faultOf } from "../../sim/fake-runtime.ts";
import { fakeContainer, fakeSandbox, gcFixture, gcPod, MINUTE, put, START, when } from "./gc-kit.ts";

type World = ReturnType<typeof gcFixture>;
/** A removed pod with an exited container, its sandbox, its logs and a broken link. */
function goneWorld(): World {
  const world = gcFixture();
  put(world.node, fakeSandbox("s1", "u1"), fakeContainer("c1", "s1", "img"));
  world.node.podLogs.add("ns_pod-u1_u1");
  world.node.links.add("pod-u1_ns_app-c0.log");
  return world;
}
const ends = ({ node }: World) => node.removals.map(({ target, id, end }) => `${target} ${id} ${end}`);

test("a deleted pod's containers are removed first, then its sandbox, its logs and dangling links", async () => {
  const world = goneWorld();
  const turn = await world.node.turn(["container-gc"]);
  expect(ends(world)).toEqual([
    "container c1 removed",
    "sandbox s1 removed",
    "pod-logs ns_pod-u1_u1 removed",
    "log-link pod-u1_ns_app-c0.log removed",
  ]);
  expect(turn.collections[0]?.complete).toBe(true);
  expect(world.node.podLogs.size + world.node.links.size).toBe(0);
});

test("while the pods cannot be listed no pod counts as deleted", async () => {
  const world = goneWorld();
  world.node.podsReadable = false;
  const turn = await world.node.turn(["container-gc"]);
  expect(world.node.removals.map(({ target }) => target)).toEqual(["log-link"]);
  expect(turn.notices.map(({ message }) => message)).toContain("the kubelet does not answer");
});

test("a container that cannot be removed keeps its sandbox, and the rest is removed", async () => {
  const world = goneWorld();
  put(world.node, fakeSandbox("s2", "u2"), fakeContainer("c2", "s2", "img"));
  when(world.node, "RemoveContainer", () => faultOf("RemoveContainer", "UNKNOWN", "device is busy"));
  const turn = await world.node.turn(["container-gc"]);
  expect(ends(world).filter((end) => !end.includes("log"))).toEqual([
    "container c1 failed",
    "container c2 removed",
    "sandbox s2 removed",
  ]);
  expect(turn.collections[0]?.complete).toBe(false);
  expect(world.node.runtime.wrongs).toEqual([]);
});

test("a container in state unknown is stopped before its removal", async () => {
  const world = goneWorld();
  put(world.node, fakeContainer("c1", "s1", "img", { state: "CONTAINER_UNKNOWN" }));
  const calls: string[] = [];
  world.node.runtime.on = ({ call, id, phase }) => {
    if (id === "c1" && phase === "before") calls.push(call);
    return undefined;
  };
  await world.node.turn(["container-gc"]);
  expect(calls).toEqual(["ContainerStatus", "StopContainer", "RemoveContainer"]);
  expect(world.node.runtime.wrongs).toEqual([]);
});

test.each([
  ["runs", "it is running now", { state: "CONTAINER_RUNNING" as const }],
  ["is another one under its id", "another one has its id now", { createdAtMs: START }],
])("a container that %s by the time of its removal stays, and ends the pass", async (_, words, more) => {
  const world = goneWorld();
  when(world.node, "ContainerStatus", () => {
    put(world.node, fakeContainer("c1", "s1", "img", more));
    return undefined;
  });
  await world.node.turn(["container-gc"]);
  expect(world.node.removals.map(({ id, end, message }) => [id, end, message])).toEqual([["c1", "stopped", words]]);
  expect(world.node.runtime.performed).toEqual([]);
});

test.each([
  ["is ready", "it is ready now", (w: World): void => put(w.node, fakeSandbox("s1", "u1", "SANDBOX_READY"))],
  ["has a container", "container c9 is in it now", (w: World): void => put(w.node, fakeContainer("c9", "s1", "img"))],
])("a sandbox that %s by the time of its removal stays, and ends the pass", async (_, words, change) => {
  const world = goneWorld();
  when(world.node, "PodSandboxStatus", () => {
    change(world);
    return undefined;
  });
  await world.node.turn(["container-gc"]);
  expect(ends(world)).toEqual(["container c1 removed", "sandbox s1 stopped"]);
  expect(world.node.removals.at(-1)?.message).toBe(words);
  expect(world.node.podLogs.size).toBe(1);
});

test("logs of a pod that was created again between plan and removal stay", async () => {
  const world = goneWorld();
  when(world.node, "RemoveContainer", () => {
    world.node.pods = [gcPod("u1")];
    return undefined;
  });
  await world.node.turn(["container-gc"]);
  expect(ends(world).at(-1)).toBe("pod-logs ns_pod-u1_u1 stopped");
  expect(world.node.podLogs.size).toBe(1);
});

test("logs of a running pod stay even if it is missing in the list of pods", async () => {
  const world = gcFixture();
  put(world.node, fakeSandbox("s1", "u1", "SANDBOX_READY"));
  put(world.node, fakeContainer("c1", "s1", "img", { state: "CONTAINER_RUNNING" }));
  world.node.podLogs.add("ns_pod-u1_u1");
  await world.node.turn(["container-gc"]);
  expect([...world.node.podLogs]).toEqual(["ns_pod-u1_u1"]);
});

test("logs of a pod that ran when the runtime was listed stay, even if a decision names them", async () => {
  const removal = { id: "ns_pod-u1_u1" } as ContainerRemoval;
  const noPods = async () => podsRead();
  const look = (living: readonly string[]) =>
    ({ livingPods: new Set(living), pods: [] as unknown[] }) as Partial<NodeObservation> as NodeObservation;
  expect(await guardPodLogs(removal, look([]), noPods)).toMatchObject({ state: "as-planned" });
  expect(await guardPodLogs(removal, look(["u1"]), noPods)).toEqual({
    state: "surprise",
    found: "its pod runs, though it is not among the pods: are those all?",
  });
});

test("a container removal that got no answer and had no effect ends the pass", async () => {
  const world = goneWorld();
  put(world.node, fakeSandbox("s2", "u2"), fakeContainer("c2", "s2", "img"));
  when(world.node, "RemoveContainer", () => faultOf("RemoveContainer", "DEADLINE_EXCEEDED", "no answer"));
  const turn = await world.node.turn(["container-gc"]);
  expect(ends(world)).toEqual(["container c1 stopped"]);
  expect(world.node.runtime.performed).toEqual([]);
  expect(turn.collections[0]?.answer?.verdict).toBe("keeps");
});

test("a sandbox removal that got no answer but had its effect counts as removed", async () => {
  const world = goneWorld();
  when(world.node, "RemovePodSandbox", () => faultOf("RemovePodSandbox", "UNAVAILABLE", "broke"), "after");
  await world.node.turn(["container-gc"]);
  expect(ends(world).slice(0, 3)).toEqual([
    "container c1 removed",
    "sandbox s1 removed",
    "pod-logs ns_pod-u1_u1 removed",
  ]);
});

test("logs stay when the pods cannot be read again right before, and that is reported", async () => {
  const world = goneWorld();
  when(world.node, "RemovePodSandbox", () => {
    world.node.podsReadable = false;
    return undefined;
  });
  const turn = await world.node.turn(["container-gc"]);
  expect(world.node.podLogs.size).toBe(1);
  expect(turn.problems.map(({ from }) => from)).toEqual(["pods"]);
});

test("the settings for dead containers are applied", async () => {
  const world = gcFixture({ flags: { maximumDeadContainersPerContainer: 2, minimumContainerTTLMs: 0 } });
  world.node.pods = [gcPod("u1")];
  put(world.node, fakeSandbox("s1", "u1", "SANDBOX_READY"));
  for (let i = 0; i < 5; i++)
    put(world.node, fakeContainer(`c${i}`, "s1", "img", { attempt: i, createdAtMs: START - 10_000 + i }));
  await world.node.turn(["container-gc"]);
  expect(ends(world)).toEqual(["container c2 removed", "container c1 removed", "container c0 removed"].reverse());
});

test("collections without removals while the API was unreachable are in its history later", async () => {
  const { node, api, clock } = gcFixture();
  // each pass sees another input, since an identical decision would only raise the count of the last record
  const look = async (minute: number) => {
    await clock.advanceTo(START + minute * MINUTE);
    node.pods = [...node.pods, gcPod(`u${minute}`)];
    put(
      node,
      fakeSandbox(`s${minute}`, `u${minute}`, "SANDBOX_READY"),
      fakeContainer(`c${minute}`, `s${minute}`, "img"),
    );
    await node.turn(["container-gc"]);
  };
  const history = async () => {
    const answer = await api.fetch(new Request("http://api/v1/nodes/sim/decisions?kind=container-gc"));
    return ((await answer.json()) as { readonly decisions?: readonly object[] }).decisions?.length ?? 0;
  };
  await look(0);
  expect(await history()).toBe(1);
  api.reachable = false;
  for (const minute of [1, 2]) await look(minute);
  expect(node.outboxSize).toBe(2);
  api.reachable = true;
  await look(3);
  expect([node.outboxSize, await history()]).toEqual([0, 4]);
});
