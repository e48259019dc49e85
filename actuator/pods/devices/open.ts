import { realpathSync } from "node:fs";
import { ok, type Result } from "../../../api/model/result.ts";
import { epochMs } from "../../../api/model/units.ts";
import { claimsDirectory, type Lock, takeLock } from "../../core/lock.ts";
import type { PluginTimeouts } from "../../deviceplugin/endpoint.ts";
import { openDevicePluginHost } from "../../deviceplugin/host.ts";
import { noCounters } from "../../status/counters.ts";
import { DeviceAssignments } from "./device-assignments.ts";
import { DeviceManager } from "./device-manager.ts";
import type { DeviceManagerPorts } from "./device-manager-parts.ts";
import { DeviceHistory } from "./history.ts";

export interface DeviceManagerOptions
  extends Pick<DeviceManagerPorts, "files" | "clock" | "bootId" | "waitMs" | "onProblem"> {
  /** Where plugins find kubelet.sock. */
  readonly pluginDir: string;
  /** Where plugins of the watcher form put their sockets; null: they are not looked for. */
  readonly registryDir: string | null;
  /** Absent: nobody counts. */
  readonly counters?: DeviceManagerPorts["counters"];
  /** Directory of the history. */
  readonly stateDir: string;
  readonly timeouts?: Partial<PluginTimeouts>;
  readonly graceMs?: number;
}

/** Serves kubelet.sock, and keeps who holds what. The error says what is in the way; then nothing was touched. */
export async function openDeviceManager(options: DeviceManagerOptions): Promise<Result<DeviceManager, string>> {
  const { pluginDir, registryDir, stateDir, files, clock, bootId, waitMs, timeouts, graceMs, onProblem } = options;
  const { counters = noCounters } = options;
  const assignments = new DeviceAssignments(files);
  const opened = await openDevicePluginHost({
    dir: pluginDir,
    ...(registryDir === null ? {} : { registryDir }),
    ...(timeouts === undefined ? {} : { timeouts }),
    ...(graceMs === undefined ? {} : { graceMs }),
    isInUse: (resource) => (assignments.now().entries ?? []).some(({ resourceName }) => resourceName === resource),
    now: () => epochMs(clock.nowMs()),
  });
  if (!opened.ok) return opened;
  const host = opened.value;
  const onFault = (message: string): void => onProblem({ from: "devices", message });
  const history = new DeviceHistory({ stateDir, clock, onFault });
  return ok(new DeviceManager({ host, files, clock, bootId, waitMs, history, counters, onProblem }));
}

/** Claims the devices of a state directory: one process allocates them. Error: who holds the claim. */
export const claimDevices = (stateDir: string, bootId: string): Promise<Result<Lock, string>> =>
  takeLock(claimsDirectory(), `/device-state${encodeURI(realpathSync(stateDir))}`, bootId);
