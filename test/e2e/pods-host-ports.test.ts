import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { noPods } from "./pods/skip.ts";
import { holds } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("who has the host's ports");

describe.skipIf(why !== undefined)("pods with host ports and priority classes", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ settings: { manifestPods: "ordinary" } });
    node.startDaemon();
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const reportOf = (problems: readonly string[]): readonly string[] =>
    problems.filter((one) => one.includes("hostPort"));

  test("report a port held by a process outside until it is free", async () => {
    const port = await freePort();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    const script = `mkdir /tmp/w; exec httpd -f -p 127.0.0.1:${port} -h /tmp/w`;
    node.put("web", podOf("web", { containers: [{ script, ports: [{ containerPort: port }] }] }));
    const { daemon } = node;
    const standing = await daemon.until("the port's problem", ({ problems }) => reportOf(problems)[0]);
    expect(standing).toMatch(
      new RegExp(
        `^pods: default/web-e2e: spec\\.containers\\[0\\]\\.ports\\[0\\]\\.hostPort: ${port} is taken by .+ \\(pid ${process.pid}\\)$`,
      ),
    );
    await daemon.pod("web", "started again", ({ containers }) => (containers[0]?.restarts ?? 0) > 0);
    await new Promise((resolve) => server.close(resolve));
    await daemon.until("a free port", ({ problems }) => holds(reportOf(problems).length === 0));
    await daemon.running("web");
    // the process that uses the port now belongs to the pod
    await daemon.kill();
    const again = node.startDaemon();
    await again.running("web");
    expect(reportOf(await again.until("its problems", ({ problems }) => problems))).toEqual([]);
    expect(again.eventsOf("web", "HostPortTaken")).toEqual([]);
  });

  test("are refused by name for a priority class that only an API server knows", async () => {
    node.put("classy", podOf("classy", { priorityClassName: "shop-high" }));
    node.put("vital", podOf("vital", { priorityClassName: "system-node-critical" }));
    const { daemon } = node;
    const [refused] = await daemon.until("the refusal", ({ refusedManifests: all }) =>
      all.length > 0 ? all : undefined,
    );
    expect(refused).toMatchObject({ pod: "default/classy-e2e", faults: [{ path: "spec.priorityClassName" }] });
    const [vital] = await daemon.running("vital");
    expect(vital?.priority).toBe(2_000_001_000);
  });
});
