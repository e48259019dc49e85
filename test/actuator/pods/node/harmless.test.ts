import { expect, test } from "vitest";
import { cgroupRows } from "../../../../actuator/pods/status/node-view.ts";
import { passFigures } from "../../../../actuator/status/counters.ts";
import { decodeStatus } from "../../../../actuator/status/node-status.ts";
import { nodeStatus, podRow } from "../../../kit/node-status.ts";
import { ROOT } from "../../cgroups/hierarchy-kit.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

/** The pod's files with a wrong value, after a pass that found `value` in a file of its container. */
async function differing(file: string, value: string, memory = "64Mi") {
  const world = new SimulatedPodsNode({ version: 2 });
  world.pods = [appPod("u1", { cpu: "100m", memory })];
  await world.run(5);
  const path = [...(world.manager.view?.pods.get("u1")?.containers.values() ?? [])][0] ?? "none";
  const place = world.kernel.find("", `${ROOT}${path}`);
  if (place === undefined) throw new Error(`no cgroup ${path}`);
  place.files.set(file, value);
  world.writes.length = 0;
  await world.run(60);
  const rows = cgroupRows(world.pass).get("u1") ?? [];
  const found = rows.flatMap((row) => row.files).filter(({ wanted, actual }) => wanted !== actual);
  const status = decodeStatus(JSON.stringify(nodeStatus({ pods: [podRow("web", { cgroups: rows })] })));
  expect(status.ok ? status.value.pods[0]?.cgroups : status.error).toEqual(rows);
  return { found, drift: passFigures(world.pass).drift, writes: world.writes };
}

test("a cpu.weight that the runtime derives by another formula is marked harmless, and left", async () => {
  const { found, drift, writes } = await differing("cpu.weight", "4");
  expect(found).toEqual([{ file: "cpu.weight", wanted: "17", actual: "4", harmless: "weight_formula" }]);
  expect([drift, writes]).toEqual([0, []]);
});

test("any other weight is drift, and corrected", async () => {
  const { found, drift, writes } = await differing("cpu.weight", "5");
  expect([found, drift]).toEqual([[], 1]);
  expect(writes).toEqual([expect.stringMatching(/ cpu\.weight 17$/)]);
});

test("memory that the kernel rounds to whole pages is marked harmless, and left", async () => {
  const { found, drift, writes } = await differing("cpu.weight", "17", `${2 ** 26 + 1}`);
  const rounded = { file: "memory.max", wanted: `${2 ** 26 + 1}`, actual: `${2 ** 26}`, harmless: "page_rounding" };
  expect(found).toEqual([rounded, rounded]);
  expect([drift, writes]).toEqual([0, []]);
});
