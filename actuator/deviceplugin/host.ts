import { readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { err, map, ok, type Result } from "../../api/base/result.ts";
import type { Device, DevicePlugin } from "../../api/model/machine.ts";
import { type EpochMs, epochMs } from "../../api/model/units.ts";
import { authorityFixSocket } from "../grpc/authority-fix-socket.ts";
import { Connections, listenRebinding, staleSocketAt } from "../grpc/listener.ts";
import { type AcceptedConnection, type Refusal, unaryMethod, unaryServer } from "../grpc/unary-server.ts";
import {
  type Allocation,
  type Endpoint,
  PLUGIN_TIMEOUTS,
  type PluginTimeouts,
  type PreferredAllocationRequest,
} from "./endpoint.ts";
import type { PluginFault, PluginResult } from "./fault.ts";
import type { IsInUse } from "./known-plugins.ts";
import { endpointPath, type RegisterRequest, resourceFault, SOCKET_NAME, versionFault } from "./names.ts";
import { methodAt } from "./plugin-client.ts";
import { PluginRegistry } from "./plugin-registry.ts";
import { amountsOf, devicePluginsOf, devicesOf, type PluginState, type ResourceAmount } from "./plugins.ts";
import { devicePluginHandler, openPluginWatcher, type PluginHandler } from "./watcher.ts";

const REGISTER = "/v1beta1.Registration/Register";
/** Connections at a time; a plugin needs one, for as long as it registers. */
const MAX_CONNECTIONS = 128;
/** A connection without traffic ends after this time. */
const IDLE_MS = 60_000;
/** A name, a socket's name and a version are a few hundred. */
const MAX_REQUEST_BYTES = 16 * 1024;

interface RegistrationOptions {
  readonly dir: string;
  /** Called with a registration; resolves when the plugin was dialled; its error is sent to the plugin. */
  readonly register: (resource: string, socketPath: string) => Promise<Result<unknown, PluginFault>>;
  /** Called for each refused request, for connections that do not speak gRPC, and when kubelet.sock was removed. */
  readonly onFault: (fault: PluginFault) => void;
}
interface RegistrationServer {
  readonly path: string;
  /** Sockets that were removed at the start. */
  readonly removed: readonly string[];
  /** Faults that last as long as they are returned here: kubelet.sock is lost. */
  standing(): readonly PluginFault[];
  close(): void;
}

/**
 * Clears the directory and serves v1beta1.Registration on a new kubelet.sock, which makes plugins register again.
 * Error: why it cannot; then no file of others was changed. kubelet 1.36: server.Start, server.Register.
 */
async function openRegistration(options: RegistrationOptions): Promise<Result<RegistrationServer, string>> {
  const { dir } = options;
  const path = join(dir, SOCKET_NAME);
  const cleared = await clearSocketDir(dir);
  if (!cleared.ok) return cleared;

  const server = unaryServer({
    handlers: { [REGISTER]: unaryMethod(methodAt(REGISTER), registrar(options)) },
    maxMessageBytes: MAX_REQUEST_BYTES,
    maxStreams: 8,
    sessionMegabytes: 1,
  });
  const lost = (message: string): PluginFault => ({ ...refusal("", path, message), code: "SOCKET_LOST" });
  const connections = new Connections({
    most: MAX_CONNECTIONS,
    onFull: (message) => options.onFault({ ...refusal("", path, message), code: "TOO_MANY_CONNECTIONS" }),
  });
  const listening = await listenRebinding({
    path,
    // a connection that is being closed still counts
    maxConnections: 2 * MAX_CONNECTIONS,
    onFault: (message, stands) => options.onFault({ ...lost(message), ...(stands ? { stands } : {}) }),
    onConnection: (socket) => {
      let accepted: AcceptedConnection | undefined;
      if (!connections.admit(socket, () => accepted?.isBusy() === true)) return;
      socket.setTimeout(IDLE_MS, () => socket.destroy());
      accepted = server.accept(authorityFixSocket(socket, (reason) => options.onFault(refusal("", path, reason))));
    },
  });
  return map(listening, ({ close, fault }) => ({
    path,
    removed: cleared.value.removed,
    standing: () => [fault()].flatMap((message) => (message === undefined ? [] : { ...lost(message), stands: true })),
    close: () => void close(),
  }));
}

/** Longer texts of strangers are cut. */
const MAX_NAME_LENGTH = 256;
const refusal = (resource: string, endpoint: string, message: string): PluginFault => ({
  resource: resource.slice(0, MAX_NAME_LENGTH),
  endpoint: endpoint.slice(0, MAX_NAME_LENGTH),
  call: "Register",
  code: "REFUSED",
  message,
});

/** Go's servers answer every plain error as UNKNOWN. */
const registrar =
  ({ dir, register, onFault }: RegistrationOptions) =>
  async (request: object): Promise<Result<object, Refusal>> => {
    const { version, resourceName, endpoint } = request as RegisterRequest;
    const refused = (message: string) => err({ code: status.UNKNOWN, message });
    const path = endpointPath(dir, endpoint);
    const wrong = versionFault(version) ?? resourceFault(resourceName) ?? (path.ok ? undefined : path.error);
    if (wrong !== undefined || !path.ok) {
      onFault(refusal(resourceName, endpoint, wrong ?? ""));
      return refused(wrong ?? "");
    }
    const done = await register(resourceName, path.value);
    if (done.ok) return ok({});
    onFault({ ...done.error, call: "Register" });
    return refused(done.error.message);
  };

/**
 * Prepares the directory for a new kubelet.sock: it removes the sockets of plugins that registered with the last one,
 * which makes them register again. Only sockets are removed, and none while a process answers at kubelet.sock. kubelet
 * 1.36: CleanupPluginDirectory.
 */
async function clearSocketDir(dir: string): Promise<Result<{ readonly removed: readonly string[] }, string>> {
  const found = await staleSocketAt(join(dir, SOCKET_NAME));
  if (!found.ok) return found;
  const removed: string[] = [];
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true }).filter((e) => e.isSocket())) {
      if (isRemoved(join(dir, entry.name))) removed.push(entry.name);
    }
  } catch (error) {
    return err(`cannot clear the directory of device plugins: ${(error as Error).message}`);
  }
  return ok({ removed });
}

/** Removes a file; false: another process was faster. */
function isRemoved(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

export interface DevicePluginHostOptions {
  /** The directory of kubelet.sock and the plugins' sockets. */
  readonly dir: string;
  /** The directory of sockets of plugin-watcher plugins; absent: such plugins are not looked for. */
  readonly registryDir?: string;
  /** Handlers for plugins of other types in the directory, such as DRA drivers. */
  readonly handlers?: Readonly<Record<string, PluginHandler>>;
  readonly timeouts?: Partial<PluginTimeouts>;
  readonly graceMs?: number;
  /** How long after its first list a stream counts as stable; `graceMs` counts from the first end before that. */
  readonly aliveAfterMs?: number;
  /** The interval between scans of `registryDir` without an event. */
  readonly rescanMs?: number;
  /**
   * Whether pods hold devices of a resource, so that its plugin is not displaced by an unused one. Absent: none does.
   */
  readonly isInUse?: IsInUse;
  readonly now?: () => EpochMs;
}

/** The node's side of the device plugin API: the registered plugins, their devices, and the calls to them. */
export interface DevicePluginHost {
  /** The path of its kubelet.sock. */
  readonly socketPath: string;
  /** Names of the sockets that were removed at the start, which makes their plugins register again. */
  readonly removed: readonly string[];
  /** `devices` of a snapshot. */
  devices(): readonly Device[];
  /** `devicePlugins` of a snapshot. */
  plugins(): readonly DevicePlugin[];
  /** Amounts in the node's status, by resource. */
  amounts(): ReadonlyMap<string, ResourceAmount>;
  /** Each resource with its endpoint, its generation and its latest changes of health. */
  states(): readonly PluginState[];
  /** Faults that last as long as they are returned here: a lost kubelet.sock, ignored devices. */
  standing(): readonly PluginFault[];
  /** `ids` for one container. kubelet 1.36: endpoint.allocate. */
  allocate(resource: string, ids: readonly string[]): PluginResult<Allocation>;
  /** Asks for preferred devices; null: the plugin does not offer it. Returns only ids of the question, best first. */
  preferred(resource: string, question: PreferredAllocationRequest): PluginResult<readonly string[] | null>;
  /** Called right before the container starts; it makes no call if the plugin does not require one. */
  preStart(resource: string, ids: readonly string[]): PluginResult<null>;
  /** Calls the listener, at most once per event loop turn, after a change. Returns a function that removes it. */
  onChange(listener: () => void): () => void;
  /**
   * Calls the listener for each plugin fault that no caller receives: refused registrations, broken streams, ignored
   * devices; never before the event loop turn that opened the host has ended. Returns a function that removes it.
   */
  onFault(listener: (fault: PluginFault) => void): () => void;
  /** Removes kubelet.sock and ends all calls; plugins' sockets stay. */
  close(): void;
}

/** Serves kubelet.sock and finds plugins. Error: what prevents it; nothing was changed then. */
export async function openDevicePluginHost(
  options: DevicePluginHostOptions,
): Promise<Result<DevicePluginHost, string>> {
  const faultListeners = new Set<(fault: PluginFault) => void>();
  const onFault = (fault: PluginFault): void => {
    for (const listener of faultListeners) listener(fault);
  };
  const listeners = new Set<() => void>();
  let isReported = true;
  const notify = (): void => {
    isReported = true;
    for (const listener of listeners) listener();
  };
  const onChange = (): void => {
    if (isReported) setImmediate(notify);
    isReported = false;
  };
  const registry = new PluginRegistry({
    timeouts: { ...PLUGIN_TIMEOUTS, ...options.timeouts },
    ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
    ...(options.aliveAfterMs === undefined ? {} : { aliveAfterMs: options.aliveAfterMs }),
    isInUse: options.isInUse ?? (() => false),
    now: options.now ?? (() => epochMs(Date.now())),
    onChange,
    onFault,
  });
  const register = (resource: string, path: string): PluginResult<number> => registry.register(resource, path);
  const registration = await openRegistration({ dir: options.dir, register, onFault });
  if (!registration.ok) return registration;
  const leave = (resource: string, generation: number): void => registry.deregister(resource, generation);
  const { registryDir, rescanMs } = options;
  const watcher =
    registryDir === undefined
      ? undefined
      : openPluginWatcher({
          dir: registryDir,
          handlers: { DevicePlugin: devicePluginHandler({ register, leave }), ...options.handlers },
          onFault,
          ...(rescanMs === undefined ? {} : { rescanMs }),
        });

  const at = <T>(call: string, resource: string, ask: (endpoint: Endpoint) => PluginResult<T>): PluginResult<T> => {
    const endpoint = registry.endpointOf(resource);
    return endpoint === undefined ? Promise.resolve(err(absence(registry, call, resource))) : ask(endpoint);
  };
  return ok({
    socketPath: registration.value.path,
    removed: registration.value.removed,
    devices: () => devicesOf(registry.plugins),
    plugins: () => devicePluginsOf(registry.plugins),
    amounts: () => amountsOf(registry.plugins),
    states: () => [...registry.plugins.values()],
    standing: () => [...registration.value.standing(), ...registry.standing()],
    allocate: (resource, ids) => at("Allocate", resource, (endpoint) => endpoint.allocate(ids)),
    preferred: (resource, question) =>
      at("GetPreferredAllocation", resource, (endpoint) => endpoint.preferred(question)),
    preStart: (resource, ids) => at("PreStartContainer", resource, (endpoint) => endpoint.preStart(ids)),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onFault: (listener) => {
      faultListeners.add(listener);
      return () => faultListeners.delete(listener);
    },
    close: () => {
      listeners.clear();
      watcher?.close();
      registration.value.close();
      registry.close();
    },
  });
}

/** kubelet 1.36: errEndpointStopped, or that of allocateContainerResources for an unknown resource. */
function absence(registry: PluginRegistry, call: string, resource: string): PluginFault {
  const known = registry.plugins.get(resource);
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
