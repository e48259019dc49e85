import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { logLinksIn } from "../../../../actuator/pods/sync/log-link.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

test("a missing log link is made again, and something else in its place is reported once", async () => {
  const messages: string[] = [];
  const world = new SimulatedPodsNode({
    logLinks: (dir) => logLinksIn(join(dir, "links"), (message) => messages.push(message)),
  });
  const links = join(world.dir, "links");
  world.pods = [appPod("a", { cpu: "100m" })];
  await world.run(3);
  const [container] = world.pod("a").runtimePod?.containers ?? [];
  const log = container?.logPath ?? "";
  // the simulated runtime writes no log, and without a log there is no link
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, "a line\n");
  await world.run(12);
  const [name = ""] = readdirSync(links);
  expect([name, readlinkSync(join(links, name))]).toEqual([`a_default_app-${container?.id}.log`, log]);
  rmSync(links, { recursive: true });
  await world.run(12);
  expect(readdirSync(links)).toEqual([name]);
  rmSync(join(links, name));
  writeFileSync(join(links, name), "somebody's");
  await world.run(42);
  expect(messages).toEqual([expect.stringContaining(`link ${join(links, name)}: `)]);
  rmSync(join(links, name));
  await world.run(12);
  expect(readlinkSync(join(links, name))).toBe(log);
  // links of a removed pod are deleted
  world.pods = [];
  await world.run(30);
  expect(readdirSync(links)).toEqual([]);
});

test("links of containers removed by others are deleted at the next look, and foreign links stay", async () => {
  const messages: string[] = [];
  const world = new SimulatedPodsNode({
    logLinks: (dir) => logLinksIn(join(dir, "links"), (message) => messages.push(message)),
  });
  const links = join(world.dir, "links");
  world.pods = [appPod("a", { cpu: "100m" })];
  await world.run(3);
  const log = world.pod("a").runtimePod?.containers[0]?.logPath ?? "";
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, "a line\n");
  await world.run(12);
  const [own = ""] = readdirSync(links);
  const gone = "a_default_app-gone.log";
  // links to another agent's container, and to an unknown pod
  const others = ["a_default_app-theirs.log", "z_default_app-theirs.log"];
  symlinkSync(log, join(links, gone));
  symlinkSync("/elsewhere/default_a_a/app/0.log", join(links, others[0] ?? ""));
  symlinkSync(log.replace("default_a_", "default_z_"), join(links, others[1] ?? ""));
  await world.run(12);
  expect(readdirSync(links).sort()).toEqual([own, ...others].sort());
  // the container and its log are removed by others: the link would lead to the log of the next instance
  symlinkSync(log, join(links, gone));
  world.pods = [];
  await world.run(30);
  expect([readdirSync(links).sort(), messages]).toEqual([others, []]);
});
