import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { CgroupView } from "../../../actuator/pods/cgroups/cgroup-view.ts";
import type { KnownPod } from "../../../actuator/pods/records/pod-set.ts";
import { NodeStats } from "../../../actuator/pods/status/node-stats.ts";
import { err } from "../../../api/base/result.ts";
import { type SmallFileSystem, smallFileSystem } from "../../e2e/containerd/small-file-system.ts";
import { runnable } from "../../kit/runnable-pods.ts";
import { machineAt } from "../../sim/machine.ts";
import { textTree } from "../stats/text-tree.ts";

const Mi = 2 ** 20;
const VOLUME = "data";
function small(): SmallFileSystem | null {
  try {
    return smallFileSystem(64 * Mi);
  } catch {
    console.warn("skipped who fills a disk: only root can mount");
    return null;
  }
}
const noRuntime = {
  call: async () => err({ call: "none", code: "UNAVAILABLE", message: "there is none" }),
} as unknown as Connection;

/** A pod with one volume on its own disk, and its measured stats; `meanwhile` runs while the machine is measured. */
function nodeOn({ path, release }: SmallFileSystem) {
  onTestFinished(release);
  const podsDirectory = join(path, "pods");
  const one = runnable({ volumes: [{ name: VOLUME, emptyDir: { medium: "", sizeLimitBytes: null } }] });
  const { namespace, name, uid } = one;
  const volume = join(podsDirectory, uid, "volumes/kubernetes.io~empty-dir", VOLUME);
  mkdirSync(volume, { recursive: true });
  const sandbox = { createdAtMs: 0 };
  const running = { id: "c", name: "app", state: "running", createdAtMs: 0 };
  const runtimePod = { namespace, name, uid, sandboxes: [sandbox], containers: [running] };
  const known = { uid, pod: one, record: {}, runtimePod } as unknown as KnownPod;
  const view = { pods: new Map([[uid, { path: `/pods/${uid}`, containers: new Map() }]]) } as unknown as CgroupView;
  let meanwhile = (): void => undefined;
  const stats = new NodeStats({
    connection: noRuntime,
    hierarchy: textTree(2).hierarchy,
    observeMachine: () => {
      meanwhile();
      return machineAt("2026-01-31T12:00:00Z", "boot", 2);
    },
    roots: { podsDirectory, podLogsDirectory: join(path, "logs") },
    nodeName: "node",
    sparesHugePages: () => false,
  });
  onTestFinished(() => stats.close());
  const write = (file: string, bytes: number): void => {
    mkdirSync(dirname(join(volume, file)), { recursive: true });
    writeFileSync(join(volume, file), Buffer.alloc(bytes));
  };
  const reportOf = async (during = (): void => undefined) => {
    meanwhile = during;
    const { pods } = (await stats.observe([known], view)) as {
      pods: readonly { volume: readonly { usedBytes: number; inodesUsed: number }[] }[];
    };
    return pods[0]?.volume[0];
  };
  return { write, reportOf };
}

const disk = small();

test.skipIf(disk === null)(
  "a pod that fills a disk is counted after the disk was measured, and again at once when it goes on",
  async () => {
    const { write, reportOf } = nodeOn(disk as SmallFileSystem);
    expect((await reportOf(() => write("first", 8 * Mi)))?.usedBytes).toBe(8 * Mi);
    expect((await reportOf(() => write("second", 8 * Mi)))?.usedBytes).toBe(16 * Mi);
  },
);

const another = small();
test.skipIf(another === null)(
  "a pod that fills a disk with many files is counted in full, even beyond what one look may count",
  async () => {
    const { write, reportOf } = nodeOn(another as SmallFileSystem);
    await reportOf();
    const files = 12_000;
    for (let i = 0; i < files; i++) write(`d${i % 40}/f${i}`, 1);
    expect((await reportOf())?.inodesUsed).toBe(files + 41);
  },
);
