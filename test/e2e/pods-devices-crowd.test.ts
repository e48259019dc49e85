import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../api/base/limits.ts";
import { healthy, type NodePlugin } from "../actuator/deviceplugin/node-plugin.ts";
import { deviceOf, GPU, pluginOn } from "./pods/devices.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";

const LONG_MS = 300_000;
const why = noPods("pods beside device plugins that exceed a limit");
/** The answer of a plugin with this many variables of 100,000 bytes each. */
const answering = (variables: number) => () => {
  const names = Array.from({ length: variables }, (_, i) => `BIG${i}`);
  return { containerResponses: [{ envs: Object.fromEntries(names.map((name) => [name, "x".repeat(100_000)])) }] };
};

describe.skipIf(why !== undefined)("device plugins that exceed a limit", { timeout: LONG_MS }, () => {
  let node: PodNode;
  const plugins: NodePlugin[] = [];
  const joins = async (plugin: NodePlugin): Promise<void> => {
    plugins.push(plugin);
    await plugin.start();
  };
  const checkpoint = () => join(node.dir, "state/managers/device-plugins/kubelet_internal_checkpoint");
  beforeAll(async () => {
    node = await PodNode.start({ settings: { devicePlugins: "serve", deviceWaitSeconds: 600, retrySeconds: 1 } });
    const gpus = pluginOn(node, ["a", "b", "c", "d"]);
    await node.startDaemon().until("its first turn", ({ pods }) => pods);
    await joins(gpus);
  }, LONG_MS);
  afterAll(async () => {
    for (const plugin of plugins) await plugin.vanish();
    await node?.stop();
  }, LONG_MS);

  test("for device ids do not keep pods with other devices, or without devices, from starting", async () => {
    const ids = Array.from({ length: 1000 }, (_, i) => `${i}`.padStart(4000, "L"));
    const hogs = ["hog.io/h1", "hog.io/h2"];
    for (const resource of hogs) await joins(pluginOn(node, [], { resource, devices: healthy(...ids) }));
    const messages = await node.daemon.until("the problems of both plugins", ({ problems }) => {
      const its = hogs.map((resource) => problems.find((message) => message.includes(resource)));
      return its.includes(undefined) ? undefined : its;
    });
    for (const message of messages) expect(message).toContain("take more than 80 bytes each");
    node.put("device", deviceOf("device", 1, GPU));
    node.put("plain", podOf("plain", {}));
    await node.daemon.running("device");
    await node.daemon.running("plain");
  });

  test("for Allocate answers get only their own pods refused, with the reason, and other pods start", async () => {
    await joins(pluginOn(node, ["x"], { resource: "big.io/one", answers: { Allocate: answering(3) } }));
    await joins(
      pluginOn(node, ["b0", "b1", "b2", "b3", "b4"], { resource: "big.io/many", answers: { Allocate: answering(2) } }),
    );
    node.put("big", deviceOf("big", 1, "big.io/one"));
    const big = await node.daemon.pod("big", "waiting", ({ message }) => message.includes("more than 262144"));
    expect(big.message).toContain("device plugin of big.io/one");
    for (let i = 0; i < 5; i++) node.put(`many${i}`, deviceOf(`many${i}`, 1, "big.io/many"));
    await node.daemon.until("one has no room", ({ pods }) =>
      pods.find(({ message }) => message.includes("ids and answers of big.io/many would take")),
    );
    expect(statSync(checkpoint()).size).toBeLessThan(LIMITS.stateText / 2);
    node.put("late", deviceOf("late", 1, GPU));
    node.put("lateplain", podOf("lateplain", {}));
    await node.daemon.running("late");
    await node.daemon.running("lateplain");
  });
});
