import { afterEach } from "vitest";
import type { PluginFault } from "../../../actuator/deviceplugin/fault.ts";
import {
  type DevicePluginHost,
  type DevicePluginHostOptions,
  openDevicePluginHost,
} from "../../../actuator/deviceplugin/host.ts";
import { NodePlugin, ownDir, type PluginScript } from "./node-plugin.ts";

/** So that what hangs is seen soon; what is answered takes less, on a loaded machine too. */
export const QUICK = { dialMs: 400, optionsMs: 2000, preferredMs: 1000, allocateMs: 1000, preStartMs: 1000 };

export interface Ground {
  readonly dir: string;
  readonly host: DevicePluginHost;
  readonly faults: PluginFault[];
  plugin(script: Omit<PluginScript, "dir"> & { readonly dir?: string }): NodePlugin;
  /** A host in the same directory, after the first was closed. */
  again(options?: Partial<DevicePluginHostOptions>): Promise<DevicePluginHost>;
}

const cleanups: (() => unknown)[] = [];
/** Ends what a test has opened, the last first. */
export const atEnd = (cleanup: () => unknown): void => void cleanups.push(cleanup);
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A host in a directory of its own, and plugins beside it. */
export async function ground(options: Partial<DevicePluginHostOptions> = {}): Promise<Ground> {
  const { dir, remove } = ownDir();
  atEnd(remove);
  const faults: PluginFault[] = [];
  const open = async (more: Partial<DevicePluginHostOptions> = {}): Promise<DevicePluginHost> => {
    const opened = await openDevicePluginHost({
      dir,
      timeouts: { dialMs: QUICK.dialMs },
      ...options,
      ...more,
    });
    if (!opened.ok) throw new Error(opened.error);
    opened.value.onFault((fault) => faults.push(fault));
    atEnd(() => opened.value.close());
    return opened.value;
  };
  const plugin = (script: Omit<PluginScript, "dir"> & { readonly dir?: string }): NodePlugin => {
    const made = new NodePlugin({ dir, ...script });
    atEnd(() => made.vanish());
    return made;
  };
  return { dir, host: await open(), faults, plugin, again: open };
}
