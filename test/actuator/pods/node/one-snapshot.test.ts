import { expect, test } from "vitest";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const MOST = 12;

test("a turn observes the machine once for all waiting pods, besides its cgroups pass", async () => {
  let looks = 0;
  const world = new SimulatedPodsNode({
    machine: (facts) => {
      looks++;
      return facts;
    },
  });
  world.pods = Array.from({ length: MOST }, (_, i) => appPod(`large-${i}`, { cpu: "64" }));
  await world.run(2);
  const asked = (kind: string): number => world.decisions.filter((decision) => decision.kind === kind).length;
  expect(asked("admission")).toBe(MOST);
  const turns = world.last?.sequence ?? 0;
  expect(turns).toBeGreaterThan(0);
  expect(looks).toBeLessThanOrEqual(turns + asked("cgroups"));
  expect(looks).toBeLessThan(MOST);
});
