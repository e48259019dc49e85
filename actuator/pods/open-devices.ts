import { ok, type Result } from "../../api/model/result.ts";
import type { ActuatorConfig } from "../config.ts";
import type { Listener } from "../grpc/listener.ts";
import { liveSource } from "../podresources/live-source.ts";
import { servePodResources } from "../podresources/server.ts";
import type { Problem } from "../ports.ts";
import type { Counters } from "../status/counters.ts";
import { deviceRows } from "../status/device-rows.ts";
import type { DeviceRow } from "../status/node-status.ts";
import type { PodClock } from "./clock.ts";
import { readDeviceCheckpoint } from "./device-checkpoint.ts";
import { claimDevices } from "./devices/claim.ts";
import type { DeviceKeeper } from "./devices/keeper.ts";
import { openDeviceKeeper } from "./devices/open.ts";
import type { ManagerFiles } from "./manager-files.ts";
import type { ToldNode } from "./told-node.ts";

export interface DevicesOptions {
  readonly config: ActuatorConfig;
  readonly files: ManagerFiles;
  readonly clock: PodClock;
  readonly bootId: string;
  readonly counters: Pick<Counters, "deviceAllocated" | "devicePluginRegistered">;
  /** What is told once, and does not stand. */
  readonly onProblem: (problem: Problem) => void;
  /** Plugins came or went, or what pods wait for has changed. */
  readonly onChange: () => void;
}
/** The node's devices while the daemon runs. */
export interface OpenDevices {
  readonly keeper: DeviceKeeper;
  /** As people see them. `nameOf`: a pod's name by its uid, or the uid. */
  rows(nameOf: (uid: string) => string): readonly DeviceRow[];
  /** Tells exporters who has what. That it cannot is a problem, and no more: pods run without. */
  tell(node: ToldNode): Promise<void>;
  close(): Promise<void>;
}

/** Device plugins, where the settings want them served; undefined: they do not. The error says what is in the way. */
export async function openDevices(options: DevicesOptions): Promise<Result<OpenDevices | undefined, string>> {
  const { config, files, clock, bootId, counters, onProblem, onChange } = options;
  if (config.devicePlugins === "off") return ok(undefined);
  const claim = await claimDevices(config.stateDir, bootId);
  if (!claim.ok) return claim;
  const opened = await openDeviceKeeper({
    pluginDir: config.devicePluginsDirectory,
    registryDir: config.pluginsRegistryDirectory,
    stateDir: config.stateDir,
    files,
    clock,
    bootId,
    waitMs: config.deviceWaitSeconds * 1000,
    counters,
    onProblem,
  });
  if (!opened.ok) {
    claim.value.release();
    return opened;
  }
  const keeper = opened.value;
  const unlisten = keeper.onChange(() => {
    if (keeper.isWorthATurn()) onChange();
  });
  let exporters: Listener | undefined;
  return ok({
    keeper,
    rows: (nameOf) => {
      const checkpoint = readDeviceCheckpoint(files);
      return deviceRows({
        states: keeper.host.states(),
        checkpoint: checkpoint.ok ? checkpoint.value : undefined,
        nameOf,
      });
    },
    tell: async (node) => {
      const onFault = (message: string): void => onProblem({ from: "devices", message });
      const source = liveSource({ version: () => node.version(), snapshot: () => node.snapshot() });
      const served = await servePodResources({ directory: config.podResourcesDirectory, source, onFault });
      if (served.ok) exporters = served.value;
      else onFault(`the podresources API is not served: ${served.error}`);
    },
    close: async () => {
      unlisten();
      exporters?.close();
      keeper.close();
      claim.value.release();
    },
  });
}
