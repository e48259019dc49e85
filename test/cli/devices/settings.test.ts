import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { run } from "../run.ts";
import { deviceNode } from "./device-node.ts";

const DIRECTORIES = [
  ...["--device-plugins-directory", "/d", "--plugins-registry-directory", "/r"],
  ...["--pod-resources-directory", "/p", "--device-wait-seconds", "9"],
];

test("each device setting of the daemon is a flag, and faults name the flag", async () => {
  const node = deviceNode();
  const daemon = ["actuator", "--once", ...node.place];
  const alone = await run([...daemon, "--device-plugins", "serve", ...DIRECTORIES]);
  expect([alone.code, alone.stderr]).toEqual([
    2,
    "nodewise: --device-plugins: the devices are for pods that are run here, so serve needs `pods: enforce` too\n",
  ]);
  const wrong = await run([...daemon, "--device-wait-seconds", "soon", "--pod-resources-directory", "here"]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(/--device-wait-seconds: must be a number/);
  expect(wrong.stderr).toMatch(/--pod-resources-directory: must be a path from `\/`/);
  const choice = await run([...daemon, "--device-plugins", "on"]);
  expect([choice.code, choice.stderr]).toEqual([2, expect.stringMatching(/Allowed choices are off, serve/)]);
});

test("--dry-run accepts the device settings, and serves nothing", async () => {
  const node = deviceNode();
  mkdirSync(node.at("m"));
  const runs = ["--mode", "enforce", "--pods", "enforce", "--device-plugins", "serve", "--manifests", node.at("m")];
  const dry = await run(["actuator", "--dry-run", "-o", "json", ...node.place, ...runs, ...node.plugins]);
  expect(dry.stderr).not.toContain("device-plugins");
  expect([dry.code, JSON.parse(dry.stdout).decidedBy], dry.stderr).toEqual([0, "here"]);
});
