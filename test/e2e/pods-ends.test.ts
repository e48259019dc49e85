import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { statusFile } from "../../actuator/status/status-file.ts";
import { podOf, STUBBORN } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("a daemon and a runtime that end");
/** A hierarchy without a controller; runtimes put their containers into it as well. */
const NAMED = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"].find(existsSync);

describe.skipIf(why !== undefined)("ending a daemon or its runtime", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start();
    node.put("low", podOf("low", { priority: 10, containers: [{ script: STUBBORN }] }));
    node.put("high", podOf("high", { priority: 1000 }));
    // the directory that a daemon leaves if it is killed before it can remove it
    if (NAMED !== undefined)
      mkdirSync(join(NAMED, node.cgroupRoot, "kubepods/burstable/podlost/c1"), { recursive: true });
    await node.startDaemon().running("low", "high");
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const ids = async (): Promise<readonly string[]> => {
    const pods = [...(await node.held()).values()];
    return pods.flatMap(({ sandboxes, containers }) => [...sandboxes, ...containers].map(({ id }) => id)).sort();
  };

  test("loses no pod when the runtime is killed and restarted", async () => {
    const { daemon } = node;
    const before = await ids();
    await node.containerd.halt("SIGKILL");
    node.put("while", podOf("while"));
    const away = await daemon.until("the runtime's absence", (status) =>
      status.runtime === null ? status : undefined,
    );
    expect(away.problems.filter((one) => one.startsWith("runtime: "))).toHaveLength(1);
    expect(away.pods.filter(({ phase }) => phase === "Running")).toHaveLength(2);
    await node.containerd.resume();
    const [, , { uid } = { uid: "none" }] = await daemon.running("low", "high", "while");
    const after = await ids();
    expect(after.filter((id) => before.includes(id))).toEqual(before);
    expect(after).toHaveLength(before.length + 2);
    await daemon.until("calm", ({ problems }) => (problems.length === 0 ? true : undefined));
    // this node's runtime has no CNI plugin; pods on the host network run nevertheless
    await daemon.until("the network's line", ({ runtime }) =>
      runtime?.notReady?.find((one) => /network not ready: NetworkReady=false reason:NetworkPluginNotReady /.test(one)),
    );
    expect(node.cgroupsOf(uid).some((path) => NAMED === undefined || path.startsWith(NAMED))).toBe(true);
    node.remove("while");
    await daemon.gone("while");
    await until("the end of its cgroups", () => (node.cgroupsOf(uid).length === 0 ? true : undefined));
    expect(node.cgroupsOf("lost")).toEqual([]);
    expect(await ids()).toEqual(before);
  });

  test("leaves the pods running on a clean end, and the next start adopts them", async () => {
    const before = await ids();
    expect(await node.daemon.stop()).toMatchObject({ code: 0 });
    expect(await ids()).toEqual(before);
    const daemon = node.startDaemon();
    for (const row of await daemon.running("low", "high")) expect(row.containers[0]?.restarts).toBe(0);
    // by then the daemon has started everything that it would do
    await daemon.turns(2);
    expect(await ids()).toEqual(before);
    expect(daemon.events).toEqual([]);
  });

  test("stops the pods with drain, those of the lowest priority first", async () => {
    await node.daemon.stop();
    const daemon = node.startDaemon({ drain: true });
    await daemon.running("low", "high");
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    const pods = [...(await node.held()).values()];
    const ended = (name: string) =>
      pods
        .flatMap((pod) => (pod.name.startsWith(name) ? pod.containers : []))
        .map(({ state, finishedAtMs }) => ({ state, finishedAtMs }));
    const [[low], [high]] = [ended("low"), ended("high")];
    expect([low?.state, high?.state]).toEqual(["exited", "exited"]);
    expect(high?.finishedAtMs ?? 0).toBeGreaterThan(low?.finishedAtMs ?? Number.POSITIVE_INFINITY);
    expect(pods.flatMap(({ sandboxes }) => sandboxes.filter(({ isReady }) => isReady))).toEqual([]);
    const killed = daemon.events.filter(({ reason }) => reason === "Killing").map(({ pod }) => pod);
    expect(killed).toEqual(["low-e2e", "high-e2e"]);

    const last = JSON.parse(readFileSync(statusFile(join(node.dir, "state")), "utf8")) as NodeStatus;
    expect(last.pods.map(({ name, state, reason }) => [name, state, reason]).sort()).toEqual([
      ["high-e2e", "pending", "Drained"],
      ["low-e2e", "pending", "Drained"],
    ]);

    // the pods have not been deleted
    const [again] = await node.startDaemon().running("low", "high");
    expect(again?.containers[0]?.state).toBe("running");
  });
});
