import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OWNER } from "../../actuator/containerd/cri.ts";
import { must } from "./containerd/pods.ts";
import { IMAGE, podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const UID = "11111111-2222-4333-8444-555555555555";
const why = noPods("what others started");

describe.skipIf(why !== undefined)("a foreign pod in the same runtime", { timeout: LONG_MS }, () => {
  let node: PodNode;
  /** Ids of all sandboxes and containers that do not belong to the daemon. */
  const foreign: string[] = [];
  beforeAll(async () => {
    node = await PodNode.start();
    const { containerd } = node;
    // pods as a person makes them with crictl, running and dead
    const running = await containerd.runPod({ name: "by-hand", uid: "uid-by-hand", image: IMAGE });
    const dead = await containerd.exitPod({ name: "dead", uid: "uid-dead", image: IMAGE });
    // a sandbox with the uid and name of one of the daemon's pods, from a former attempt; a running one would hold up
    // the pod
    const same = await containerd.runSandbox({ name: "ours-e2e", uid: UID, attempt: 9 });
    foreign.push(same.sandboxId, await containerd.addContainer(same, { name: "other", image: IMAGE }));
    await must(containerd.connection.call("StopPodSandbox", { podSandboxId: same.sandboxId }));
    for (const { sandboxId, containerId } of [running, dead]) foreign.push(sandboxId, containerId);
    // a sandbox with the owner label of another daemon
    const { config } = running.pod;
    const labels = {
      "io.kubernetes.pod.name": "theirs",
      "io.kubernetes.pod.uid": "uid-theirs",
      [OWNER]: "/nodewise-other",
    };
    const metadata = { ...config.metadata, name: "theirs", uid: "uid-theirs" };
    const theirs = { ...config, metadata, labels };
    const { podSandboxId } = await must(containerd.connection.call("RunPodSandbox", { config: theirs }));
    foreign.push(
      podSandboxId,
      await containerd.addContainer({ sandboxId: podSandboxId, config: theirs }, { image: IMAGE }),
    );
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  /** The existing sandboxes and containers, with their states. */
  const states = async (): Promise<ReadonlyMap<string, string>> => {
    const { connection } = node.containerd;
    const { containers } = await must(connection.call("ListContainers", {}));
    const { items } = await must(connection.call("ListPodSandbox", {}));
    return new Map([...containers, ...items].map(({ id, state }) => [id, String(state)]));
  };
  const foreignStates = async () => {
    const all = await states();
    return foreign.map((id) => [id, all.get(id) ?? "gone"]);
  };

  test("is never stopped, removed or written to, whatever the daemon does", async () => {
    const before = await foreignStates();
    expect(before.map(([, state]) => state)).not.toContain("gone");
    node.put("ours", podOf("ours", { metadata: { uid: UID } }));
    node.put("crash", podOf("crash", { containers: [{ script: "exit 1" }] }));
    const daemon = node.startDaemon({ garbageCollection: "off" });
    await daemon.running("ours");
    await daemon.pod("crash", "held back", ({ reason }) => reason === "CrashLoopBackOff");
    expect(await foreignStates()).toEqual(before);
    const shown = await daemon.until("its pods", ({ pods }) => pods.map(({ name }) => name).sort());
    expect(shown).toEqual(["crash-e2e", "ours-e2e"]);

    // killed, and its records are lost: a pod with another daemon's owner label is not treated as an orphan
    await daemon.kill();
    node.remove("crash");
    const next = node.startDaemon({ stateDir: `${node.dir}/state-2` });
    await next.running("ours");
    await until("the orphan's end", async () => {
      const names = [...(await node.held()).values()].map(({ name }) => name);
      return names.includes("crash-e2e") ? undefined : true;
    });
    expect(await foreignStates()).toEqual(before);

    node.remove("ours");
    await next.gone("ours");
    expect(await foreignStates()).toEqual(before);
    await next.stop();
    node.put("ours", podOf("ours", { metadata: { uid: UID } }));
    const last = node.startDaemon({ drain: true });
    await last.running("ours");
    expect(await last.stop()).toMatchObject({ code: 0 });
    expect(await foreignStates()).toEqual(before);
  });
});
