import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { HostFigures } from "./device-host-process.ts";
import type { FlipOrder, PluginFigures } from "./device-plugins-process.ts";
import { asked, heard } from "./heard.ts";

export interface DevicePluginsFigure {
  readonly name: string;
  /** CPU time of the host's event loop, with its part of collecting garbage, as a part of one core. */
  readonly loopShare: number;
  readonly aimShare: number;
  /** The same of all threads of its process. */
  readonly processShare: number;
  readonly flipsPerSecond: number;
  readonly listsPerSecond: number;
  /** While it was measured. */
  readonly rssGrowthBytes: number;
  /** The same of what is in use, after a collection. */
  readonly heldGrowthBytes: number;
  /** From the last flip until the host has it. */
  readonly behindMs: number;
}

const PLUGINS = 64;
const DEVICES = 4096;
const DEVICES_OF_OTHERS = 64;
const FLIPS_PER_SECOND = 1000;
const AIM_SHARE = 0.1;
const WARM_UP_MS = 3_000;
const MEASURED_MS = 4_000;
const LONGEST_MS = 19_500;
/** Longer than the host ever rests between two looks at a list. */
const SETTLED_MS = 3_500;
const CASES = [
  { name: "each plugin in turn", on: "all" },
  { name: `all of the one with ${DEVICES}`, on: "one" },
] as const;

/**
 * The real host and real plugins, each in a process of its own, over real sockets. Takes less than 20 seconds; throws
 * where the host does not come to know what the plugins have.
 */
export async function benchDevicePlugins(): Promise<readonly DevicePluginsFigure[]> {
  const dir = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  const children: ChildProcess[] = [];
  const begin = async (file: string, ...more: readonly number[]): Promise<ChildProcess> => {
    const options = { execArgv: ["--expose-gc"], timeout: LONGEST_MS };
    const child = fork(join(import.meta.dirname, file), [dir, ...more.map(String)], options);
    children.push(child);
    await heard(child);
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
    name: `${PLUGINS} plugins, one with ${DEVICES} devices, 1000 flips/s, ${name}`,
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
