import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { persistDeviceCheckpoint } from "../../../../actuator/pods/devices/manager-files.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy, register, until } from "../../deviceplugin/node-plugin.ts";
import {
  ANSWER,
  checkpointIn,
  decided,
  entriesIn,
  entry,
  GPU,
  historyOf,
  hold,
  joined,
  letIn,
  messages,
  NIC,
  nodeWith,
  ONE,
  RUNNING,
} from "./manager-kit.ts";

describe("update", () => {
  test("writes the registered resources to the checkpoint only when they change", async () => {
    const node = await nodeWith({ graceMs: 300 });
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b") });
    node.manager.update(new Set());
    expect(checkpointIn(node.files).registered).toEqual(new Map([[GPU, ["a", "b"]]]));
    gpu.list(healthy("a"));
    await until(node.manager.host.devices, (devices) => devices.length === 1);
    const before = node.files.read();
    node.manager.update(new Set());
    expect(node.files.read()).toBe(before);
    const nic = await joined(node, { resource: NIC, devices: healthy("n") });
    node.manager.update(new Set());
    expect(checkpointIn(node.files).registered).toEqual(
      new Map([
        [GPU, ["a"]],
        [NIC, ["n"]],
      ]),
    );
    await nic.vanish();
    await until(
      () => node.manager.host.states()[1]?.state,
      (state) => state === "removed",
    );
    node.manager.update(new Set());
    expect([...(checkpointIn(node.files).registered?.keys() ?? [])]).toEqual([GPU]);
    // the registration that the previous daemon recorded stays as long as a kubelet would keep it
    await node.restart();
    node.manager.update(new Set());
    expect([...(checkpointIn(node.files).registered?.keys() ?? [])]).toEqual([GPU]);
    node.clock.aheadMs = 300_001;
    node.manager.update(new Set());
    expect(checkpointIn(node.files).registered).toEqual(new Map());
  });

  test("changes nothing when the decision already wrote the same registered resources", async () => {
    const node = await nodeWith();
    persistDeviceCheckpoint(node.files, { entries: null, registered: new Map([[NIC, ["n"]]]) });
    await node.restart();
    await joined(node, { resource: GPU, devices: healthy("a") });
    letIn(node, limited("p", ONE));
    const before = node.files.read();
    node.manager.update(new Set(["p"]));
    expect(node.files.read()).toBe(before);
  });

  test("reports devices of removed pods after a restart, until the next decision releases them", async () => {
    const node = await nodeWith();
    hold(node.files, entry("gone", ["a", "b"], ANSWER), entry("here", ["c"], ANSWER));
    await node.restart();
    await joined(node, { resource: GPU, devices: healthy("a", "b", "c") });
    for (let i = 0; i < 2; i++) node.manager.update(new Set(["here"]));
    expect(messages(node)).toEqual([
      `2 devices of ${GPU} are held by container app of pod gone, which is not on the node: they are taken back with the next decision`,
    ]);
    const leaks = () => historyOf(node).filter(({ kind }) => kind === "leak");
    expect(leaks()).toMatchObject([{ resource: GPU, podUid: "gone", container: "app", count: 2, devices: ["a", "b"] }]);
    // a pod that is removed later is not a leak
    letIn(node, limited("p", ONE), []);
    node.manager.update(new Set());
    expect(messages(node)).toEqual([]);
    expect(leaks()).toHaveLength(1);
    expect(
      historyOf(node)
        .filter(({ kind }) => kind === "given-back")
        .map(({ podUid }) => podUid),
    ).toEqual(["gone", "here"]);
  });

  test("reports a device that two pods hold", async () => {
    const node = await nodeWith();
    hold(node.files, entry("p", ["a", "b"], ANSWER), entry("q", ["b"], ANSWER));
    node.manager.update(new Set(["p", "q"]));
    expect(node.manager.problems()).toEqual([
      { from: "state-files", message: `device \`b\` of ${GPU} is allocated to pods p and q at the same time` },
    ]);
  });

  test("reports an unreadable checkpoint with the kubelet's reason, and keeps a copy of the file", async () => {
    const node = await nodeWith();
    hold(node.files, entry("p", ["a"], ANSWER));
    const file = join(node.stateDir, "managers/device-plugins/kubelet_internal_checkpoint");
    const broken = readFileSync(file, "utf8").replace(/"Checksum":\d+/, '"Checksum":7');
    writeFileSync(file, broken);
    await node.restart();
    await joined(node, { resource: GPU, devices: healthy("a") });
    node.manager.update(new Set(["p"]));
    expect(messages(node)).toEqual([
      `${file}: checkpoint is corrupted; no device counts as allocated, until one is allocated again`,
    ]);
    expect(readFileSync(file, "utf8")).toBe(broken);
    const pod = limited("q", ONE);
    letIn(node, pod);
    expect(entriesIn(node)).toEqual([entry("q", ["a"])]);
    // for some time the daemon reports what happened to the file
    expect(messages(node)).toEqual([expect.stringContaining(`the file is kept as ${file}.broken`)]);
  });

  test("records plugin events, flips in one entry, and allocated and released devices in the history", async () => {
    const node = await nodeWith({ graceMs: 300 });
    const ids = Array.from({ length: 30 }, (_, i) => `gpu-${i}`);
    const gpu = await joined(node, { resource: GPU, devices: healthy(...ids) });
    const look = () => node.manager.update(new Set(["p"]));
    look();
    const pod = limited("p", ONE);
    node.manager.whyPending(pod);
    letIn(node, pod);
    look();
    await node.manager.allocate(pod, RUNNING);
    look();
    const state = () => node.manager.host.states()[0];
    gpu.list([...ids.slice(1).map((ID) => ({ ID, health: "Unhealthy" })), ...healthy("new")]);
    await until(state, (s) => (s?.flips ?? 0) === 29);
    look();
    look();
    await gpu.vanish();
    await until(state, (s) => s?.state === "stopped");
    look();
    await until(state, (s) => s?.state === "removed");
    look();
    const reported = historyOf(node).map(({ at: _at, flips, ...rest }) => ({
      ...rest,
      ...(flips && { ids: flips.length }),
    }));
    expect(reported).toEqual([
      { kind: "registered", resource: GPU, endpoint: gpu.socketPath, count: 30 },
      {
        kind: "allocated",
        resource: GPU,
        count: 1,
        devices: ["gpu-0"],
        podUid: "p",
        pod: "default/p",
        container: "app",
      },
      // 29 become unhealthy, one disappears, one is new
      { kind: "flips", resource: GPU, count: 31, ids: 16 },
      { kind: "flips", resource: GPU, count: 1, ids: 1 },
      { kind: "ended", resource: GPU, endpoint: gpu.socketPath },
      { kind: "removed", resource: GPU },
    ]);
    const [first] = historyOf(node).filter(({ kind }) => kind === "flips");
    expect(first?.flips).toContainEqual({ id: "new", from: null, to: "Healthy" });
    expect(first?.flips).toContainEqual({ id: "gpu-0", from: "Healthy", to: null });
    expect(first?.flips).toContainEqual({ id: "gpu-29", from: "Healthy", to: "Unhealthy" });
  });

  test("records a resource that keeps flipping twice a minute at most, with every flip", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    const flip = async (flips: number) => {
      gpu.list([{ ID: "a", health: flips % 2 === 0 ? "Healthy" : "Unhealthy" }]);
      await until(
        () => node.manager.host.states()[0]?.flips,
        (n) => n === flips,
      );
      node.manager.update(new Set());
    };
    const counts = () => historyOf(node).flatMap(({ kind, count }) => (kind === "flips" ? [count] : []));
    node.manager.update(new Set());
    for (const flips of [1, 2, 3]) await flip(flips);
    expect(counts()).toEqual([1]);
    node.clock.aheadMs = 30_000;
    node.manager.update(new Set());
    node.manager.update(new Set());
    expect(counts()).toEqual([1, 2]);
    await gpu.vanish();
    await until(
      () => node.manager.host.states()[0]?.state,
      (state) => state === "stopped",
    );
    node.manager.update(new Set());
    expect(historyOf(node).map(({ kind }) => kind)).toEqual(["registered", "flips", "flips", "ended"]);
  });

  test("reports plugin faults while they stand, and records refused registrations in the history", async () => {
    const node = await nodeWith();
    const endpoint = "x.sock";
    const socket = join(node.dir, "kubelet.sock");
    for (let i = 0; i < 3; i++)
      await register(socket, { version: "v1", endpoint, resourceName: GPU }).catch(() => undefined);
    node.manager.update(new Set());
    const words = 'requested API version "v1" is not supported by kubelet. Supported version is ["v1beta1"]';
    expect(messages(node)).toEqual([`Register of \`${GPU}\` at ${endpoint}: REFUSED: ${words}`]);
    expect(historyOf(node)).toMatchObject([{ kind: "refused", resource: GPU, endpoint, message: words }]);
    await joined(node, { resource: GPU, devices: healthy("a") });
    expect(messages(node)).toEqual([]);
    await register(socket, { version: "v1", endpoint, resourceName: NIC }).catch(() => undefined);
    expect(messages(node)).toHaveLength(1);
    node.clock.aheadMs = 300_001;
    expect(messages(node)).toEqual([]);
  });
});

test("opening a second host in the same directory fails, and the first daemon keeps working", async () => {
  const node = await nodeWith();
  await expect(nodeWith({ pluginDir: node.dir })).rejects.toThrow("another process answers there");
  await joined(node, { resource: GPU, devices: healthy("a") });
  expect(decided(node, limited("p", ONE)).refusal).toBeNull();
});
