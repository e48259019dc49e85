import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runtimeVersion } from "../../actuator/containerd/pods.ts";
import { must } from "./containerd/pods.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("what a daemon tells of itself");

describe.skipIf(why !== undefined)("a daemon over a real containerd", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ settings: { manifestPods: "ordinary", retrySeconds: 3600 } });
    // the daemon has one turn at its start, and the next one after an hour
    node.startDaemon({ syncSeconds: 3600 });
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  test("takes its first turn at once, and then at a reloaded interval", async () => {
    const { pid, pass } = await node.daemon.until("the first turn", (status) =>
      status.pass === null ? undefined : status,
    );
    expect(pass?.sequence).toBe(1);
    node.put("crash", podOf("crash", { containers: [{ script: "exit 7" }] }));
    node.put("large", podOf("large", { containers: [{ requests: { cpu: "4000" } }] }));
    node.settingsFile({ syncSeconds: 0.5 });
    process.kill(pid, "SIGHUP");
    await node.daemon.pod("crash", "started again", ({ containers }) => (containers[0]?.restarts ?? 0) > 0);
    await node.daemon.until("its fourth turn", (status) => holds((status.pass?.sequence ?? 0) > 3));
  });

  test("counts events in its metrics, and shows the runtime's own version", async () => {
    const { name, version } = await must(runtimeVersion(node.containerd.connection));
    const metrics = async () => (await (await fetch(`${node.statusUrl}/metrics`)).text()).split("\n");
    const counted = await until("a restart and a refusal", async () => {
      const lines = await metrics();
      const isCounted = lines.includes('nodewise_admission_rejections_total{reason="OutOfcpu"} 1');
      return isCounted && lines.some((line) => /^nodewise_restarts_total [1-9]/.test(line)) ? lines : undefined;
    });
    expect(counted).toContain(`nodewise_node_info{node="e2e",mode="enforce",runtime="${name}",version="${version}"} 1`);
    for (const kind of ["allocatable", "cgroups", "admission", "eviction"])
      expect(counted.filter((line) => line.startsWith(`nodewise_decisions_total{kind="${kind}",by="here"} `))).toEqual([
        expect.stringMatching(/ [1-9]\d*$/),
      ]);
    expect(counted).toContain("nodewise_outbox_entries 0");
  });
});
