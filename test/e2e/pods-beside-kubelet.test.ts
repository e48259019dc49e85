import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { must } from "./containerd/pods.ts";
import { type Containerd, startContainerd } from "./containerd/start.ts";
import { Kubelet, noKubelet } from "./kubelet/kubelet.ts";
import { IMAGE, podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until, WAITS } from "./pods/until.ts";

const DEPLOYED = join(import.meta.dirname, "../../actuator/deploy/containerd.toml");
const LONG_MS = 300_000;
const WHAT = "pods beside a real kubelet";
const why = noPods(WHAT) ?? noKubelet(WHAT);

describe.skipIf(why !== undefined)(WHAT, { timeout: LONG_MS }, () => {
  let node: PodNode;
  let other: Containerd | undefined;
  const kubelets: Kubelet[] = [];
  beforeAll(async () => {
    node = await PodNode.start({ containerd: readFileSync(DEPLOYED, "utf8"), hasNetwork: true });
    node.put("web", podOf("web"));
  }, LONG_MS);
  afterAll(async () => {
    for (const kubelet of kubelets) await kubelet.end();
    await node?.stop();
    await other?.stop();
    for (const kubelet of kubelets) await kubelet.stop();
  }, LONG_MS);

  const beside = async (runtimeEndpoint: string): Promise<Kubelet> => {
    const kubelet = await Kubelet.start({ runtimeEndpoint });
    kubelets.push(kubelet);
    return kubelet;
  };
  /** How many containers of this pod the daemon has started. */
  const startsOf = (name: string): number => node.daemon.eventsOf(name, "Started").length;
  const ready = async (name: string): Promise<true | undefined> => {
    const pods = [...(await node.held()).values()].filter((pod) => pod.name === name);
    return pods.some(({ containers }) => containers.some(({ state }) => state === "running")) || undefined;
  };

  test("does not affect the daemon if it uses its own containerd", async () => {
    other = await startContainerd({ images: [{ name: IMAGE, sizeBytes: 4096, base: "tools" }] });
    const kubelet = await beside(other.endpoint);
    kubelet.put("web", podOf("web", { uid: "0a0b0c0d-1111-4222-8333-000000000002" }));
    const daemon = node.startDaemon();
    await daemon.running("web");
    // a pod with its own address, from the network that is configured for it
    node.put("addressed", podOf("addressed", { hostNetwork: false }));
    expect(
      (await daemon.pod("addressed", "with its address", ({ ip, phase }) => ip !== "" && phase === "Running")).ip,
    ).toBe("10.88.7.1");
    await until("the kubelet's own pod", async () => {
      const { containers } = await must(
        other?.connection.call("ListContainers", {}) ?? Promise.reject(new Error("none")),
      );
      return containers.some(({ state }) => state === "CONTAINER_RUNNING") || undefined;
    });
    const before = await node.containersOf("web");
    await daemon.turns(3);
    const { otherKubelet, problems, pods } = await daemon.until("a status", (status) => status);
    expect([otherKubelet, problems, pods.map((row) => row.stoppedByOthers)]).toEqual([
      undefined,
      [],
      [undefined, undefined],
    ]);
    expect(await node.containersOf("web")).toEqual(before);
    await kubelet.end();
  });

  test("in the same containerd is reported, its stops are counted, and no pod is admitted until it ends", async () => {
    const { daemon, containerd } = node;
    const kubelet = await beside(containerd.endpoint);
    kubelet.put("theirs", podOf("theirs", { uid: "0a0b0c0d-1111-4222-8333-000000000001" }));
    // a sign of another kind may be detected before
    const found = await daemon.until("the kubelet's process", ({ otherKubelet, problems }) =>
      otherKubelet?.signs.includes("process") ? { otherKubelet, problems } : undefined,
    );
    expect(found.problems[0]).toBe(`pods: ${found.otherKubelet.message}`);
    expect(found.otherKubelet.message).toContain(`process ${kubelet.pid} (kubelet) uses it`);
    expect(found.otherKubelet.message).toContain("docs/guide/beside-a-kubelet.md");

    // the kubelet ends each unknown pod once: the daemon does not start it again and again
    for (const name of ["web", "addressed"]) await daemon.event(name, "StoppedByOthers");
    const heldBack = (name: string) =>
      daemon.pod(name, "held back", ({ containers }) => containers[0]?.reason === "OtherKubelet");
    const held = await heldBack("web");
    const addressed = await heldBack("addressed");
    // the daemon may start one more container between the end of the container and the end of the sandbox; it is
    // stopped as well
    const starts = [held.stoppedByOthers ?? 0, addressed.stoppedByOthers ?? 0] as const;
    for (const count of starts) expect([1, 2]).toContain(count);
    // the log arrives independently of the status
    await expect.poll(() => [startsOf("web"), startsOf("addressed")], WAITS).toEqual(starts);
    await until("the kubelet's own pod", () => ready("theirs-beside"));
    node.put("late", podOf("late"));
    const late = await daemon.pod("late", "kept out", ({ refusal }) => refusal !== null);
    expect([late.state, late.refusal?.reason]).toEqual(["pending", "OtherKubelet"]);
    await daemon.turns(2);
    const metrics = await (await fetch(`${node.statusUrl}/metrics`)).text();
    expect(metrics).toContain(`nodewise_containers_stopped_by_others_total{how="sandbox"} ${starts[0] + starts[1]}`);
    expect(metrics).toContain('nodewise_other_kubelet{sign="process"} 1');
    const message = `process ${kubelet.pid} (kubelet) uses it`;
    await until("its line in the log", () => holds(daemon.lines.some((line) => line.includes(message))));
    expect([startsOf("web"), startsOf("addressed")]).toEqual(starts);
    const still = await heldBack("web");
    expect(still.stoppedByOthers).toBe(held.stoppedByOthers);
    expect((await daemon.stop()).code).toBe(0);

    const refused = await node.startDaemon().ended;
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain(`another kubelet uses this runtime (${containerd.endpoint})`);
    expect(refused.stderr).toContain(`process ${kubelet.pid} (kubelet) uses it`);
    await kubelet.end();
    const next = node.startDaemon();
    await next.running("web", "late");
    expect(await ready("theirs-beside")).toBe(true);
  });
});
