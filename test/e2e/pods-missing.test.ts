import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PodRow } from "../../actuator/status/node-status.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const LATER = "localhost/later:1";
const isReported = ({ message }: PodRow): boolean => message !== "";
const why = noPods("pods that lack something");

describe.skipIf(why !== undefined)("pods with a missing image, volume or file", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let port: number;
  const page = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}`)).text();
  beforeAll(async () => {
    node = await PodNode.start();
    port = await freePort();
    const served = (text: string) => ({
      script: `mkdir -p /www; echo ${text} > /www/index.html; exec httpd -f -p 127.0.0.1:${port} -h /www`,
    });
    node.put("first", podOf("first", { containers: [served("first")] }));
    node.startDaemon();
    await node.daemon.running("first");
    await until("the first server", () => page().catch(() => undefined));
    node.put("second", podOf("second", { containers: [served("second")] }));
    node.put("never", podOf("never", { containers: [{ image: LATER, imagePullPolicy: "Never" }] }));
    node.put("pulled", podOf("pulled", { containers: [{ image: LATER }] }));
    const volumes = [{ name: "data", hostPath: { path: join(node.dir, "data"), type: "Directory" } }];
    const mounts = { volumeMounts: [{ name: "data", mountPath: "/data" }] };
    node.put("unmounted", podOf("unmounted", { volumes, containers: [mounts] }));
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  test("say what is missing", async () => {
    const { daemon } = node;
    const never = await daemon.pod("never", "without its image", isReported);
    expect([never.phase, never.reason, never.message]).toEqual([
      "Pending",
      "ErrImageNeverPull",
      `Container image "${LATER}" is not present with pull policy of Never`,
    ]);
    const pulled = await daemon.pod("pulled", "without its image", ({ reason }) => /ErrImagePull|BackOff/.test(reason));
    expect(pulled.message).toContain(LATER.replace(":1", ""));
    await daemon.event("pulled", "Failed", /^Failed to pull image "localhost\/later:1": /);
    await daemon.event("pulled", "Failed", "Error: ErrImagePull");

    await daemon.event(
      "unmounted",
      "FailedMount",
      `MountVolume.SetUp failed for volume "data" : hostPath type check failed: ${node.dir}/data is not a directory`,
    );
    const unmounted = await daemon.pod("unmounted", "reported", isReported);
    expect(unmounted).toMatchObject({ phase: "Pending", reason: "ContainerCreating" });
    expect(unmounted.message).toContain("is not a directory");

    // the server exits with an error of its own; the kubelet uses the same reason
    const second = await daemon.pod("second", "held back", ({ reason }) => reason === "CrashLoopBackOff");
    expect(second.containers[0]?.restarts).toBeGreaterThan(0);
    expect(await page()).toBe("first\n");
  });

  test("start as soon as it is there, without effect on others", async () => {
    const { daemon } = node;
    mkdirSync(join(node.dir, "data"));
    await node.containerd.importImage({ name: LATER, sizeBytes: 4096, base: "tools" });
    await daemon.running("never", "pulled", "unmounted");
    const [first] = await node.containersOf("first");
    expect([first?.state, first?.attempt]).toEqual(["running", 0]);
  });
});
