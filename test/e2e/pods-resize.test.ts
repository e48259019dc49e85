import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PodRow } from "../../actuator/status/node-status.ts";
import { podOf, SERVES, type TestContainer } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const Mi = 2 ** 20;
const why = noPods("the resize of running pods");
const LIMIT = "memory.limit_in_bytes";

const sized = (name: string, cpu: string, memory: string, more: TestContainer = {}, spec: object = {}): object =>
  podOf(name, {
    uid: name,
    ...spec,
    containers: [{ ...more, requests: { cpu, memory }, limits: { cpu, memory } }],
  });

describe.skipIf(why !== undefined)("resizing running pods", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ hasServer: true, isMeddled: true, settings: { retrySeconds: 1 } });
    node.startDaemon();
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const fileOf = (name: string, file: string): string => node.cgroupFile(`/kubepods/pod${name}`, file);
  const ownFile = async (name: string, file: string): Promise<string> => {
    const [newest] = await node.containersOf(name);
    return node.cgroupFile(`/kubepods/pod${name}/${newest?.id}`, file);
  };
  const settled = (name: string): Promise<PodRow> => node.daemon.pod(name, "resized", ({ resize }) => resize === null);

  test("changes CPU and memory up and down in place", async () => {
    const { daemon } = node;
    node.server.set([sized("grows", "100m", "32Mi")]);
    const [row] = await daemon.running("grows");
    const before = row?.containers[0]?.id;
    node.server.set([sized("grows", "200m", "64Mi")]);
    await daemon.event("grows", "ResizeCompleted");
    expect([fileOf("grows", LIMIT), fileOf("grows", "cpu.cfs_quota_us")]).toEqual([String(64 * Mi), "20000"]);
    expect(await ownFile("grows", LIMIT)).toBe(String(64 * Mi));
    node.server.set([sized("grows", "100m", "32Mi")]);
    await until("the second", () => daemon.eventsOf("grows", "ResizeCompleted")[1]);
    expect([await ownFile("grows", LIMIT), fileOf("grows", LIMIT)]).toEqual([String(32 * Mi), String(32 * Mi)]);
    expect((await settled("grows")).containers[0]).toMatchObject({ id: before, restarts: 0 });
  });

  test("waits to lower memory that is in use until it is free", async () => {
    const { daemon } = node;
    const uses = {
      script: `dd if=/dev/zero of=/memory/file bs=1M count=40 2>/dev/null; ${SERVES}`,
      volumeMounts: [{ name: "memory", mountPath: "/memory" }],
    };
    const volumes = { volumes: [{ name: "memory", emptyDir: { medium: "Memory" } }] };
    node.server.set([sized("uses", "100m", "64Mi", uses, volumes)]);
    await daemon.running("uses");
    const [app] = await node.containersOf("uses");
    await until("40 MiB", async () =>
      Number(await ownFile("uses", "memory.usage_in_bytes")) >= 40 * Mi ? true : undefined,
    );
    node.server.set([sized("uses", "100m", "32Mi", uses, volumes)]);
    const { msg } = await daemon.event("uses", "ResizeError");
    expect(msg).toContain(`attempting to set pod memory limit (${32 * Mi}) below current usage`);
    expect([fileOf("uses", LIMIT), await ownFile("uses", LIMIT)]).toEqual([String(64 * Mi), String(64 * Mi)]);
    await node.exec(app?.id ?? "", "rm /memory/file");
    await daemon.event("uses", "ResizeCompleted");
    expect([fileOf("uses", LIMIT), await ownFile("uses", LIMIT)]).toEqual([String(32 * Mi), String(32 * Mi)]);
  });

  test("restarts a container whose resizePolicy says so, also after a daemon restart", async () => {
    const policy = { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] };
    node.server.set([sized("restarts", "100m", "64Mi", policy, { restartPolicy: "OnFailure" })]);
    const [row] = await node.daemon.running("restarts");
    // by then the container is stopped, and not yet created again
    const reached = node.hangAt("CreateContainer", "before");
    node.server.set([sized("restarts", "100m", "32Mi", policy, { restartPolicy: "OnFailure" })]);
    await node.daemon.event("restarts", "ResizeStarted");
    await Promise.race([reached, node.daemon.untilEnd("its next start")]);
    await node.daemon.kill();
    node.meddling = {};
    const daemon = node.startDaemon();
    await daemon.pod(
      "restarts",
      "resized",
      ({ resize, containers }) => resize === null && containers[0]?.ready === true,
    );
    const [newest, ...older] = await node.containersOf("restarts");
    expect(newest).toMatchObject({ attempt: 1, state: "running" });
    expect(newest?.id).not.toBe(row?.containers[0]?.id);
    expect(older.every(({ state }) => state === "exited")).toBe(true);
    expect([await ownFile("restarts", LIMIT), fileOf("restarts", LIMIT)]).toEqual([String(32 * Mi), String(32 * Mi)]);
  });

  test("reports an infeasible resize, and carries out the one requested instead", async () => {
    const { daemon } = node;
    node.server.set([sized("asks", "100m", "32Mi")]);
    await daemon.running("asks");
    node.server.set([sized("asks", "1k", "32Mi")]);
    const row = await daemon.pod("asks", "refused", ({ resize }) => resize !== null);
    expect(row.resize).toMatchObject({
      reason: "Infeasible",
      message: expect.stringMatching(/^node didn't have enough allocatable resources: cpu, requested: 1000000, /),
    });
    expect(fileOf("asks", "cpu.cfs_quota_us")).toBe("10000");
    node.server.set([sized("asks", "150m", "32Mi")]);
    await daemon.event("asks", "ResizeCompleted");
    expect(fileOf("asks", "cpu.cfs_quota_us")).toBe("15000");
  });
});
