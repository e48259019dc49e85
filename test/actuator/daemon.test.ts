import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { actuatorConfig } from "../../actuator/core/config.ts";
import { startActuator } from "../../actuator/main.ts";
import type { PassReport } from "../../actuator/pass/loop.ts";
import { podYaml } from "../kit/manifests.ts";
import { scratch } from "./manifests/scratch.ts";

test("the last valid KubeletConfiguration stays in force while its file is broken or missing", async () => {
  const kubeletConfiguration = join(scratch({}), "kubelet.yaml");
  const write = (text: string): void => writeFileSync(kubeletConfiguration, `kind: KubeletConfiguration\n${text}`);
  write("maxPods: 11\n");
  const settings = { kubeletConfiguration, nodeName: "n", stateDir: scratch({}), cgroupMount: scratch({}) };
  const config = actuatorConfig(settings);
  if (!config.ok) throw new Error(config.error);
  const messages: string[] = [];
  const inForce: unknown[] = [];
  const passed = Promise.withResolvers<void>();
  const afterPass: readonly (() => void)[] = [
    () => write("maxPods: many\n"),
    () => {},
    () => rmSync(kubeletConfiguration),
    () => write("maxPods: 22\n"),
    () => passed.resolve(),
  ];
  const daemon = await startActuator({
    config: { ...config.value, intervalSeconds: 0 },
    onPass: ({ snapshot }) => {
      inForce.push((snapshot as { kubeletConfiguration?: unknown }).kubeletConfiguration);
      afterPass[inForce.length - 1]?.();
    },
    onProblem: ({ from, message }) => void (from === "configuration" && messages.push(message)),
    onRecovery() {},
  });
  if (!daemon.ok) throw new Error(daemon.error);
  await passed.promise;
  await daemon.value.stop();
  const of = (maxPods: number) => ({ kind: "KubeletConfiguration", maxPods });
  expect(inForce.slice(0, 5)).toEqual([of(11), of(11), of(11), of(11), of(22)]);
  expect(messages).toEqual([
    expect.stringMatching(/kubelet\.yaml:2:10: maxPods: .*; the last good configuration stays in force$/),
    expect.stringMatching(/kubelet\.yaml: no such file.*; the last good configuration stays in force$/),
  ]);
});

test("nothing is decided while there has never been a valid KubeletConfiguration", async () => {
  const broken = join(scratch({ "kubelet.yaml": "maxPods: many\n" }), "kubelet.yaml");
  const settings = { kubeletConfiguration: broken, nodeName: "n", stateDir: scratch({}), cgroupMount: scratch({}) };
  const config = actuatorConfig(settings);
  if (!config.ok) throw new Error(config.error);
  const passed = Promise.withResolvers<PassReport>();
  const daemon = await startActuator({ config: config.value, onPass: passed.resolve, onProblem() {}, onRecovery() {} });
  if (!daemon.ok) throw new Error(daemon.error);
  const { cgroups, problems } = await passed.promise;
  await daemon.value.stop();
  expect(cgroups).toBeNull();
  expect(problems).toContainEqual({
    from: "configuration",
    message: expect.stringMatching(/kubelet\.yaml:1:10: maxPods: /),
  });
});

test("the daemon reports a notice when it is new, and not again in every pass", async () => {
  const manifests = scratch({ "a.yaml": podYaml("a") });
  mkdirSync(join(manifests, "one"));
  const settings = { manifests, nodeName: "n", stateDir: scratch({}), cgroupMount: scratch({}) };
  const config = actuatorConfig(settings);
  if (!config.ok) throw new Error(config.error);
  const messages: string[] = [];
  const passed = Promise.withResolvers<void>();
  let passes = 0;
  const daemon = await startActuator({
    config: { ...config.value, intervalSeconds: 0 },
    onPass: () => {
      passes++;
      if (passes === 2) mkdirSync(join(manifests, "two"));
      if (passes === 4) passed.resolve();
    },
    onProblem: ({ from, message }) => void (from === "pods" && messages.push(message)),
    onRecovery() {},
  });
  if (!daemon.ok) throw new Error(daemon.error);
  await passed.promise;
  await daemon.value.stop();
  expect(messages.map((message) => message.slice(manifests.length + 1, manifests.length + 4))).toEqual(["one", "two"]);
});
