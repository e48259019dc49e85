import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { benchDeviceDaemon } from "./device-daemon.ts";
import {
  AIM_SHARE,
  DEVICES,
  DEVICES_OF_OTHERS,
  type DevicePluginsFigure,
  FLIPS_PER_SECOND,
  PLUGINS,
} from "./device-figure.ts";
import type { HostFigures } from "./device-host-process.ts";
import type { FlipOrder, PluginFigures } from "./device-plugins-process.ts";
import { asked, nextMessage } from "./heard.ts";

const WARM_UP_MS = 3_000;
const MEASURED_MS = 4_000;
const LONGEST_MS = 60_000;
/**
 * Longer than the host pauses between two reads of a list, plus the delay of a loaded machine. No figure includes this
 * time.
 */
const SETTLED_MS = 30_000;
const CASES = [
  { name: "each plugin in turn", on: "all" },
  { name: `all of the one with ${DEVICES}`, on: "one" },
] as const;

/** Measures the host alone, then the whole daemon. */
export async function benchDevicePlugins(): Promise<readonly DevicePluginsFigure[]> {
  return [...(await benchHost()), ...(await benchDeviceDaemon())];
}

/**
 * Measures the real host and real plugins, each in its own process, over real sockets. Throws if the host does not
 * report the plugins' devices.
 */
async function benchHost(): Promise<readonly DevicePluginsFigure[]> {
  const dir = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  const children: ChildProcess[] = [];
  const begin = async (file: string, ...more: readonly number[]): Promise<ChildProcess> => {
    const options = { execArgv: ["--expose-gc"], timeout: LONGEST_MS };
    const child = fork(join(import.meta.dirname, file), [dir, ...more.map(String)], options);
    children.push(child);
    await nextMessage(child);
    return child;
  };
  try {
    const host = await begin("device-host-process.ts");
    const plugins = await begin("device-plugins-process.ts", PLUGINS, DEVICES, DEVICES_OF_OTHERS);
    const figures: DevicePluginsFigure[] = [];
    for (const { name, on } of CASES) figures.push(await measured(host, plugins, name, on));
    return figures;
  } finally {
    for (const child of children) child.kill();
    rmSync(dir, { recursive: true });
  }
}

async function measured(
  host: ChildProcess,
  plugins: ChildProcess,
  name: string,
  on: FlipOrder["on"],
): Promise<DevicePluginsFigure> {
  const flip = (flipsPerSecond: number) => asked<PluginFigures>(plugins, { flipsPerSecond, on } satisfies FlipOrder);
  await flip(FLIPS_PER_SECOND);
  await sleep(WARM_UP_MS);
  const before = await asked<HostFigures>(host, {});
  const sentBefore = await flip(FLIPS_PER_SECOND);
  const began = performance.now();
  await sleep(MEASURED_MS);
  const after = await asked<HostFigures>(host, {});
  const seconds = (performance.now() - began) / 1000;
  const sent = await flip(0);
  const stopped = performance.now();
  let last = after;
  while (last.healthy !== sent.healthy && performance.now() - stopped < SETTLED_MS) {
    await sleep(10);
    last = await asked<HostFigures>(host, {});
  }
  const devices = DEVICES + (PLUGINS - 1) * DEVICES_OF_OTHERS;
  if (last.healthy !== sent.healthy || last.devices !== devices || last.faults.length > 0)
    throw new Error(`${JSON.stringify(last)} after ${JSON.stringify(sent)}`);
  return {
    name: `the host alone, ${PLUGINS} plugins, ${FLIPS_PER_SECOND} flips/s, ${name}`,
    loopShare: (after.loopMicros - before.loopMicros) / 1e6 / seconds,
    aimShare: AIM_SHARE,
    processShare: (after.cpuMicros - before.cpuMicros) / 1e6 / seconds,
    flipsPerSecond: (sent.flips - sentBefore.flips) / seconds,
    listsPerSecond: (sent.lists - sentBefore.lists) / seconds,
    rssGrowthBytes: after.rssBytes - before.rssBytes,
    heldGrowthBytes: after.heldBytes - before.heldBytes,
    behindMs: performance.now() - stopped,
  };
}
