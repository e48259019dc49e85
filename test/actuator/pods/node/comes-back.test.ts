import { expect, test } from "vitest";
import type { PodEnd } from "../../../../actuator/lifecycle/record.ts";
import { drainPods } from "../../../../actuator/pods/daemon.ts";
import { podRow } from "../../../../actuator/pods/status/node-view.ts";
import { appPod, type PodParts, SimulatedPodsNode } from "./simulated-node.ts";

const STATIC = { annotations: { "kubernetes.io/config.source": "file" } };
const fixed = (name: string, spec: object, uid = name): object =>
  appPod(name, { cpu: "100m" }, { metadata: { ...STATIC, uid }, spec: { priority: 2_000_001_000, ...spec } });
const plain = (name: string, parts: PodParts = {}): object => appPod(name, { cpu: "100m" }, parts);
const starts = (world: SimulatedPodsNode): number =>
  world.runtime.calls.filter((call) => call.startsWith("StartContainer")).length;
const drain = (world: SimulatedPodsNode): Promise<void> =>
  world.time.drive(
    drainPods(
      world.manager,
      async () => {
        await world.manager.sync();
      },
      world.time,
    ),
  );

test.each(["Always", "OnFailure", "Never"])(
  "a static pod past its deadline stays Failed with restartPolicy %s, until its manifest changes",
  async (restartPolicy) => {
    const world = new SimulatedPodsNode();
    world.pods = [fixed("web", { activeDeadlineSeconds: 5, restartPolicy })];
    await world.run(15);
    world.restart();
    await world.run(45);
    expect(world.pod("web").record.state).toBe("terminated");
    expect(world.status("web")).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
    expect(starts(world)).toBe(1);
    world.pods = [fixed("web", { activeDeadlineSeconds: 600, restartPolicy }, "web-2")];
    await world.run(6);
    expect(world.manager.set.get("web")).toBeNull();
    expect(world.status("web-2")).toMatchObject({ phase: "Running" });
  },
);

test("a drain of a pod past its deadline leaves it DeadlineExceeded, not restarted", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 0, stopsMs: 20_000 });
  world.pods = [fixed("web", { activeDeadlineSeconds: 5, terminationGracePeriodSeconds: 30 })];
  await world.run(8);
  expect(world.pod("web").record).toMatchObject({ state: "terminating", end: { cause: "deadline" } });
  await drain(world);
  world.restart();
  await world.run(10);
  expect(world.status("web")).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
});

test.each<[string, PodEnd["cause"], object]>([
  ["that a drain was ending when its daemon died", "drained", plain("web")],
  ["that is static and was evicted", "evicted", fixed("web", {})],
])("a pod %s starts again, even if it was looked at in between", async (_, cause, pod) => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 137, stopsMs: 1_000 });
  world.pods = [pod];
  await world.run(4);
  world.end("web", cause, "Reason", "message");
  await world.run(1);
  expect(world.pod("web").record).toMatchObject({ state: "terminating", end: { cause } });
  world.manager.stop();
  await world.time.pass(5_000);
  world.restart();
  // a list of the runtime before the pod's work has ended shows the pod as stopped
  const listed = await world.runtime.pods();
  if (listed.ok) world.manager.set.update(listed.value);
  expect(world.status("web")).toMatchObject({ phase: "Failed", reason: "Reason" });
  await world.run(15);
  expect(world.pod("web").record).toMatchObject({ state: "active", end: null });
  expect(world.status("web")).toMatchObject({ phase: "Running" });
  expect(world.status("web").reason).toBeUndefined();
  expect(world.idOf("web")).not.toBe("none");
});

test("a preempted pod whose restartPolicy forbids a new start stays Failed and keeps its reason", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 143, stopsMs: 0 });
  world.pods = [fixed("job", { restartPolicy: "Never" })];
  await world.run(4);
  world.end("job", "preempted", "Preempting", "message");
  await world.run(10);
  expect(world.pod("job").record.state).toBe("terminated");
  expect(world.status("job")).toMatchObject({ phase: "Failed", reason: "Preempting" });
});

test("a preempted pod whose containers exit 0 is Succeeded, and its status still shows the preemption", async () => {
  const world = new SimulatedPodsNode();
  world.pods = [plain("web")];
  await world.run(4);
  world.end("web", "preempted", "Preempting", "message");
  await world.run(10);
  const status = world.status("web");
  expect([world.pod("web").record.state, status.phase, status.reason]).toEqual(["terminated", "Succeeded", undefined]);
  const row = podRow({ known: world.pod("web"), status, cgroups: [], cpusets: new Map(), usage: null });
  expect([row.phase, row.reason, row.message]).toEqual(["Succeeded", "Preempting", "message"]);
});

test("a preempted static pod waits until there is room, and then starts again", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 0, stopsMs: 100 });
  const critical = (name: string, priority: number): object =>
    appPod(name, { cpu: "5" }, { metadata: STATIC, spec: { priority } });
  const low = critical("low", 2_000_000_000);
  world.pods = [low];
  await world.run(4);
  world.pods = [low, critical("high", 2_000_001_000)];
  await world.run(60);
  expect(world.events.filter(({ reason }) => reason === "Preempting")).toHaveLength(1);
  expect(world.status("high")).toMatchObject({ phase: "Running" });
  expect(world.status("low")).toMatchObject({ phase: "Pending", reason: "UnexpectedAdmissionError" });
  world.pods = [low];
  await world.run(10);
  expect(world.status("low")).toMatchObject({ phase: "Running" });
});

test("a drain removes the cgroups of the pods it stopped", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 0, stopsMs: 100 });
  world.pods = [plain("first"), plain("last", { spec: { priority: 5 } })];
  await world.run(6);
  const paths = [...(world.manager.view?.pods.values() ?? [])].map(({ path }) => path);
  const shares = () => paths.map((path) => world.value(path, "cpu.shares"));
  expect(shares()).toEqual(["102", "102"]);
  await drain(world);
  expect(shares()).toEqual([undefined, undefined]);
});

test("the last status of a drained pod says that it was drained, until the next daemon starts it", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: null, exitCode: 0, stopsMs: 100 });
  world.pods = [fixed("web", {})];
  await world.run(6);
  await drain(world);
  const row = () =>
    podRow({ known: world.pod("web"), status: world.status("web"), cgroups: [], cpusets: new Map(), usage: null });
  expect(row()).toMatchObject({ state: "pending", phase: "Pending", reason: "Drained", refusal: { tries: 0 } });
  expect(row().message).toMatch(/^drained /);
  world.restart();
  await world.run(10);
  expect(row()).toMatchObject({ state: "active", phase: "Running", reason: "", refusal: null });
});
