import { expect, test } from "vitest";
import { podsOfPass } from "../../../actuator/pods/cgroups/cgroup-passes.ts";

test("a pass gets a pod's running and waiting containers, and not its terminated ones", () => {
  const runs = { name: "a", state: { running: {} } };
  const waits = { name: "b", state: { waiting: {} } };
  const ended = { name: "c", state: { terminated: { exitCode: 1 } } };
  const pod = {
    spec: {},
    status: { phase: "Running", containerStatuses: [runs, ended], initContainerStatuses: [waits, ended] },
  };
  expect(podsOfPass([pod])).toEqual([
    { spec: {}, status: { phase: "Running", containerStatuses: [runs], initContainerStatuses: [waits] } },
  ]);
});
