import { expect, test } from "vitest";
import { SIM_SETTINGS } from "./settings.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const of = (nodeName: string) => ({ spec: { nodeName, terminationGracePeriodSeconds: 60 } });

test.each([
  ["alone", []],
  ["beside one that came under the new name", ["small"]],
])("after nodeName has changed, a still terminating pod of the old name, %s, keeps its resources", async (_, more) => {
  const world = new SimulatedPodsNode();
  world.settings = { ...SIM_SETTINGS, nodeName: "before" };
  world.restart();
  world.runtime.programOf = () => ({ runsMs: 1e9, exitCode: 0, stopsMs: 15_000 });
  world.pods = [appPod("old", { cpu: "2" }, of("before"))];
  await world.run(3);
  expect(world.pod("old").record.state).toBe("active");

  world.settings = SIM_SETTINGS;
  world.restart();
  world.decisions.splice(0);
  const added = more.map((uid) => appPod(uid, { cpu: "100m" }, of("sim")));
  // the old pod keeps two of the seven CPUs while it terminates
  world.pods = [...added, appPod("new", { cpu: "5500m" }, of("sim"))];
  await world.run(5);
  expect(world.last?.problems).toEqual([]);
  expect(world.pod("old").record).toMatchObject({ state: "terminating", pod: { spec: { nodeName: "before" } } });
  expect(world.pod("new").record).toMatchObject({ state: "pending", refusal: { reason: "OutOfcpu" } });
  expect(more.map((uid) => world.pod(uid).record.state)).toEqual(more.map(() => "active"));
  const reasons = world.decisions.flatMap(({ answer }) => answer.reasons);
  expect(world.decisions.map(({ kind }) => kind)).toContain("cgroups");
  expect(JSON.stringify(reasons)).not.toContain("pods_of_other_nodes");
  expect(world.pass?.cgroups?.cgroups.map(({ pod }) => pod?.uid)).toContain("old");

  await world.run(45);
  expect(world.pod("new").record.state).toBe("active");
});
