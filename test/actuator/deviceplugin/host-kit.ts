import { onTestFinished } from "vitest";
import type { PluginFault } from "../../../actuator/deviceplugin/fault.ts";
import {
  type DevicePluginHost,
  type DevicePluginHostOptions,
  openDevicePluginHost,
} from "../../../actuator/deviceplugin/host.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { NodePlugin, type PluginScript } from "./node-plugin.ts";

/** Short timeouts, so that tests of hanging calls end soon; answered calls take less, also on a loaded machine. */
export const QUICK = { dialMs: 400, optionsMs: 2000, preferredMs: 1000, allocateMs: 1000, preStartMs: 1000 };

export interface HostFixture {
  readonly dir: string;
  readonly host: DevicePluginHost;
  readonly faults: PluginFault[];
  plugin(script: Omit<PluginScript, "dir"> & { readonly dir?: string }): NodePlugin;
  /** A second host in the same directory, after the first was closed. */
  again(options?: Partial<DevicePluginHostOptions>): Promise<DevicePluginHost>;
}

/** A host in its own directory, and plugins beside it. */
export async function hostFixture(options: Partial<DevicePluginHostOptions> = {}): Promise<HostFixture> {
  const dir = scratchFolder();
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
    onTestFinished(() => opened.value.close());
    return opened.value;
  };
  const plugin = (script: Omit<PluginScript, "dir"> & { readonly dir?: string }): NodePlugin => {
    const made = new NodePlugin({ dir, ...script });
    onTestFinished(() => made.vanish());
    return made;
  };
  return { dir, host: await open(), faults, plugin, again: open };
}
