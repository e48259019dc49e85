import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OptimizingCompilers } from "../../../actuator/pods/probing/open-probes.ts";
import { DAEMON_FLAGS } from "../../../api/cli/start.ts";
import { NODE } from "../../cli/run.ts";
import { probe, probed, probedContainer } from "../../kit/runnable-pods.ts";
import { managerFixture } from "./manager-kit.ts";

test("the optimizing compilers stay off with few probes, and are switched on once with many", () => {
  const flags: string[] = [];
  const compilers = new OptimizingCompilers((flag) => flags.push(flag));
  compilers.observe(99);
  expect([flags, compilers.areOn]).toEqual([[], false]);
  compilers.observe(100);
  const set = [...flags];
  compilers.observe(5_000);
  compilers.observe(0);
  expect([flags, compilers.areOn]).toEqual([set, true]);
  const names = (list: readonly string[]) => list.map((flag) => flag.replace(/^--(no-)?|=.*$/g, "")).sort();
  // the size of the young generation is fixed when a process starts
  expect(names(set)).toEqual(names(DAEMON_FLAGS).filter((name) => name !== "max-semi-space-size"));
});

test("a process started without the compilers uses them once they are switched on", () => {
  const file = join(import.meta.dirname, "../../../actuator/pods/probing/open-probes.ts");
  const code = `
    const { OptimizingCompilers } = await import(${JSON.stringify(file)});
    const hot = (n) => { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; };
    const heat = () => { for (let i = 0; i < 300; i++) hot(20_000); };
    const isOptimized = () => (%GetOptimizationStatus(hot) & 0b110000) !== 0;
    heat();
    const before = isOptimized();
    new OptimizingCompilers().observe(1000);
    let tries = 0;
    while (!isOptimized() && tries++ < 200) { heat(); await new Promise((done) => setTimeout(done, 5)); }
    console.log(before, isOptimized());`;
  const flags = ["--allow-natives-syntax", "--no-opt", "--no-maglev", "--input-type=module", "-e", code];
  expect(spawnSync(NODE, flags, { encoding: "utf8" }).stdout).toBe("false true\n");
});

test("perSecond is the rate of all probes of all pods", () => {
  const w = managerFixture();
  w.manager.sync([probed([probedContainer({ liveness: probe({ periodSeconds: 4 }), readiness: probe() })])]);
  expect(w.manager.perSecond).toBe(1.25);
  w.manager.sync([]);
  expect(w.manager.perSecond).toBe(0);
});
