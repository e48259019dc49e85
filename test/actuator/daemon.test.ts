import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { actuatorConfig } from "../../actuator/config.ts";
import { startActuator } from "../../actuator/main.ts";
import { podYaml, scratch } from "./manifests/scratch.ts";

test("a daemon tells a notice when it is new, and not on every pass", async () => {
  const manifests = scratch({ "a.yaml": podYaml("a") });
  mkdirSync(join(manifests, "one"));
  const settings = { manifests, nodeName: "n", stateDir: scratch({}), cgroupMount: scratch({}) };
  const config = actuatorConfig(settings);
  if (!config.ok) throw new Error(config.error);
  const told: string[] = [];
  const passed = Promise.withResolvers<void>();
  let passes = 0;
  const daemon = await startActuator({
    config: { ...config.value, intervalSeconds: 0 },
    onPass: () => {
      passes++;
      if (passes === 2) mkdirSync(join(manifests, "two"));
      if (passes === 4) passed.resolve();
    },
    onProblem: ({ from, message }) => void (from === "pods" && told.push(message)),
    onRecovery() {},
  });
  if (!daemon.ok) throw new Error(daemon.error);
  await passed.promise;
  await daemon.value.stop();
  expect(told.map((message) => message.slice(manifests.length + 1, manifests.length + 4))).toEqual(["one", "two"]);
});
