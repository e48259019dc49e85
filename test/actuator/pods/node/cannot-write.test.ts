import { expect, test } from "vitest";
import { cgroupRows } from "../../../../actuator/pods/status/node-view.ts";
import { PassCounter, passFigures } from "../../../../actuator/status/counters.ts";
import { daemonMetrics } from "../../../../actuator/status/metrics.ts";
import { decodeStatus } from "../../../../actuator/status/node-status.ts";
import { podText } from "../../../../api/cli/pods/pods.ts";
import { plainPaint } from "../../../../api/text/style.ts";
import { nodeStatus, podRow } from "../../../kit/node-status.ts";
import { ROOT } from "../../cgroups/hierarchy-kit.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const rowsOf = (world: SimulatedPodsNode, uid: string) =>
  (cgroupRows(world.pass).get(uid) ?? []).flatMap(({ files }) => files);
const problems = (world: SimulatedPodsNode) => (world.last?.problems ?? []).map(({ message }) => message);

test("a read-only cgroup hierarchy keeps pods from starting, and no value is shown as in force", async () => {
  const world = new SimulatedPodsNode();
  world.kernel.denied = ({ mount }) => (mount === "memory" ? "EROFS" : null);
  world.pods = [appPod("u1", { cpu: "100m", memory: "16Mi" })];
  await world.run(5);
  expect(world.status("u1").containerStatuses?.[0]?.state).toMatchObject({
    waiting: { message: "not tried, because this was not done: create /: got EROFS (hierarchy memory)" },
  });
  expect(world.pod("u1").runtimePod).toBe(null);
  expect(problems(world)).toEqual(["create /: got EROFS (hierarchy memory); it is mounted read-only for this daemon"]);
  const rows = rowsOf(world, "u1");
  expect(rows.map(({ file }) => file)).toContain("memory.limit_in_bytes");
  expect(rows.filter(({ actual }) => actual !== null)).toEqual([]);
  expect(world.kernel.find("cpu", ROOT)).toBe(undefined);

  world.kernel.denied = () => null;
  await world.run(20);
  expect([world.status("u1").phase, problems(world)]).toEqual(["Running", []]);
  expect(rowsOf(world, "u1").filter(({ wanted, actual }) => wanted !== actual)).toEqual([]);
});

test("a running pod's cgroup file that cannot be written is reported with value and errno until it can", async () => {
  const world = new SimulatedPodsNode();
  world.pods = [appPod("u1", { cpu: "100m", memory: "16Mi" })];
  await world.run(5);
  const path = world.manager.view?.pods.get("u1")?.path ?? "none";
  world.kernel.find("cpu", ROOT + path)?.files.set("cpu.shares", "77");
  world.kernel.denied = ({ file }) => (file === "cpu.shares" ? "EACCES" : null);
  await world.run(60);
  const said = `write ${path} cpu.shares: tried \`102\`, got EACCES`;
  for (const seconds of [1, 15]) {
    await world.run(seconds);
    expect(problems(world)).toEqual([expect.stringMatching(new RegExp(`^${said}; .*CAP_DAC_OVERRIDE$`))]);
  }
  const differing = rowsOf(world, "u1").filter(({ wanted, actual }) => wanted !== actual);
  expect(differing).toEqual([
    { file: "cpu.shares", wanted: "102", actual: "77", harmless: undefined, fault: `${said} (had 77)` },
  ]);
  const row = podRow("web", { cgroups: cgroupRows(world.pass).get("u1") ?? [] });
  const shown = decodeStatus(JSON.stringify(nodeStatus({ pods: [row] })));
  if (!shown.ok) throw new Error(shown.error);
  expect(shown.value.pods[0]?.cgroups).toEqual(JSON.parse(JSON.stringify(row.cgroups)));
  const terminal = { columns: 200, paint: plainPaint, write() {}, warn() {} };
  const text = podText(shown.value.pods[0] ?? row, shown.value, terminal);
  expect(text).toContain(`  ${said} (had 77)\n`);
  expect(text.split("\n").find((line) => line.includes("cpu.shares"))).toMatch(/ 102 +77 +drift$/);

  world.kernel.denied = () => null;
  await world.run(15);
  expect([world.value(path, "cpu.shares"), problems(world)]).toEqual(["102", []]);
  expect(rowsOf(world, "u1").filter(({ fault }) => fault !== undefined)).toEqual([]);
});

test("values outdated by a change of the pods are no drift, and standing drift is counted once", async () => {
  const metrics = daemonMetrics();
  const counter = new PassCounter(metrics.counters);
  const world = new SimulatedPodsNode({ counters: metrics.counters });
  const seen = new Set<number>();
  const causes = new Set<string>();
  const drifted = async () => {
    const { text } = await metrics.render(nodeStatus());
    return text.split("\n").filter((line) => line.startsWith("nodewise_drift_total"));
  };
  let counted: unknown = null;
  const run = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      await world.run(1);
      if (world.pass !== null && world.pass !== counted) counter.count(world.pass);
      counted = world.pass;
      for (const { cause } of world.pass?.drift ?? []) causes.add(cause);
      seen.add(passFigures(world.pass).drift);
    }
  };
  world.pods = [appPod("u1", { cpu: "100m" }, { limits: {} })];
  await run(5);
  world.pods = [...world.pods, appPod("u2", { cpu: "200m" }, { limits: {} })];
  await run(5);
  expect([...causes]).toEqual(["ours"]);
  expect([...seen, await drifted()]).toEqual([0, []]);

  world.kernel.find("cpu", `${ROOT}/kubepods`)?.files.set("cpu.shares", "77");
  world.kernel.denied = ({ file }) => (file === "cpu.shares" ? "EACCES" : null);
  await run(200);
  expect([...seen]).toEqual([0, 1]);
  expect(await drifted()).toEqual(['nodewise_drift_total{cause="other_writer"} 1']);
  world.kernel.denied = () => null;
  await run(70);
  world.kernel.find("cpu", `${ROOT}/kubepods`)?.files.set("cpu.shares", "77");
  await run(70);
  expect(await drifted()).toEqual(['nodewise_drift_total{cause="other_writer"} 2']);
});
