import { expect, test } from "vitest";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const PLAIN = { kubeReserved: { cpu: "1", memory: "1Gi" }, failCgroupV1: false };

test("a configuration that no kubelet would start with is reported with what to do while it lasts", async () => {
  const configuration: Record<string, unknown> = { ...PLAIN };
  const world = new SimulatedPodsNode({ configuration });
  world.pods = [appPod("a", { cpu: "100m" })];
  await world.run(6);
  expect(world.pod("a").record.state).toBe("active");
  const reportOf = () => world.last?.problems.filter(({ from }) => from === "configuration") ?? [];
  expect(reportOf()).toEqual([]);
  // changes the configuration as a reload does
  Object.assign(configuration, { cpuManagerPolicy: "static" });
  await world.run(8);
  expect(reportOf()).toHaveLength(1);
  const [{ message = "" } = {}] = reportOf();
  expect(message).toContain("a kubelet would not start with it, so no pod is admitted: ");
  expect(message).toContain(
    `"${world.dir}/state/managers/cpu_manager_state", to be deleted while the daemon does not run`,
  );
  expect(message).toContain("or set the configuration back to what it was");
  Object.assign(configuration, { cpuManagerPolicy: "none" });
  await world.run(8);
  expect(reportOf()).toEqual([]);
});

test("on cgroup v1 pods run by default, and what a kubelet would do is reported with the setting's name", async () => {
  const world = new SimulatedPodsNode({ version: 1, configuration: { ...PLAIN, failCgroupV1: undefined } });
  world.pods = [appPod("a", { cpu: "100m" })];
  await world.run(6);
  expect(world.pod("a").record.state).toBe("active");
  const messages =
    world.last?.problems.filter(({ from }) => from === "configuration").map(({ message }) => message) ?? [];
  expect(messages).toHaveLength(1);
  expect(messages[0]).toMatch(/failCgroupV1 is true .*so pods are admitted and run: .*set failCgroupV1: false/);
  expect(messages[0]).not.toContain("no pod is admitted");
});

test("pods are admitted despite another invalid setting, which is reported in the kubelet's words", async () => {
  const world = new SimulatedPodsNode({ configuration: { ...PLAIN, singleProcessOOMKill: false } });
  world.pods = [appPod("a", { cpu: "100m" })];
  await world.run(6);
  expect(world.pod("a").record.state).toBe("active");
  expect(world.last?.problems.filter(({ from }) => from === "configuration").map(({ message }) => message)).toEqual([
    "a kubelet would not start with it, and this daemon admits pods that fit all the same: invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1; correct the kubelet configuration",
  ]);
});

test("the duration and number of a pod's refusals survive a restart", async () => {
  const world = new SimulatedPodsNode({ configuration: { ...PLAIN } });
  world.pods = [appPod("big", { cpu: "90" })];
  await world.run(90);
  const before = world.pod("big").record;
  expect(before.refusal?.tries).toBeGreaterThan(1);
  world.restart();
  await world.run(2);
  const after = world.pod("big").record;
  expect(after.seenAtMs).toBe(before.seenAtMs);
  expect(after.refusal?.sinceMs).toBe(before.refusal?.sinceMs);
  expect(after.refusal?.tries).toBeGreaterThan(before.refusal?.tries ?? 0);
});
