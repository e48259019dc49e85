import { expect, test } from "vitest";
import { containerRows } from "../../../actuator/pods/status/node-view.ts";
import { appPod, SimulatedPodsNode } from "./node/simulated-node.ts";

const lastOf = (state: unknown) => {
  const status = { containerStatuses: [{ name: "app", state: { waiting: {} }, lastState: state }] };
  return containerRows({ containers: [{ name: "app" }] }, status, new Map())[0]?.lastState;
};

test("the row of a crashed container shows how the container ended", async () => {
  const world = new SimulatedPodsNode();
  world.runtime.programOf = () => ({ runsMs: 1000, exitCode: 7, stopsMs: 0 });
  world.pods = [appPod("web", {})];
  await world.run(6);
  const [row] = containerRows(world.pod("web").pod.object["spec"], world.status("web"), new Map());
  expect(row).toMatchObject({ state: "waiting", reason: "CrashLoopBackOff", lastState: { exitCode: 7 } });
  expect(Date.parse(row?.lastState?.finishedAt ?? "")).toBeGreaterThan(0);
});

test("the last state keeps reason and message as they are, and missing fields are empty", () => {
  const end = { exitCode: 137, reason: "OOMKilled", message: "last words", finishedAt: "2026-11-22T12:00:00Z" };
  expect(lastOf({ terminated: end })).toEqual(end);
  expect(lastOf({ terminated: { exitCode: 0 } })).toEqual({ exitCode: 0, reason: "", message: "", finishedAt: null });
  expect(lastOf({ terminated: { ...end, finishedAt: "1970-01-01T00:00:00Z" } })).toEqual({ ...end, finishedAt: null });
  expect([lastOf({}), lastOf(undefined), lastOf({ terminated: { exitCode: "x" } })]).toEqual([null, null, null]);
});

test("containers are unknown when the pod has no status yet, and waiting when it has one", () => {
  const spec = { containers: [{ name: "app" }] };
  expect(containerRows(spec, null, new Map())).toMatchObject([{ state: "unknown" }]);
  expect(containerRows(spec, { phase: "Pending" }, new Map())).toMatchObject([{ state: "waiting" }]);
});
