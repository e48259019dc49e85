import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { install, pack } from "../cli/packed.ts";
import { isUp } from "../e2e/pods/daemon.ts";
import { podOf } from "../e2e/pods/manifest.ts";
import { PodNode } from "../e2e/pods/node.ts";
import { noPods } from "../e2e/pods/skip.ts";
import { usedBy } from "./used.ts";

/** A megabyte is a million bytes. */
export interface DaemonMemoryFigure {
  readonly name: string;
  /** Memory that the kernel counts as resident, including pages of Node's own executable. */
  readonly residentMB: number;
  /** The part that is not backed by a file; every other process of the same Node shares the rest. */
  readonly ownMB: number;
  /** The maximum of resident memory until then. */
  readonly peakMB: number;
  readonly aimMB: number;
  /** CPU time of all threads since the previous figure, as a fraction of one core. */
  readonly share: number;
}
/** The number of pods, and the megabytes that the daemon may use with them. */
const NODES = [
  { pods: 10, aimMB: 60 },
  { pods: 110, aimMB: 80 },
] as const;
type PodsAim = (typeof NODES)[number];
const STARTED_MS = 180_000;
/** By then, all work that runs once a minute has run. `BENCH_PODS_SECONDS=600` checks that the memory stays flat. */
const REST_MS = Number(process.env["BENCH_PODS_SECONDS"] ?? 120) * 1000;
const BUSY_MS = 60_000;

/**
 * Measures the installed package's daemon with its default periods and each number of pods on a real containerd.
 * Returns no figures where containerd cannot be started.
 */
export async function benchPodsDaemon(): Promise<readonly DaemonMemoryFigure[]> {
  if (noPods("the daemon with pods") !== undefined) return [];
  const packed = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  try {
    const launcher = install(pack(packed), join(packed, "installed"));
    const figures: DaemonMemoryFigure[] = [];
    for (const aim of NODES) figures.push(...(await benchNode(launcher, aim)));
    return figures;
  } finally {
    rmSync(packed, { recursive: true });
  }
}

async function benchNode(launcher: string, aim: PodsAim): Promise<readonly DaemonMemoryFigure[]> {
  const { pods } = aim;
  const node = await PodNode.start({ settings: { syncSeconds: 1 }, launcher });
  try {
    const resources = { requests: { cpu: "5m", memory: "8Mi" }, limits: { cpu: "100m", memory: "32Mi" } };
    for (let i = 0; i < pods; i++) node.put(`pod-${i}`, podOf(`pod-${i}`, { containers: [resources] }));
    const { pid } = await node.startDaemon().until("its status", (status) => status);
    const used = figuresOf(pid, aim);
    await allUp(node, pods);
    const figures = [used("all have started")];
    await sleep(REST_MS);
    figures.push(used(`at rest for ${REST_MS / 1000} s`));
    const deadline = performance.now() + BUSY_MS;
    for (let i = 0; performance.now() < deadline; i = (i + 1) % pods) await restarted(node, `pod-${i}`);
    figures.push(used(`containers killed one after another for ${BUSY_MS / 1000} s`));
    return figures;
  } finally {
    await node.stop();
  }
}

async function allUp(node: PodNode, pods: number): Promise<void> {
  const deadline = performance.now() + STARTED_MS;
  for (;;) {
    const up = (await node.daemon.status())?.pods.filter(isUp).length ?? 0;
    if (up === pods) return;
    if (performance.now() > deadline) throw new Error(`${up} of ${pods} pods run`);
    await sleep(1000);
  }
}

async function restarted(node: PodNode, name: string): Promise<void> {
  const [newest] = await node.containersOf(name);
  if (newest === undefined) throw new Error(`${name} has no container`);
  await node.kill(newest.id);
  await node.daemon.pod(name, "anew", (row) => isUp(row) && row.containers[0]?.id !== newest.id);
}

function figuresOf(pid: number, { pods, aimMB }: PodsAim): (name: string) => DaemonMemoryFigure {
  let before = usedBy(pid);
  return (name) => {
    const now = usedBy(pid);
    const share = (now.allMs - before.allMs) / (now.atMs - before.atMs);
    before = now;
    const sizes = { residentMB: now.rssBytes / 1e6, ownMB: now.ownBytes / 1e6, peakMB: now.peakBytes / 1e6 };
    return { name: `${pods} pods, ${name}`, ...sizes, aimMB, share };
  };
}
