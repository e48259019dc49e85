import type { Device, DevicePlugin } from "../../api/model/devices.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type EpochMs, epochMs } from "../../api/model/units.ts";
import type { Allocation } from "./allocation.ts";
import { type Endpoint, PLUGIN_TIMEOUTS, type PluginTimeouts, type PreferredQuestion } from "./endpoint.ts";
import type { IsInUse } from "./fair-share.ts";
import type { Answered, PluginFault } from "./fault.ts";
import { Fleet } from "./fleet.ts";
import { amountsOf, devicePluginsOf, devicesOf, type ResourceAmount } from "./plugin-views.ts";
import type { PluginState } from "./plugins.ts";
import { openRegistration } from "./registration.ts";
import { openPluginWatcher } from "./watcher.ts";

export interface DevicePluginHostOptions {
  /** Where plugins find kubelet.sock and put their own. */
  readonly dir: string;
  /** Where plugins of the watcher form put theirs; absent: such plugins are not looked for. */
  readonly registryDir?: string;
  readonly timeouts?: Partial<PluginTimeouts>;
  readonly graceMs?: number;
  /** From the first list of a stream until it counts as one that lives; `graceMs` counts from the first end before. */
  readonly livesMs?: number;
  /** Between two looks at `registryDir` that nothing asked for. */
  readonly rescanMs?: number;
  /** Pods hold devices of it: its plugin gives way to none that nobody uses. Absent: of none. */
  readonly isInUse?: IsInUse;
  readonly now?: () => EpochMs;
  /** Told of each fault of a plugin that no caller hears of: refused registrations, broken streams, devices left out. */
  readonly onFault?: (fault: PluginFault) => void;
}

/** The node's side of the device plugin API: who registered, what they have, and the calls to them. */
export interface DevicePluginHost {
  /** The path of its kubelet.sock. */
  readonly socketPath: string;
  /** Names of the sockets that were removed at the start, so that their plugins come back. */
  readonly removed: readonly string[];
  /** `devices` of a snapshot. */
  devices(): readonly Device[];
  /** `devicePlugins` of a snapshot. */
  plugins(): readonly DevicePlugin[];
  /** What the node's status says, by resource. */
  amounts(): ReadonlyMap<string, ResourceAmount>;
  /** Each resource with its endpoint, its generation and its latest changes of health. */
  states(): readonly PluginState[];
  /** What is wrong for as long as it is said here: a lost kubelet.sock, devices that are left out. */
  standing(): readonly PluginFault[];
  /** `ids` for one container. kubelet 1.36: endpoint.allocate. */
  allocate(resource: string, ids: readonly string[]): Answered<Allocation>;
  /** Null: the plugin does not offer to choose. Only ids of the question, best first. */
  preferred(resource: string, question: PreferredQuestion): Answered<readonly string[] | null>;
  /** Right before the container starts; nothing is called where the plugin does not want it. */
  preStart(resource: string, ids: readonly string[]): Answered<null>;
  /** Told, at most once a turn of the event loop, when anything of the above has changed. Answers how to stop it. */
  onChange(listener: () => void): () => void;
  /** Removes kubelet.sock and ends all calls; plugins' sockets stay. */
  close(): void;
}

/** Serves kubelet.sock and looks for plugins. The error says what is in the way; then nothing was touched. */
export async function openDevicePluginHost(
  options: DevicePluginHostOptions,
): Promise<Result<DevicePluginHost, string>> {
  const onFault = options.onFault ?? (() => undefined);
  const listeners = new Set<() => void>();
  let isTold = true;
  const tell = (): void => {
    isTold = true;
    for (const listener of listeners) listener();
  };
  const onChange = (): void => {
    if (isTold) setImmediate(tell);
    isTold = false;
  };
  const fleet = new Fleet({
    timeouts: { ...PLUGIN_TIMEOUTS, ...options.timeouts },
    ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
    ...(options.livesMs === undefined ? {} : { livesMs: options.livesMs }),
    isInUse: options.isInUse ?? (() => false),
    now: options.now ?? (() => epochMs(Date.now())),
    onChange,
    onFault,
  });
  const register = (resource: string, path: string): Answered<number> => fleet.register(resource, path);
  const registration = await openRegistration({ dir: options.dir, register, onFault });
  if (!registration.ok) return registration;
  const leave = (resource: string, generation: number): void => fleet.leave(resource, generation);
  const { registryDir, rescanMs } = options;
  const watcher =
    registryDir === undefined
      ? undefined
      : openPluginWatcher({
          dir: registryDir,
          register,
          leave,
          onFault,
          ...(rescanMs === undefined ? {} : { rescanMs }),
        });

  const at = <T>(call: string, resource: string, ask: (endpoint: Endpoint) => Answered<T>): Answered<T> => {
    const endpoint = fleet.endpointOf(resource);
    return endpoint === undefined ? Promise.resolve(err(absence(fleet, call, resource))) : ask(endpoint);
  };
  return ok({
    socketPath: registration.value.path,
    removed: registration.value.removed,
    devices: () => devicesOf(fleet.plugins),
    plugins: () => devicePluginsOf(fleet.plugins),
    amounts: () => amountsOf(fleet.plugins),
    states: () => [...fleet.plugins.values()],
    standing: () => [...registration.value.standing(), ...fleet.standing()],
    allocate: (resource, ids) => at("Allocate", resource, (endpoint) => endpoint.allocate(ids)),
    preferred: (resource, question) =>
      at("GetPreferredAllocation", resource, (endpoint) => endpoint.preferred(question)),
    preStart: (resource, ids) => at("PreStartContainer", resource, (endpoint) => endpoint.preStart(ids)),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => {
      listeners.clear();
      watcher?.close();
      registration.value.close();
      fleet.close();
    },
  });
}

/** kubelet 1.36: errEndpointStopped, and allocateContainerResources where nothing is known. */
function absence(fleet: Fleet, call: string, resource: string): PluginFault {
  const known = fleet.plugins.get(resource);
  return known === undefined
    ? { resource, endpoint: "", call, code: "NOT_REGISTERED", message: `unknown Device Plugin ${resource}` }
    : {
        resource,
        endpoint: known.endpoint,
        call,
        code: "STOPPED",
        message: `endpoint ${known.endpoint} has been stopped`,
      };
}
