import { beforeAll, describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { hostFixture } from "../../actuator/deviceplugin/host-kit.ts";
import { until } from "../../actuator/deviceplugin/node-plugin.ts";
import { GO_BUILDS, goPlugin, startGoPlugin } from "./go-plugin.ts";

const GPU = "example.com/gpu";
/** A generous timeout, because the plugin is another process on a machine that may be loaded. */
const PATIENTLY = { timeouts: { dialMs: 60_000 } };

describe.each(GO_BUILDS)("a device plugin in Go, with $name,", (build) => {
  const registered = `registered ${build.grpc}`;
  let built: ReturnType<typeof goPlugin>;
  beforeAll(() => {
    built = goPlugin(build);
  }, 300_000);
  const programOr = (context: TestContext): string => {
    if ("program" in built) return built.program;
    console.warn(`skipped \`${context.task.name}\`: ${built.missing}`);
    return context.skip(built.missing);
  };

  test("registers, lists, changes health, allocates, dies and registers again", async (context) => {
    const program = programOr(context);
    const { host, dir, faults } = await hostFixture(PATIENTLY);
    const plugin = startGoPlugin(program, dir, GPU, ["a", "b", "c:Unhealthy"]);
    onTestFinished(() => plugin.kill());
    await until(host.devices, (d) => d.length === 3);
    await until(
      () => plugin.lines.length,
      (n) => n > 0,
    );
    expect(plugin.lines).toEqual([registered]);
    expect(host.amounts().get(GPU)).toEqual({ capacity: 3, allocatable: 2 });
    plugin.list("a:Unhealthy", "b", "c");
    await until(host.devices, (d) => d.find(({ id }) => id === "a")?.health === "Unhealthy");
    expect(host.states()[0]?.flips).toBe(2);
    const given = await host.allocate(GPU, ["b", "c"]);
    expect(given).toMatchObject({ ok: true, value: { response: { envs: new Map([["DEVICES", "b,c"]]) } } });
    await until(
      () => plugin.lines,
      (lines) => lines.includes("allocate b,c"),
    );

    await plugin.kill();
    await until(
      () => host.amounts().get(GPU)?.allocatable,
      (n) => n === 0,
    );
    const next = startGoPlugin(program, dir, GPU, ["a", "b"]);
    onTestFinished(() => next.kill());
    await until(
      () => host.amounts().get(GPU),
      (a) => a?.allocatable === 2 && a.capacity === 2,
    );
    expect(faults.map(({ call, resource }) => [call, resource])).toEqual([["ListAndWatch", GPU]]);
  }, 180_000);

  test("registers again with a restarted host", async (context) => {
    const program = programOr(context);
    const { host, dir, again } = await hostFixture(PATIENTLY);
    const plugin = startGoPlugin(program, dir, GPU, ["a"]);
    onTestFinished(() => plugin.kill());
    await until(host.devices, (d) => d.length === 1);
    await until(
      () => plugin.lines.length,
      (n) => n === 1,
    );
    host.close();
    const next = await again();
    expect(next.removed).toEqual(["go.sock"]);
    await until(
      () => next.amounts().get(GPU)?.allocatable,
      (n) => n === 1,
    );
    await until(
      () => plugin.lines.length,
      (n) => n === 2,
    );
    expect(plugin.lines).toEqual([registered, registered]);
  }, 180_000);
});
