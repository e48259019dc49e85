import { mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ManagerFiles } from "../../../actuator/pods/devices/manager-files.ts";
import { LIMITS } from "../../../api/base/limits.ts";
import { appPod, SimulatedPodsNode } from "./node/simulated-node.ts";
import { scratch } from "./scratch.ts";

/** The files that were synced and renamed, in order; the real calls run too. */
const seen = vi.hoisted((): string[] => []);
vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const fsyncSync = (fd: number): void => {
    seen.push(`sync ${readlinkSync(`/proc/self/fd/${fd}`)}`);
    fs.fsyncSync(fd);
  };
  const renameSync = (from: string, to: string): void => {
    seen.push(`name ${to}`);
    fs.renameSync(from, to);
  };
  return { ...fs, fsyncSync, renameSync };
});

const next = (text: string) => ({ assignments: { cpu_manager_state: text, "../other": "x" } });

test("the state files that a decision returns are written once, and read again at the next start", () => {
  const directory = join(scratch(), "managers");
  const files = new ManagerFiles(directory);
  expect(files.read().assignments).toBeUndefined();
  expect(files.persist(null)).toEqual({ ok: true, value: false });
  expect(files.persist(next("one"))).toEqual({ ok: true, value: true });
  expect(files.persist(next("one"))).toEqual({ ok: true, value: false });
  expect(files.version).toBe(2);
  expect(readFileSync(join(directory, "cpu_manager_state"), "utf8")).toBe("one");
  expect(new ManagerFiles(directory).read().assignments).toEqual({ cpu_manager_state: "one" });
});

test("a failed write leaves the former content in force", () => {
  const directory = scratch();
  const files = new ManagerFiles(directory);
  files.persist(next("one"));
  mkdirSync(join(directory, "cpu_manager_state.new"));
  expect(files.persist(next("two")).ok).toBe(false);
  expect(files.read().assignments).toEqual({ cpu_manager_state: "one" });
  expect(files.version).toBe(2);
});

test("state too large to be read back is refused with the limit, and all files stay as they were", () => {
  const directory = scratch();
  const files = new ManagerFiles(directory);
  // two bytes each, so that bytes and characters differ
  const largest = "é".repeat(LIMITS.stateText / 2);
  expect(files.persist(next(largest)).ok).toBe(true);
  expect(new ManagerFiles(directory).read()).toEqual({ assignments: { cpu_manager_state: largest }, missing: [] });

  const kept = files.persist({ assignments: { memory_manager_state: "new", cpu_manager_state: `${largest}x` } });
  expect(kept).toEqual({
    ok: false,
    error: `state files in ${directory}: cpu_manager_state would have 4194305 bytes, and more than 4194304 (the limit \`stateText\`) are not read back: it stays as it was`,
  });
  expect(readdirSync(directory)).toEqual(["cpu_manager_state"]);
  expect(new ManagerFiles(directory).read()).toEqual(files.read());
  // reading refuses one more byte too
  writeFileSync(join(directory, "cpu_manager_state"), `${largest}x`);
  expect(new ManagerFiles(directory).read().missing).toHaveLength(1);
});

test("each file is synced before it is renamed, and its directory after", () => {
  const directory = join(realpathSync(scratch()), "managers");
  const files = new ManagerFiles(directory);
  seen.length = 0;
  const kept = files.persist({ assignments: { cpu_manager_state: "one", kubelet_internal_checkpoint: "{}" } });
  expect(kept).toEqual({ ok: true, value: true });
  const cpus = join(directory, "cpu_manager_state");
  const devices = join(directory, "device-plugins/kubelet_internal_checkpoint");
  expect(seen).toEqual([
    ...[`sync ${cpus}.new`, `name ${cpus}`, `sync ${directory}`],
    ...[`sync ${devices}.new`, `name ${devices}`, `sync ${join(directory, "device-plugins")}`],
  ]);
});

test("a refusal over another policy's state file names the file to delete", async () => {
  const configuration: { cpuManagerPolicy: string } = { cpuManagerPolicy: "none" };
  const world = new SimulatedPodsNode({ configuration });
  world.pods = [appPod("web", { cpu: "1" })];
  await world.run(4);
  configuration.cpuManagerPolicy = "static";
  world.restart();
  world.pods = [...world.pods, appPod("next", { cpu: "1" })];
  await world.run(4);
  const { refusal } = world.pod("next").record;
  const file = join(world.dir, "state/managers/cpu_manager_state");
  expect(readFileSync(file, "utf8")).toContain("none");
  expect(refusal?.reason).toBe("KubeletDoesNotStart");
  expect(refusal?.message).toMatch(/delete the CPU manager checkpoint file "\/var\/lib\/kubelet\/cpu_manager_state"/);
  expect(refusal?.message).toContain(`; here that is "${file}", to be deleted while the daemon does not run`);
});
