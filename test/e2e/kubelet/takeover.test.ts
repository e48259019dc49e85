import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../../cli/run.ts";
import { podOf } from "../pods/manifest.ts";
import { PodNode } from "../pods/node.ts";
import { noPods } from "../pods/skip.ts";
import { until } from "../pods/until.ts";
import { Kubelet, noKubelet } from "./kubelet.ts";

const LONG_MS = 300_000;
const why = noPods("a real kubelet's pods taken over") ?? noKubelet("a real kubelet's pods taken over");
/** The node's name in the kubelet. */
const NODE_NAME = "beside";
const DATABASE = `mkdir /data/lock || touch /data/twice
trap 'rmdir /data/lock; exit 0' TERM
while :; do sleep 1000 & wait $!; done`;

describe.skipIf(why !== undefined)("the static pods of a real kubelet", { timeout: LONG_MS }, () => {
  let node: PodNode;
  const kubelets: Kubelet[] = [];
  beforeAll(async () => {
    node = await PodNode.start({ settings: { nodeName: NODE_NAME } });
  }, LONG_MS);
  afterAll(async () => {
    for (const kubelet of kubelets) await kubelet.end();
    await node?.stop();
    for (const kubelet of kubelets) await kubelet.stop();
  }, LONG_MS);

  const startKubelet = async (manifest: object): Promise<Kubelet> => {
    const kubelet = await Kubelet.start({ runtimeEndpoint: node.containerd.endpoint });
    kubelets.push(kubelet);
    kubelet.put("db", manifest);
    return kubelet;
  };
  const db = async () => (await node.containersOf(`db-${NODE_NAME}`)).find(({ state }) => state === "running");
  const takeover = (...args: readonly string[]) => run(["takeover", "--settings", node.settingsFile(), ...args]);

  test("are taken over once it has ended, and returned after a drain, without ever running twice", async () => {
    const data = join(node.dir, "data");
    mkdirSync(data);
    const volumes = [{ name: "data", hostPath: { path: data } }];
    const container = { script: DATABASE, volumeMounts: [{ name: "data", mountPath: "/data" }] };
    const manifest = podOf("db", { terminationGracePeriodSeconds: 10, volumes, containers: [container] });
    node.put("db", manifest);
    const kubelet = await startKubelet(manifest);
    const before = await until("the kubelet's database", db);
    const refused = await takeover("--stop");
    expect(refused).toMatchObject({ code: 3, stdout: "" });
    expect(refused.stderr).toContain(`process ${kubelet.pid} (kubelet) runs pods on this runtime`);
    expect((await db())?.id).toBe(before.id);

    await kubelet.end();
    const daemon = node.startDaemon({ drain: true });
    await daemon.pod(`db-${NODE_NAME}`, "held", ({ reason }) => reason === "ForeignSandbox");
    expect(await takeover("--stop")).toMatchObject({ code: 0, stderr: "" });
    await daemon.running(`db-${NODE_NAME}`);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect([await db(), existsSync(join(data, "lock"))]).toEqual([undefined, false]);

    await startKubelet(manifest);
    await until("the kubelet's database again", async () => ((await db()) === undefined ? undefined : true));
    expect(existsSync(join(data, "twice"))).toBe(false);
  });
});
