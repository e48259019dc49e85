import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { deviceOf } from "../e2e/pods/devices.ts";
import { podOf } from "../e2e/pods/manifest.ts";
import { PodNode } from "../e2e/pods/node.ts";
import { noPods } from "../e2e/pods/skip.ts";
import {
  AIM_SHARE,
  DEVICES,
  DEVICES_OF_OTHERS,
  type DevicePluginsFigure,
  FLIPS_PER_SECOND,
  PLUGINS,
} from "./device-figure.ts";
import type { FlipOrder, PluginFigures } from "./device-plugins-process.ts";
import { asked, nextMessage } from "./heard.ts";
import { usedBy } from "./used.ts";

const WARM_UP_MS = 4_000;
const MEASURED_MS = 10_000;
const LONGEST_MS = 60_000;
const CASES = [
  { name: "none flips", on: "all", flipsPerSecond: 0 },
  { name: "each plugin in turn", on: "all", flipsPerSecond: FLIPS_PER_SECOND },
  { name: `all of the one with ${DEVICES}`, on: "one", flipsPerSecond: FLIPS_PER_SECOND },
] as const;

/**
 * Measures the real daemon with the launcher's flags. The daemon runs two pods on a real containerd and serves the same
 * plugins. Returns no figures where containerd cannot be started; throws if the daemon does not report the plugins'
 * devices.
 */
export async function benchDeviceDaemon(): Promise<readonly DevicePluginsFigure[]> {
  if (noPods("the daemon with device plugins") !== undefined) return [];
  const node = await PodNode.start({ settings: { devicePlugins: "serve", syncSeconds: 1 } });
  let plugins: ChildProcess | undefined;
  try {
    node.put("plain", podOf("plain"));
    node.put("has", deviceOf("has", 1, "bench.example.com/kind-1"));
    const { pid } = await node.startDaemon().until("its status", (status) => status);
    const counts = [PLUGINS, DEVICES, DEVICES_OF_OTHERS].map(String);
    const options = { timeout: LONGEST_MS };
    plugins = fork(join(import.meta.dirname, "device-plugins-process.ts"), [join(node.dir, "dp"), ...counts], options);
    await nextMessage(plugins);
    await node.daemon.running("plain", "has");
    const figures: DevicePluginsFigure[] = [];
    for (const one of CASES) figures.push(await measured(node, pid, plugins, one));
    return figures;
  } finally {
    plugins?.kill();
    await node.stop();
  }
}

async function measured(
  node: PodNode,
  pid: number,
  plugins: ChildProcess,
  { name, ...order }: FlipOrder & { readonly name: string },
): Promise<DevicePluginsFigure> {
  const flip = (now: FlipOrder) => asked<PluginFigures>(plugins, now);
  await flip(order);
  await sleep(WARM_UP_MS);
  const sentBefore = await flip(order);
  const before = usedBy(pid);
  await sleep(MEASURED_MS);
  const after = usedBy(pid);
  const elapsedMs = after.atMs - before.atMs;
  const seconds = elapsedMs / 1000;
  const sent = await flip({ ...order, flipsPerSecond: 0 });
  const stopped = performance.now();
  await node.daemon.until("the last flip", ({ devices = [] }) =>
    devices.reduce((sum, { allocatable }) => sum + allocatable, 0) === sent.healthy ? true : undefined,
  );
  const shareOf = (field: "loopMs" | "allMs"): number => (after[field] - before[field]) / elapsedMs;
  return {
    name: `the whole daemon, ${PLUGINS} plugins, ${order.flipsPerSecond} flips/s, ${name}`,
    loopShare: shareOf("loopMs"),
    aimShare: AIM_SHARE,
    processShare: shareOf("allMs"),
    flipsPerSecond: (sent.flips - sentBefore.flips) / seconds,
    listsPerSecond: (sent.lists - sentBefore.lists) / seconds,
    rssGrowthBytes: after.rssBytes - before.rssBytes,
    heldGrowthBytes: after.ownBytes - before.ownBytes,
    behindMs: performance.now() - stopped,
  };
}
