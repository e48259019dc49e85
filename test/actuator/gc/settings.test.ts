import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { actuatorConfig } from "../../../actuator/core/config.ts";
import type { GcDeps } from "../../../actuator/gc/dependencies.ts";
import { openCollector } from "../../../actuator/gc/open.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { ok } from "../../../api/base/result.ts";
import { podsRead } from "../../kit/manifests.ts";
import { gcFixture } from "./gc-kit.ts";

test("garbage collection is off by default, and its settings are the kubelet's flags", () => {
  expect(actuatorConfig({ stateDir: "/s" })).toMatchObject({ ok: true, value: { garbageCollection: "off" } });
  const given = {
    stateDir: "/s",
    garbageCollection: "enforce",
    minimumContainerTTL: "1m30s",
    maximumDeadContainers: -1,
  };
  const config = actuatorConfig(given);
  expect(config.ok && config.value.minimumContainerTTL?.millis).toBe(90_000);
});

test.each([
  ["runtimeEndpoint", "tcp://127.0.0.1:1"],
  ["runtimeEndpoint", "containerd.sock"],
  ["minimumContainerTTL", "soon"],
  ["minimumContainerTTL", "1ns"],
  ["maximumDeadContainers", 1.5],
  ["garbageCollection", "on"],
  ["podLogsDirectory", "logs"],
  ["imageGCPeriodSeconds", 0],
])("the setting %s cannot be %s", (name, value) => {
  const config = actuatorConfig({ stateDir: "/s", [name]: value });
  expect(config.ok ? "" : config.error).toContain(`${name}: `);
});

/** Returns a function that opens a collector in the given mode over the given runtime. */
function opening(dir: string) {
  const shared: Parameters<typeof openCollector>[0] = {
    client: {} as GcDeps["client"],
    observeMachine,
    readPods: async () => podsRead(),
    readConfiguration: async () => ok({}),
  };
  return (garbageCollection: string, runtimeEndpoint: string) => {
    const config = actuatorConfig({ stateDir: dir, runtimeEndpoint, garbageCollection });
    if (!config.ok) throw new Error(config.error);
    return openCollector(shared, { config: config.value }, { stop: new AbortController().signal, joinsEviction: true });
  };
}

test("only one process may remove things from a runtime, and any may observe it", async () => {
  const { dir } = gcFixture();
  const runtimeEndpoint = `unix://${join(dir, "none.sock")}`;
  const open = (mode: string) => opening(dir)(mode, runtimeEndpoint);
  const first = await open("enforce");
  const second = await open("enforce");
  const looking = await open("observe");
  expect(second.ok ? "" : second.error).toContain(`garbage collection at ${runtimeEndpoint}: process ${process.pid}`);
  expect(looking.ok).toBe(true);
  if (!first.ok) throw new Error(first.error);
  first.value.release();
  const third = await open("enforce");
  expect(third.ok).toBe(true);
  for (const one of [looking, third]) if (one.ok) one.value.release();
});

test("two names of one socket count as the same runtime", async () => {
  const { dir } = gcFixture();
  mkdirSync(join(dir, "run"));
  writeFileSync(join(dir, "run", "real.sock"), "");
  symlinkSync("run", join(dir, "var-run"));
  symlinkSync(join("run", "real.sock"), join(dir, "link.sock"));
  const open = opening(dir);
  const first = await open("enforce", join(dir, "run", "real.sock"));
  if (!first.ok) throw new Error(first.error);
  onTestFinished(first.value.release);
  for (const name of ["link.sock", "var-run/real.sock", "run/../run/real.sock"]) {
    const second = await open("enforce", `unix://${dir}/${name}`);
    expect(second.ok ? "" : second.error, name).toContain(`process ${process.pid}`);
  }
});
