import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import { entriesIn, entry, GPU, hold, joined, letIn, messages, nodeWith, ONE, RUNNING } from "./manager-kit.ts";

/** An answer with `bytes` bytes of environment variables, each short enough for a program to start with. */
const answering = (bytes: number) => () => {
  const names = Array.from({ length: Math.ceil(bytes / 100_000) }, (_, i) => `BIG${i}`);
  const envs = Object.fromEntries(names.map((name) => [name, "x".repeat(Math.ceil(bytes / names.length))]));
  return { containerResponses: [{ envs }] };
};

describe("limits on what one device plugin may take", () => {
  test("lists of long device ids are refused by name, and other plugins' pods are admitted", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a") });
    const long = healthy(...Array.from({ length: 1000 }, (_, i) => `${i}`.padStart(4000, "L")));
    for (const resource of ["hog.io/h1", "hog.io/h2"]) await node.plugin({ resource, devices: long }).start();
    const reported = await until(
      () => messages(node).filter((message) => message.includes("hog.io")),
      (of) => of.length === 2,
      20_000,
    );
    expect(reported[0]).toContain("`hog.io/h1`");
    expect(reported[0]).toContain("1000 devices whose ids (and NUMA nodes) take more than 80 bytes each");
    node.manager.update(new Set());
    letIn(node, limited("p", ONE));
    node.manager.update(new Set(["p"]));
    expect(await node.manager.allocate(limited("p", ONE), RUNNING)).toMatchObject({ ok: true });
    expect(messages(node).filter((message) => message.includes("state files"))).toEqual([]);
  });

  test("Allocate answers beyond a plugin's share refuse its own pods, and others' are admitted", async () => {
    const node = await nodeWith();
    const [ids, names] = [Array.from({ length: 8 }, (_, i) => `b${i}`), Array.from({ length: 8 }, (_, i) => `big${i}`)];
    await joined(node, { resource: GPU, devices: healthy("a") });
    const answers = { Allocate: answering(250_000) };
    await joined(node, { resource: "big.io/b", devices: healthy(...ids), answers });
    const living = [];
    const refused = [];
    for (const name of names) {
      const pod = limited(name, { app: { "big.io/b": 1 } });
      letIn(node, pod, living);
      const prepared = await node.manager.allocate(pod, RUNNING);
      if (prepared.ok) living.push(pod);
      else refused.push(prepared.error);
    }
    expect(living.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.message).toMatch(/ids and answers of big.io\/b would take \d+ bytes/);
    expect(refused[0]?.keeps).toBeUndefined();
    const pod = limited("p", ONE);
    letIn(node, pod, living);
    expect(await node.manager.allocate(pod, RUNNING)).toMatchObject({ ok: true });
    expect(entriesIn(node).map(({ podUid }) => podUid)).toEqual([...living.map(({ uid }) => uid), "p"]);
  });

  test("one Allocate answer larger than a container can use is not kept", async () => {
    const node = await nodeWith();
    const answers = { Allocate: answering(300_000) };
    await joined(node, { resource: GPU, devices: healthy("a"), answers });
    letIn(node, limited("p", ONE));
    const prepared = await node.manager.allocate(limited("p", ONE), RUNNING);
    expect(!prepared.ok && prepared.error.message).toMatch(
      /has \d+ bytes, more than 262144 \(device plugin of example.com\/gpu at /,
    );
    expect(entriesIn(node)).toEqual([]);
  });

  test("a pod whose device ids do not fit into the checkpoint is refused with that reason", async () => {
    const node = await nodeWith();
    await joined(node, {
      resource: GPU,
      devices: healthy(...Array.from({ length: 20_000 }, (_, i) => `${i}`.padStart(60, "d"))),
    });
    const pod = limited("p", { app: { [GPU]: 20_000 } });
    letIn(node, pod);
    expect(entriesIn(node)).toEqual([]);
    const prepared = await node.manager.allocate(pod, RUNNING);
    expect(!prepared.ok && prepared.error.message).toContain(`ids and answers of ${GPU} would take`);
    const less = limited("less", { app: { [GPU]: 4_096 } });
    letIn(node, less);
    expect(await node.manager.allocate(less, RUNNING)).toMatchObject({ ok: true });
  });
});

test("while the checkpoint cannot be written the fault stands, and pods that want devices wait", async () => {
  const node = await nodeWith();
  await joined(node, { resource: GPU, devices: healthy("a", "b") });
  hold(node.files, entry("gone", ["b"], ""));
  const inTheWay = join(node.stateDir, "managers/device-plugins/kubelet_internal_checkpoint.new");
  const probe = join(node.stateDir, "managers/device-plugins/kubelet_internal_checkpoint.probe.new");
  for (const path of [inTheWay, probe]) mkdirSync(path);
  const pod = limited("p", ONE);
  expect(() => letIn(node, pod)).toThrow("EISDIR");
  for (let i = 0; i < 5; i++) {
    node.manager.update(new Set());
    expect(messages(node).filter((message) => message.includes("EISDIR"))).toHaveLength(1);
  }
  expect(node.manager.whyPending(pod)).toMatchObject({ reason: "DeviceCheckpointNotWritten", isReported: false });
  // the devices of a removed pod are released in the same write, which also fails
  const plain = limited("plain", { app: {} });
  expect(node.manager.whyPending(plain)).toBeNull();
  letIn(node, plain);
  const { version } = node.manager;
  for (const path of [inTheWay, probe]) rmdirSync(path);
  node.manager.update(new Set());
  expect(messages(node).filter((message) => message.includes("EISDIR"))).toEqual([]);
  expect(node.manager.whyPending(pod)).toBeNull();
  await until(
    () => node.manager.version,
    (now) => now > version,
    20_000,
  );
  letIn(node, pod);
  expect(entriesIn(node).map(({ podUid }) => podUid)).toEqual(["p"]);
});
