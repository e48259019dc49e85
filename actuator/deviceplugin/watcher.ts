import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { err, map } from "../../api/base/result.ts";
import { isSocketPath, socketIdentity } from "../core/addresses.ts";
import { CoalescedTimer, WatchedDirectory } from "../grpc/watched-directory.ts";
import type { PluginCall, PluginFault, PluginResult } from "./fault.ts";
import { type PluginInfo, quoted, reportedEndpoint, resourceFault, SUPPORTED_VERSIONS } from "./names.ts";
import { callOnce, dial } from "./plugin-client.ts";

/** Handles the plugins of one type. kubelet 1.37: cache.PluginHandler. */
export interface PluginHandler {
  /** Why a plugin is refused; undefined: it may register. */
  readonly fault: (info: PluginInfo, socketPath: string) => string | undefined;
  /** The value is the plugin's generation, by which it leaves. */
  readonly register: (info: PluginInfo, socketPath: string) => PluginResult<number>;
  readonly leave: (name: string, generation: number) => void;
}
/** A plugin that is registered and was notified of it. */
interface NotifiedPlugin {
  readonly leave: () => void;
}
interface Introduction extends Pick<WatcherOptions, "handlers"> {
  /** The socket where the plugin reports its identity. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** kubelet 1.36: dialTimeoutDuration, notifyTimeoutDuration; GetInfo has a second. */
const DIAL_MS = 10_000;
const INFO_MS = 1_000;
const NOTIFY_MS = 5_000;

/**
 * Asks a plugin for its identity, registers it, and notifies it of the result, including the fault. kubelet 1.36:
 * GenerateRegisterPluginFunc, ValidatePlugin.
 */
async function introduce({ path, handlers, signal }: Introduction): PluginResult<NotifiedPlugin> {
  const of = (call: string, resource = ""): PluginCall => ({ resource, endpoint: path, call });
  const calling = { of: of("GetInfo"), timeoutMs: INFO_MS, signal };
  const dialed = await dial(calling, DIAL_MS, "/pluginregistration.Registration/GetInfo", {});
  if (!dialed.ok) return dialed;
  const { client, answer } = dialed.value;
  const notify = (pluginRegistered: boolean, error: string) =>
    callOnce(
      client,
      { of: of("NotifyRegistrationStatus", answer.name), timeoutMs: NOTIFY_MS, signal },
      "/pluginregistration.Registration/NotifyRegistrationStatus",
      { pluginRegistered, error },
    );
  try {
    const refused = async (message: string, fault: Partial<PluginFault> = {}): PluginResult<NotifiedPlugin> => {
      const error = `RegisterPlugin error -- ${message}`;
      await notify(false, error);
      return err({ ...of("Register", quoted(answer.name).slice(1, -1)), code: "REFUSED", ...fault, message: error });
    };
    const handler = Object.hasOwn(handlers, answer.type) ? handlers[answer.type] : undefined;
    if (handler === undefined) {
      return await refused(
        `no handler registered for plugin type: ${quoted(answer.type).slice(1, -1)} at socket ${path}`,
      );
    }
    const endpoint = reportedEndpoint(answer.endpoint, path);
    const wrong = endpoint.ok ? handler.fault(answer, endpoint.value) : endpoint.error;
    if (wrong !== undefined || !endpoint.ok) return await refused(`plugin validation failed with err: ${wrong}`);
    const registered = await handler.register(answer, endpoint.value);
    if (!registered.ok) {
      const { code, message } = registered.error;
      return await refused(`plugin registration failed with err: ${message}`, { code, endpoint: endpoint.value });
    }
    const leave = (): void => handler.leave(answer.name, registered.value);
    const notified = await notify(true, "");
    if (!notified.ok) leave();
    return map(notified, () => ({ leave }));
  } finally {
    client.close();
  }
}

/** The handler of device plugins, each identified by its resource. */
export const devicePluginHandler = ({
  register,
  leave,
}: {
  readonly register: (resource: string, socketPath: string) => PluginResult<number>;
  readonly leave: PluginHandler["leave"];
}): PluginHandler => ({
  fault: validationFault,
  register: ({ name }, path) => register(name, path),
  leave,
});

function validationFault({ name, supportedVersions }: PluginInfo): string | undefined {
  if (!supportedVersions.some((version) => SUPPORTED_VERSIONS.includes(version))) {
    const versions = supportedVersions.slice(0, MAX_VERSIONS).map((v) => quoted(v).slice(1, -1));
    return `manager version, ${SUPPORTED_VERSIONS.at(-1)}, is not among plugin supported versions [${versions.join(" ")}]`;
  }
  const fault = resourceFault(name);
  return fault === undefined ? undefined : `invalid name of device plugin socket: ${fault}`;
}
const MAX_VERSIONS = 16;

interface WatcherOptions {
  readonly dir: string;
  readonly rescanMs?: number;
  /** The handlers by the type that plugins report. */
  readonly handlers: Readonly<Record<string, PluginHandler>>;
  readonly onFault: (fault: PluginFault) => void;
}
/** A socket that was found, and how far its plugin is. */
interface FoundSocket {
  readonly identity: string;
  readonly life: AbortController;
  isAsking: boolean;
  /** The earliest time of the next attempt, by performance.now(). */
  nextAt: number;
  failures: number;
  introduced?: NotifiedPlugin;
}

const RESCAN_MS = 10_000;
/** The time to wait for related events: one action of a plugin on its socket causes several. */
const SETTLE_MS = 50;
const MAX_SOCKETS = 1024;
const DEEPEST = 4;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 120_000;

/**
 * Finds plugins by their sockets in a directory, or in directories below it, and asks each for its identity; when a socket
 * vanishes, its plugin is removed, and another socket at its path is another plugin. Names that begin with a dot are ignored.
 * kubelet 1.36: pluginwatcher.Watcher, reconciler.
 */
export function openPluginWatcher(options: WatcherOptions): { readonly close: () => void } {
  const { dir, handlers, onFault, rescanMs = RESCAN_MS } = options;
  const found = new Map<string, FoundSocket>();
  const next = new CoalescedTimer(scan);
  const watched = new WatchedDirectory(dir, () => next.in(SETTLE_MS));

  const ask = async (path: string, socket: FoundSocket): Promise<void> => {
    socket.isAsking = true;
    const done = await introduce({ path, handlers, signal: socket.life.signal });
    socket.isAsking = false;
    if (done.ok) {
      // a plugin that vanished meanwhile was not yet known when it should have been removed
      if (found.get(path) !== socket) done.value.leave();
      else socket.introduced = done.value;
      return;
    }
    if (socket.life.signal.aborted) return;
    onFault(done.error);
    const waitMs = Math.min(FIRST_RETRY_MS * 2 ** socket.failures++, LONGEST_RETRY_MS);
    socket.nextAt = performance.now() + waitMs;
    next.in(Math.min(waitMs, rescanMs));
  };
  const drop = (path: string, socket: FoundSocket): void => {
    found.delete(path);
    socket.life.abort();
    socket.introduced?.leave();
  };
  function scan(): void {
    next.in(rescanMs);
    make(dir);
    watched.renew();
    const sockets = socketsBelow(dir);
    for (const [path, socket] of found) if (sockets.get(path) !== socket.identity) drop(path, socket);
    for (const [path, identity] of sockets) {
      const socket = found.get(path) ?? {
        identity,
        life: new AbortController(),
        isAsking: false,
        nextAt: 0,
        failures: 0,
      };
      found.set(path, socket);
      const isDue = !socket.isAsking && socket.introduced === undefined && socket.nextAt <= performance.now();
      if (isDue) void ask(path, socket);
    }
  }
  scan();
  return {
    close: () => {
      next.stop();
      watched.close();
      for (const { life } of found.values()) life.abort();
    },
  };
}

function make(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o755 });
  } catch {
    // nothing is found until the directory can be created
  }
}

/** Path -> identity. */
function socketsBelow(root: string): ReadonlyMap<string, string> {
  const sockets = new Map<string, string>();
  const walk = (dir: string, depth: number): void => {
    let entries: ReturnType<typeof readEntries>;
    try {
      entries = readEntries(dir);
    } catch {
      return;
    }
    for (const entry of entries) {
      const path = join(dir, entry.name);
      if (entry.name.startsWith(".") || sockets.size >= MAX_SOCKETS) continue;
      if (entry.isDirectory() && depth < DEEPEST) walk(path, depth + 1);
      const identity = entry.isSocket() && isSocketPath(path) ? socketIdentity(path) : undefined;
      if (identity !== undefined) sockets.set(path, identity);
    }
  };
  walk(root, 1);
  return sockets;
}
const readEntries = (dir: string) => readdirSync(dir, { withFileTypes: true });
