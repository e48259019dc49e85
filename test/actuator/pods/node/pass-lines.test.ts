import { expect, test } from "vitest";
import type { PassReport } from "../../../../actuator/pass/loop.ts";
import { passFigures } from "../../../../actuator/status/counters.ts";
import { passLine } from "../../../../api/cli/actuator/pass-text.ts";
import { ROOT } from "../../cgroups/hierarchy-kit.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const STATIC = { cpuManagerPolicy: "static", reservedSystemCPUs: "0" };
const exclusive = (name: string) =>
  appPod(name, { cpu: "2", memory: "64Mi" }, { limits: { cpu: "2", memory: "64Mi" } });

/** The line that each pass logs about wrong values, and the number that it counts. */
function listener(world: SimulatedPodsNode) {
  const passes: { readonly report: PassReport; readonly said: string; readonly counted: number }[] = [];
  let last: PassReport | null = null;
  const run = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      await world.run(1);
      if (world.pass === null || world.pass === last) continue;
      last = world.pass;
      const said = /\d+ files? with a wrong value/.exec(passLine(last))?.[0] ?? "";
      passes.push({ report: last, said, counted: passFigures(last).drift });
    }
  };
  return { run, take: () => passes.splice(0) };
}

for (const version of [1, 2] as const) {
  test(`pods that are added, removed or get exclusive CPUs cause no drift (v${version})`, async () => {
    const world = new SimulatedPodsNode({ version, configuration: STATIC });
    const { run, take } = listener(world);
    const causes = new Set<string>();
    const pods = [appPod("shared", {}), appPod("other", { cpu: "100m" }), exclusive("engine")];
    for (const count of [1, 2, 3, 2, 3, 1, 0]) {
      world.pods = pods.slice(0, count);
      await run(8);
      for (const { report, said, counted } of take()) {
        for (const { cause } of report.drift) causes.add(cause);
        expect([said, counted]).toEqual(["", 0]);
      }
    }
    // the cause `outdated` shows that a pass did find values which the runtime wrote and which are no longer wanted
    expect([...causes]).toContain("outdated");
  });

  test(`a foreign change is reported once, by the first pass that sees it (v${version})`, async () => {
    const world = new SimulatedPodsNode({ version, configuration: STATIC });
    const { run, take } = listener(world);
    world.pods = [appPod("shared", {})];
    await run(8);
    take();
    const [path] = [...(world.manager.view?.pods.get("shared")?.containers.values() ?? [])];
    const files = world.kernel.find(version === 1 ? "cpuset" : "", `${ROOT}${path}`)?.files;
    expect(files?.get("cpuset.cpus")).toBe("0-7");
    // the runtime wrote the present value, and no pass ever did
    files?.set("cpuset.cpus", "3");
    // a pod starts in the same pass that sees the foreign change
    world.pods = [...world.pods, exclusive("engine")];
    await run(8);
    const reported = take().filter(({ said }) => said !== "");
    expect(reported.map(({ said, counted }) => [said, counted])).toEqual([["1 file with a wrong value", 1]]);
    expect(reported[0]?.report.drift.filter(({ cause }) => cause === "never_written")).toMatchObject([
      { path, file: "cpuset.cpus", actual: "3" },
    ]);
  });
}
