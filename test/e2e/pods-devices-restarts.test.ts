import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { readDeviceHistory } from "../../actuator/pods/devices/history.ts";
import { writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { readCheckpoint } from "../../api/decide/devices/checkpoint-read.ts";
import type { NodePlugin } from "../actuator/deviceplugin/node-plugin.ts";
import { GO_BUILDS, type GoPlugin, goPlugin, startGoPlugin } from "./deviceplugin/go-plugin.ts";
import { bringing, deviceOf, pluginOn } from "./pods/devices.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const SERVED = { devicePlugins: "serve", deviceWaitSeconds: 600, retrySeconds: 1 };
const why = noPods("devices over restarts");

describe.skipIf(why !== undefined)("pods' devices across restarts", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let plugin: NodePlugin;
  let stopWatching = (): void => {};
  const GPU = "example.com/gpu";
  const file = () => join(node.dir, "state", "managers", "device-plugins", "kubelet_internal_checkpoint");
  const checkpoint = () => {
    const read = readCheckpoint(readFileSync(file(), "utf8"));
    if (!read.ok) throw new Error(read.error.message);
    return read.value;
  };
  const idsOf = (uid: string): readonly string[] =>
    (checkpoint().entries ?? [])
      .filter(({ podUid }) => podUid === uid)
      .flatMap(({ deviceIds }) => [...(deviceIds?.values() ?? [])].flatMap((ids) => ids ?? []));
  const allocations = (): number => plugin.requests.filter(({ method }) => method === "Allocate").length;
  const runningId = async (name: string): Promise<string> => {
    const [one] = await node.containersOf(name);
    if (one?.state !== "running") throw new Error(`${name} does not run`);
    return one.id;
  };

  beforeAll(async () => {
    node = await PodNode.start({ settings: SERVED });
    plugin = pluginOn(node, ["a", "b", "c", "d"]);
    stopWatching = plugin.comeBack("kubelet.sock");
    node.startDaemon();
    node.put("stays", deviceOf("stays", 2, GPU, { uid: "uid-stays" }));
    await node.daemon.running("stays");
  }, LONG_MS);
  afterEach(async () => {
    // after every test: the pod has kept its devices and was never restarted
    expect(idsOf("uid-stays")).toEqual(["a", "b"]);
    expect((await node.containersOf("stays")).map(({ state, attempt }) => [state, attempt])).toEqual([["running", 0]]);
  });
  afterAll(async () => {
    stopWatching();
    await plugin?.vanish();
    await node?.stop();
  }, LONG_MS);

  const runPod = async (name: string): Promise<void> => {
    node.put(name, deviceOf(name, 1, GPU, { uid: `uid-${name}` }));
    await node.daemon.running(name);
    expect(["c", "d"]).toContain(idsOf(`uid-${name}`)[0]);
    node.remove(name);
    await node.daemon.gone(name);
  };

  test.each([
    ["the daemon is killed", async () => node.daemon.kill()],
    ["the daemon ends well", async () => node.daemon.stop()],
    [
      "the plugin restarts while the daemon is down",
      async () => {
        await node.daemon.kill();
        await plugin.vanish();
        await plugin.serve();
      },
    ],
    [
      "the plugin dies while the daemon is down, and leaves its socket",
      async () => {
        await node.daemon.kill();
        await plugin.vanish(true);
      },
    ],
    [
      "the checkpoint breaks while the daemon is down",
      async () => {
        await node.daemon.kill();
        writeFileSync(file(), "{nonsense");
      },
    ],
    [
      "the checkpoint is lost while the daemon is down",
      async () => {
        await node.daemon.kill();
        rmSync(file());
      },
    ],
  ])("a running pod keeps its devices and a new pod gets some when %s", async (_, happens) => {
    const id = await runningId("stays");
    const before = allocations();
    await happens();
    node.startDaemon();
    await runPod("next");
    expect(await runningId("stays")).toBe(id);
    // one allocation for the admitted pod, and no other
    expect(allocations()).toBe(before + 1);
  });

  test("a running pod keeps its devices while the daemon acts as one kubelet version after another", async () => {
    const id = await runningId("stays");
    const before = allocations();
    const versions = ["1.34", "1.37", "1.35", "1.36", "1.37"];
    for (const [i, kubeletVersion] of versions.entries()) {
      await node.daemon.stop();
      node.startDaemon({ kubeletVersion });
      await node.daemon.running("stays");
      // the daemon reads the checkpoint that another version wrote, and writes it
      await runPod(`under-${i}`);
      expect(await runningId("stays")).toBe(id);
      expect(idsOf("uid-stays"), kubeletVersion).toEqual(["a", "b"]);
      expect((await (await fetch(`${node.statusUrl}/v1/status`)).json()) as object).toMatchObject({ problems: [] });
    }
    // one allocation for each admitted pod, and none for the pod that was already running
    expect(allocations()).toBe(before + versions.length);
  });

  test("a new pod gets devices after the plugin restarts while the daemon runs", async () => {
    await plugin.vanish();
    await node.daemon.until("the plugin's end", ({ devices }) => devices?.find(({ allocatable }) => allocatable === 0));
    await plugin.start();
    await runPod("after");
  });

  test("a pod still starts when the daemon is killed between its admission and the plugin's answer", async () => {
    plugin.script.answers = { Allocate: () => "hang" };
    const before = allocations();
    node.put("between", deviceOf("between", 1, GPU, { uid: "uid-between" }));
    await until("the call", () => (allocations() === before + 1 ? true : undefined));
    await node.daemon.kill();
    plugin.script.answers = { Allocate: bringing(join(node.dir, "vendor")) };
    node.startDaemon();
    await node.daemon.running("between");
    expect(allocations()).toBe(before + 2);
    node.remove("between");
    await node.daemon.gone("between");
  });

  test("an ended container whose devices are lost from the checkpoint gets other devices", async () => {
    node.put("again", deviceOf("again", 1, GPU, { uid: "uid-again" }));
    await node.daemon.running("again");
    const id = await runningId("again");
    await node.daemon.kill();
    writeFileSync(file(), "{nonsense");
    await node.kill(id);
    node.startDaemon();
    await until("its next start", async () => {
      const its = await node.containersOf("again");
      return its.some((one) => one.state === "running" && one.id !== id) ? true : undefined;
    });
    expect(["c", "d"]).toContain(idsOf("uid-again")[0]);
    node.remove("again");
    await node.daemon.gone("again");
  });

  test("devices held by an unknown pod are reported and released", async () => {
    await node.daemon.kill();
    const now = checkpoint();
    const lost = {
      podUid: "uid-lost",
      containerName: "app",
      resourceName: GPU,
      deviceIds: new Map([[-1, ["c", "d"]]]),
      allocResp: "",
    };
    writeFileSync(file(), writeCheckpoint({ ...now, entries: [...(now.entries ?? []), lost] }));
    const daemon = node.startDaemon();
    await until("the devices' return", () => (idsOf("uid-lost").length === 0 ? true : undefined));
    const kinds = await until("the history", () => {
      const history = readDeviceHistory(join(node.dir, "state"), { limit: 100 });
      const its = (history.ok ? history.value : []).filter((one) => "podUid" in one && one.podUid === "uid-lost");
      return its.length < 2 ? undefined : its.map(({ kind }) => kind);
    });
    expect(kinds).toEqual(["given-back", "leak"]);
    await daemon.running("stays");
    await runPod("freed");
  });

  test.for(GO_BUILDS)(
    "pods keep and get devices when a Go plugin and the daemon restart: $name",
    async (build, context) => {
      const built = goPlugin(build);
      if (!("program" in built)) return context.skip(built.missing);
      const version = build.grpc.replaceAll(".", "-");
      const resource = `go.example.com/v${version}`;
      const start = (): GoPlugin => startGoPlugin(built.program, join(node.dir, "dp"), resource, ["g0", "g1"]);
      let vendor = start();
      try {
        const name = `go-${version}`;
        node.put(name, deviceOf(name, 1, resource, { uid: `uid-${name}` }));
        await node.daemon.running(name);
        const id = await runningId(name);
        expect(await node.exec(id, "echo $DEVICES")).toMatch(/^g[01]$/);
        await vendor.kill();
        await node.daemon.kill();
        node.startDaemon();
        vendor = start();
        node.put(`${name}-b`, deviceOf(`${name}-b`, 1, resource));
        await node.daemon.running(name, `${name}-b`);
        expect(await runningId(name)).toBe(id);
        node.remove(name, `${name}-b`);
        await node.daemon.gone(name, `${name}-b`);
      } finally {
        await vendor.kill();
      }
    },
  );
});
