import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SmallFileSystem, smallFileSystem } from "./containerd/small-file-system.ts";
import { endPhase } from "./pods/end-phase.ts";
import { podOf, SERVES, type TestPod } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";

const LONG_MS = 300_000;
const Mi = 2 ** 20;
const why = noPods("the kernel's disk pressure");
/** The transition period keeps the pressure until a test changes the configuration. */
const SHORT_OF_DISK = { evictionHard: { "nodefs.available": "32Mi" }, evictionPressureTransitionPeriod: "1h" };
/** A pod that writes this many MiB into a file and then keeps running. */
const writes = (
  name: string,
  mebibytes: number,
  file: string,
  { emptyDir, ...more }: TestPod & { emptyDir?: object },
) =>
  podOf(name, {
    uid: name,
    ...more,
    containers: [
      {
        script: `dd if=/dev/zero of=${file} bs=1M count=${mebibytes} 2>/dev/null; ${SERVES}`,
        volumeMounts: [{ name: "data", mountPath: "/data" }],
        ...more.containers?.[0],
      },
    ],
    volumes: [{ name: "data", emptyDir: emptyDir ?? {} }],
  });

describe.skipIf(why !== undefined)("under disk pressure caused by a pod", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let disk: SmallFileSystem;
  beforeAll(async () => {
    disk = smallFileSystem(128 * Mi);
    node = await PodNode.start({
      hasServer: true,
      settings: { evictionPeriodSeconds: 1, podsDirectory: join(disk.path, "pods"), retrySeconds: 1 },
      configuration: SHORT_OF_DISK,
    });
  }, LONG_MS);
  afterAll(async () => {
    await node?.stop();
    disk?.release();
  }, LONG_MS);

  const within = writes("within", 16, "/data/file", {});
  const endOf = (name: string) => node.daemon.pod(name, "ended", ({ state }) => state === "terminated");

  test("that pod is evicted and its directory removed, and the others keep running", async () => {
    const filler = writes("filler", 90, "/data/file", {});
    node.server.set([within]);
    const daemon = node.startDaemon();
    await daemon.running("within");
    node.server.set([within, filler]);
    const { msg } = await daemon.event("filler", "Evicted", /low on resource/);
    expect(msg).toMatch(
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 32Mi, available: \d+[KM]i\. /,
    );
    const ended = await endOf("filler");
    expect(ended).toMatchObject({ phase: endPhase(ended), reason: "Evicted" });
    await daemon.until("room", () => (existsSync(join(disk.path, "pods/filler")) ? undefined : true));
    expect(existsSync(join(disk.path, "pods/within"))).toBe(true);
  });

  test("no pod is admitted until the pressure is over", async () => {
    const { daemon } = node;
    node.server.set([within, podOf("late", { uid: "late", containers: [{ requests: { cpu: "10m" } }] })]);
    await daemon.event("late", "Evicted", "The node had condition: [DiskPressure]. ");
    node.configure({ ...SHORT_OF_DISK, evictionPressureTransitionPeriod: "1s" });
    await daemon.running("late", "within");
    await daemon.gone("filler");
  });

  test.each<[string, object, string]>([
    [
      "a volume above its size limit",
      writes("volume", 8, "/data/file", { emptyDir: { sizeLimit: "4Mi" } }),
      'Usage of EmptyDir volume "data" exceeds the limit "4Mi". ',
    ],
    [
      "a pod above the limits of its containers",
      writes("whole", 8, "/data/file", { containers: [{ limits: { "ephemeral-storage": "4Mi" } }] }),
      "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ",
    ],
    [
      "a container above its own limit",
      podOf("layer", {
        uid: "layer",
        containers: [
          {
            name: "app",
            limits: { "ephemeral-storage": "4Mi" },
            script: `i=0; while [ $i -lt 8192 ]; do printf '%01023d\\n' 0; i=$((i+1)); done; ${SERVES}`,
          },
          { name: "roomy", limits: { "ephemeral-storage": "64Mi" } },
        ],
      }),
      'Container app exceeded its local ephemeral storage limit "4Mi". ',
    ],
  ])("%s is evicted at once, in the kubelet's words", async (_what, pod, message) => {
    const { name } = (pod as { metadata: { name: string } }).metadata;
    node.server.set([within, pod]);
    await node.daemon.event(name, "Evicted", message);
    const ended = await endOf(name);
    expect(ended).toMatchObject({ phase: endPhase(ended), reason: "Evicted", message });
    await node.daemon.running("within");
  });
});
