import { expect, test } from "vitest";
import { nodeView } from "../../../../actuator/pods/status/node-view.ts";
import type { PodRow } from "../../../../actuator/status/node-status.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const rowsOf = (world: SimulatedPodsNode): ReadonlyMap<string, PodRow> => {
  const nothing = { runtime: null, sync: null, pass: null, usages: new Map(), problems: [], refused: [], events: [] };
  const { pods } = nodeView({ nowMs: world.time.nowMs(), nodeName: "sim", set: world.manager.set, ...nothing });
  return new Map(pods.map((row) => [row.uid, row]));
};

test("before its runtime answers, a restarted daemon shows its records' state and unknown containers", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = ({ metadata }) => ({
    runsMs: metadata.name === "short" ? 1000 : null,
    exitCode: 3,
    stopsMs: 0,
  });
  const short = appPod("job", {}, { container: { name: "short" }, spec: { restartPolicy: "Never" } });
  world.pods = [appPod("web", {}), short, appPod("big", { cpu: "900" })];
  await world.run(6);
  world.runtime.on = ({ call }) => ({ effect: false, answer: { call, code: "UNAVAILABLE", message: "no answer" } });
  const before = rowsOf(world);
  world.restart();
  await world.run(3);
  const rows = rowsOf(world);
  expect(rows.get("web")).toMatchObject({ state: "active", phase: "Unknown", reason: "NotSeen", qos: "BestEffort" });
  expect(rows.get("web")?.message).toMatch(/^not seen since the daemon started/);
  expect(rows.get("job")).toMatchObject({ state: "terminated", phase: "Failed", reason: "" });
  expect(world.last?.problems.map(({ from }) => from)).toContain("runtime");
  world.runtime.on = () => undefined;
  await world.run(3);
  const heard = rowsOf(world);
  expect([heard.get("web"), heard.get("big")?.reason]).toMatchObject([
    { phase: "Running", startedAt: before.get("web")?.startedAt },
    "OutOfcpu",
  ]);
});
