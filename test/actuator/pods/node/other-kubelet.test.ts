import { expect, test } from "vitest";
import type { ForeignStop } from "../../../../actuator/pods/admission/foreign-stops.ts";
import type { OtherKubeletFound } from "../../../../actuator/pods/admission/other-kubelet.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const FOUND: OtherKubeletFound = {
  since: "2027-01-15T08:00:00Z",
  signs: ["process"],
  brief: "another one",
  message: "another one is here",
};

test("while another kubelet uses the runtime no pod is admitted or restarted, and running pods go on", async () => {
  const other = {
    view: null as OtherKubeletFound | null,
    stops: [] as ForeignStop[],
    observe: () => other.view,
    takeStops: () => other.stops.splice(0),
    problems: () => (other.view === null ? [] : [{ from: "pods" as const, message: FOUND.message }]),
  };
  const world = new SimulatedPodsNode({ otherKubelet: other });
  world.runtime.programOf = () => ({ runsMs: 5_000, exitCode: 1, stopsMs: 0 });
  world.pods = [appPod("crash", { cpu: "100m" }), appPod("taken", { cpu: "100m" })];
  await world.run(2);
  other.stops.push({ pod: world.pod("taken").pod, how: "removed", containers: [{ name: "app", exitCode: null }] });
  other.view = FOUND;
  world.pods = [...world.pods, appPod("late", { cpu: "100m" })];
  const taken = [...world.runtime.sandboxes.values()].find(({ config }) => config.metadata.name === "taken");
  if (taken === undefined) throw new Error("there is no sandbox");
  for (const one of world.runtime.ownContainers) if (one.sandboxId === taken.id) world.runtime.exit(one.id, 137);
  taken.isReady = false;
  const sandboxes = (): number => world.runtime.sandboxes.size;
  const [before, starts] = [sandboxes(), world.events.filter(({ reason }) => reason === "Started").length];
  await world.run(30);
  expect(sandboxes()).toBe(before);
  expect(world.last?.problems).toContainEqual({ from: "pods", message: FOUND.message });
  expect(world.pod("late").record).toMatchObject({
    state: "pending",
    refusal: { reason: "OtherKubelet", message: FOUND.brief },
  });
  const { record, runtimePod } = world.pod("taken");
  expect([record.state, runtimePod?.sandboxes.length]).toEqual(["active", 1]);
  expect(record.stoppedByOthers).toBe(1);
  // a container that crashes in an existing sandbox is started again
  expect(world.events.filter(({ reason }) => reason === "Started").length).toBeGreaterThan(starts);
  world.runtime.programOf = () => ({ runsMs: 1e9, exitCode: 0, stopsMs: 0 });
  other.view = null;
  await world.run(320);
  expect(world.pod("late").record.state).toBe("active");
  expect(world.pod("taken").runtimePod?.sandboxes[0]).toMatchObject({ isReady: true, attempt: 1 });
  expect(world.pod("taken").runtimePod?.containers.map(({ state }) => state)).toContain("running");
});
