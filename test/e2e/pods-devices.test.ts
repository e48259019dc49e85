import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readCheckpoint } from "../../api/decide/devices/checkpoint-read.ts";
import { healthy, type NodePlugin } from "../actuator/deviceplugin/node-plugin.ts";
import { clientOf } from "../actuator/podresources/served.ts";
import { bringing, deviceOf, GPU, NIC, pluginOn } from "./pods/devices.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const SERVED = { devicePlugins: "serve", deviceWaitSeconds: 600, retrySeconds: 1 };
const why = noPods("pods with devices");

/** The devices that each container holds according to the daemon's own checkpoint. */
function heldIn(node: PodNode): Readonly<Record<string, readonly string[]>> {
  const text = readFileSync(
    join(node.dir, "state", "managers", "device-plugins", "kubelet_internal_checkpoint"),
    "utf8",
  );
  const read = readCheckpoint(text);
  if (!read.ok) throw new Error(read.error.message);
  return Object.fromEntries(
    (read.value.entries ?? []).map(({ podUid, containerName, deviceIds }) => [
      `${podUid} ${containerName}`,
      [...(deviceIds?.values() ?? [])].flatMap((ids) => ids ?? []).toSorted(),
    ]),
  );
}
const allocations = (plugin: NodePlugin): number =>
  plugin.requests.filter(({ method }) => method === "Allocate").length;

describe.skipIf(why !== undefined)("pods with devices", { timeout: LONG_MS }, () => {
  let node: PodNode;
  const undo: (() => unknown)[] = [];
  const started = (plugin: NodePlugin): NodePlugin => {
    undo.push(() => plugin.vanish(), plugin.comeBack("kubelet.sock"));
    return plugin;
  };
  beforeAll(async () => {
    node = await PodNode.start({ settings: SERVED });
  }, LONG_MS);
  afterAll(async () => {
    for (const step of undo.toReversed()) await step();
    await node?.stop();
  }, LONG_MS);

  test("wait for their device plugin, and get the devices it lists", async () => {
    node.put("one", deviceOf("one", 2, GPU, { uid: "uid-one" }));
    const daemon = node.startDaemon();
    const waits = await daemon.pod("one", "waiting", ({ reason }) => reason === "WaitingForDevicePlugin");
    expect(waits.message).toBe(`deferred until the device plugin of ${GPU} has registered, at most 600 s`);
    const gpus = started(pluginOn(node, ["a", "b", "c", "d"]));
    writeFileSync(join(node.dir, "vendor", "driver"), "works\n");
    await gpus.start();
    await daemon.running("one");
    const [one] = await node.containersOf("one");
    const ids = heldIn(node)["uid-one app"] ?? [];
    expect(ids).toEqual(["a", "b"]);
    const script = `echo $VISIBLE_DEVICES; cat /vendor/driver; echo x > /dev/gpu-a && ls /dev | grep gpu | sort; touch /vendor/new 2>&1 | grep -o Read-only`;
    expect(await node.exec(one?.id ?? "", script)).toBe("a,b\nworks\ngpu-a\ngpu-b\nRead-only");
    const row = await daemon.until("the devices' row", ({ devices }) => devices?.find((d) => d.allocated === 2));
    expect(row).toMatchObject({ resource: GPU, plugin: "registered", capacity: 4, allocatable: 4, pending: 0 });
    expect(row.holders).toMatchObject([{ pod: expect.stringMatching(/^default\/one/), container: "app", ids }]);
  });

  test("are refused in the kubelet's words while too few devices are free, and admitted later", async () => {
    node.put("three", deviceOf("three", 3, GPU, { uid: "uid-three" }));
    const { daemon } = node;
    const refused = await daemon.pod("three", "refused", ({ reason }) => reason === "UnexpectedAdmissionError");
    const words = `requested number of devices unavailable for ${GPU}. Requested: 3, Available: 2`;
    expect(refused.message).toContain(`Allocate failed due to ${words}, which is unexpected`);
    node.remove("one");
    await daemon.running("three");
    expect(Object.keys(heldIn(node))).toEqual(["uid-three app"]);
    node.remove("three");
    await daemon.gone("one", "three");
  });

  test("keep their devices when the daemon is killed, and nobody else gets them", async () => {
    node.put("keeps", deviceOf("keeps", 3, GPU, { uid: "uid-keeps" }));
    await node.daemon.running("keeps");
    const before = heldIn(node)["uid-keeps app"];
    const [container] = await node.containersOf("keeps");
    await node.daemon.kill();
    node.put("late", deviceOf("late", 1, GPU, { uid: "uid-late" }));
    const daemon = node.startDaemon();
    await daemon.running("keeps", "late");
    expect(await node.containersOf("keeps")).toMatchObject([{ id: container?.id, state: "running" }]);
    const held = heldIn(node);
    expect(held["uid-keeps app"]).toEqual(before);
    expect([...(held["uid-late app"] ?? []), ...(before ?? [])].toSorted()).toEqual(["a", "b", "c", "d"]);
    // the plugin's first answer suffices
    const ask = clientOf(join(node.dir, "pr", "kubelet.sock"));
    const message = await until("the exporters' view", async () => {
      const list = JSON.stringify(await ask("List"));
      return list.includes("late") && list.includes("keeps") ? list : undefined;
    });
    expect(message).toContain(GPU);
    node.remove("keeps", "late");
    await daemon.gone("keeps", "late");
    await until("all devices' return", () => (Object.keys(heldIn(node)).length === 0 ? true : undefined));
  });

  test("keep running when their plugin dies, and new ones wait for it", async () => {
    const nics = pluginOn(node, ["n1", "n2"], { resource: NIC });
    undo.push(() => nics.vanish());
    await nics.start();
    const { daemon } = node;
    node.put("runs", deviceOf("runs", 1, NIC));
    await daemon.running("runs");
    await nics.vanish();
    await daemon.until("the plugin's end", ({ devices }) =>
      devices?.find(({ resource, allocatable }) => resource === NIC && allocatable === 0),
    );
    node.put("new", deviceOf("new", 1, NIC));
    const waits = await daemon.pod("new", "waiting", ({ reason }) => reason === "WaitingForDevicePlugin");
    expect(waits.message).toBe(`deferred until the device plugin of ${NIC} has registered, at most 600 s`);
    expect((await node.containersOf("runs")).map(({ state }) => state)).toEqual(["running"]);
    await nics.start();
    await daemon.running("new", "runs");
    node.remove("runs", "new");
    await daemon.gone("runs", "new");
  });

  test("are not held up by another pod's failing or hanging Allocate, whose devices are released", async () => {
    const bad = pluginOn(node, ["x", "y"], { resource: "example.com/bad" });
    const hung = pluginOn(node, ["h"], { resource: "example.com/hung" });
    bad.script.answers = { Allocate: () => new Error("out of order") };
    hung.script.answers = { Allocate: () => "hang" };
    for (const plugin of [bad, hung]) {
      undo.push(() => plugin.vanish());
      await plugin.start();
    }
    const { daemon } = node;
    node.put("hung", deviceOf("hung", 1, "example.com/hung", { uid: "uid-hung" }));
    await until("the call that hangs", () => (allocations(hung) > 0 ? true : undefined));
    node.put("bad", deviceOf("bad", 2, "example.com/bad", { uid: "uid-bad" }));
    node.put("well", deviceOf("well", 1));
    const refused = await daemon.pod("bad", "refused", ({ reason }) => reason === "UnexpectedAdmissionError");
    const words = "rpc error: code = Unknown desc = out of order";
    expect(refused.message).toContain(`Allocate failed due to ${words}, which is unexpected`);
    await daemon.running("well");
    expect(allocations(hung)).toBe(1);
    await until("the devices' return", () => (heldIn(node)["uid-bad app"] === undefined ? true : undefined));
    bad.script.answers = { Allocate: bringing(join(node.dir, "vendor")) };
    await daemon.running("bad");
    node.remove("hung", "bad", "well");
    await daemon.gone("hung", "bad", "well");
  });

  test("reuse an init container's devices, chosen by the plugin and prepared before each start", async () => {
    const own = "example.com/own";
    const plugin = pluginOn(node, ["p0", "p1", "p2", "p3"], {
      resource: own,
      options: { getPreferredAllocationAvailable: true, preStartRequired: true },
    });
    plugin.script.answers = {
      ...plugin.script.answers,
      GetPreferredAllocation: () => ({ containerResponses: [{ deviceIDs: ["p3", "p1"] }] }),
    };
    undo.push(() => plugin.vanish());
    await plugin.start();
    const limits = { [own]: 2 };
    const init = { name: "first", script: "echo $VISIBLE_DEVICES", limits };
    node.put("own", podOf("own", { uid: "uid-own", initContainers: [init], containers: [{ limits }] }));
    await node.daemon.running("own");
    const held = heldIn(node);
    expect(held["uid-own first"]).toEqual(["p1", "p3"]);
    expect(held["uid-own app"]).toEqual(["p1", "p3"]);
    const starts = plugin.requests.filter(({ method }) => method === "PreStartContainer");
    expect(starts.map(({ request }) => (request["devicesIds"] as string[]).toSorted())).toEqual([
      ["p1", "p3"],
      ["p1", "p3"],
    ]);
    node.remove("own");
    await node.daemon.gone("own");
  });

  test("wait after a reboot until the plugins were called again", async () => {
    const gpus = pluginOn(node, ["r0", "r1"], { resource: "example.com/reboot" });
    undo.push(() => gpus.vanish());
    await gpus.start();
    node.put("boots", deviceOf("boots", 1, "example.com/reboot", { uid: "uid-boots" }));
    await node.daemon.running("boots");
    await node.daemon.kill();
    await gpus.vanish();
    const [container] = await node.containersOf("boots");
    // the state after a reboot: dead containers, and another boot id
    await node.kill(container?.id ?? "");
    const bootFile = join(node.dir, "state", "managers", "device-plugins", "boot_id");
    writeFileSync(bootFile, "00000000-0000-4000-8000-000000000000");
    const before = allocations(gpus);
    const daemon = node.startDaemon();
    const waits = await daemon.until("the wait for the plugin", ({ pods }) =>
      pods.find(({ message }) => message.includes("deferred until the device plugin of example.com/reboot")),
    );
    expect(waits.name).toContain("boots");
    await gpus.start();
    await daemon.running("boots");
    expect(allocations(gpus)).toBe(before + 1);
    expect(heldIn(node)["uid-boots app"]).toEqual(["r0"]);
    node.remove("boots");
    await daemon.gone("boots");
  });

  test("report changes of their devices' health in the container's status", async () => {
    const flips = pluginOn(node, ["f0", "f1"], { resource: "example.com/flips" });
    undo.push(() => flips.vanish());
    await flips.start();
    const { daemon } = node;
    const rowWith = (allocatable: number) =>
      daemon.until(`${allocatable} healthy`, ({ devices }) =>
        devices?.find((row) => row.resource === "example.com/flips" && row.allocatable === allocatable),
      );
    await rowWith(2);
    node.put("flips", deviceOf("flips", 2, "example.com/flips"));
    const reportOf = (...health: readonly string[]) =>
      daemon.pod("flips", `with ${health}`, ({ containers: [app] }) => {
        const [one] = app?.allocatedResourcesStatus ?? [];
        return one?.name === "example.com/flips" && `${one.resources.map((device) => device.health)}` === `${health}`;
      });
    await reportOf("Healthy", "Healthy");
    // a pod that has not started is refused if its device is unhealthy
    await daemon.running("flips");
    flips.list([{ ID: "f0", health: "Unhealthy" }, ...healthy("f1")]);
    expect(await rowWith(1)).toMatchObject({ capacity: 2, flips: 1 });
    await reportOf("Unhealthy", "Healthy");
    node.remove("flips");
    await daemon.gone("flips");
  });
});
