import { realpathSync } from "node:fs";
import { join, normalize } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { ConnectionOptions } from "../containerd/connection.ts";
import { mountPointsOf, observeImageFileSystems } from "../containerd/file-systems.ts";
import { observeLogs, removeContainerLog, removeLogLink, removePodLogs } from "../containerd/logs.ts";
import { openRuntime } from "../containerd/runtime.ts";
import { socketPathOf } from "../core/addresses.ts";
import type { ActuatorConfig } from "../core/config.ts";
import { claimsDirectory, type Lock, takeLock } from "../core/lock.ts";
import { PassClock } from "../core/pass-clock.ts";
import { type CollectOptions, Collector } from "./collector.ts";
import type { GcDeps, GcReport, LogFiles, RemovalReport } from "./dependencies.ts";
import { GcJournal } from "./journal.ts";
import type { ObserveDeps, ObserveSettings } from "./observe-node.ts";
import type { ClosedPass } from "./remove.ts";

/** Events of a collector while it works. */
export interface CollectionEvents {
  readonly onGcReport?: (report: GcReport) => void;
  readonly onRemoval?: (removal: RemovalReport) => void;
  /** Called with a pass that an earlier process left, before anything else is collected. */
  readonly onSettled?: (settled: ClosedPass) => void;
}
interface CollectorOptions extends CollectionEvents {
  readonly config: ActuatorConfig;
}
export interface OpenCollector {
  readonly collector: Collector;
  readonly release: () => void;
}
export type SharedDeps = Pick<GcDeps, "client" | "observeMachine" | "readPods" | "readConfiguration">;

/** A collector for this machine's runtime. Errors: an invalid endpoint, or another process collects from the runtime. */
export async function openCollector(
  shared: SharedDeps,
  { config, onRemoval, onSettled }: CollectorOptions,
  { onFault, ...how }: Pick<CollectOptions, "stop" | "joinsEviction"> & Pick<ConnectionOptions, "onFault">,
): Promise<Result<OpenCollector, string>> {
  const dryRun = config.garbageCollection !== "enforce";
  const deps = gcDeps(shared, config, onFault);
  if (!deps.ok) return deps;
  const { runtime } = deps.value;
  const bootId = shared.observeMachine().system.bootID ?? "";
  const lock = dryRun ? ok(null) : await lockOf(config.runtimeEndpoint, bootId);
  if (!lock.ok) {
    runtime.close();
    return lock;
  }
  const journal = dryRun ? null : new GcJournal(join(config.stateDir, "collection.jsonl"));
  const collector = new Collector(
    { ...deps.value, journal },
    {
      ...how,
      settings: observeSettings(config),
      dryRun,
      onRemoval: (removal) => onRemoval?.(removal),
      onSettled: (settled) => onSettled?.(settled),
    },
  );
  const release = (): void => {
    runtime.close();
    lock.value?.release();
  };
  return ok({ collector, release });
}

/** The dependencies according to the settings. Errors: an invalid endpoint. */
export function gcDeps<S extends Omit<SharedDeps, "client">>(
  shared: S,
  config: ActuatorConfig,
  onFault: ConnectionOptions["onFault"] = () => {},
): Result<S & ObserveDeps, string> {
  const timeoutMs = config.runtimeTimeoutSeconds * 1000;
  const opened = openRuntime({ endpoint: config.runtimeEndpoint, timeoutMs, onFault });
  if (!opened.ok) return opened;
  return ok({
    ...shared,
    runtime: opened.value,
    clock: new PassClock(config.stateDir, "image-gc"),
    evictionClock: new PassClock(config.stateDir, "eviction"),
    logs: logFiles(config),
    observeDisks: (lists) => observeImageFileSystems(mountPointsOf(lists), config.kubeletDir),
  });
}

/** The pods for a collection: without a source of pods, no pod is known to be removed. */
export const podsOrNone =
  (config: ActuatorConfig, read: GcDeps["readPods"]): GcDeps["readPods"] =>
  () =>
    config.manifests === undefined && config.podsUrl === undefined ? noPods() : read();
const noPods: GcDeps["readPods"] = async () => ({ pods: [], whole: false, problems: [], notices: [] });

const logFiles = ({ podLogsDirectory, containerLogsDirectory }: ActuatorConfig): LogFiles => ({
  observe: () => observeLogs({ podLogs: podLogsDirectory, containerLogs: containerLogsDirectory }),
  removePodLogs: (name) => removePodLogs(podLogsDirectory, name),
  removeLogLink: (name) => removeLogLink(containerLogsDirectory, name),
  removeContainerLog: (logPath) => removeContainerLog(podLogsDirectory, logPath),
});

/** INVARIANT: only one process removes a runtime's objects, however its socket's path is written. */
async function lockOf(endpoint: string, bootId: string): Promise<Result<Lock, string>> {
  const path = socketPathOf(endpoint);
  if (!path.ok) return path;
  const lock = await takeLock(claimsDirectory(), `/container-runtime${realPathOf(path.value)}`, bootId);
  return lock.ok ? lock : err(`garbage collection at ${endpoint}: ${lock.error}`);
}

/** Returns the path unresolved while the socket does not exist. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return normalize(path);
  }
}

/** The settings of an observation. */
export const observeSettings = (config: ActuatorConfig): ObserveSettings => ({
  nodeName: config.nodeName,
  cgroupMount: config.cgroupMount,
  kubeletVersion: config.kubeletVersion,
  // a getter, since they may change while the daemon runs
  get flags() {
    return flagsOf(config);
  },
});

/** The kubelet's flags as a snapshot has them. */
function flagsOf(config: ActuatorConfig): Readonly<Record<string, number>> {
  const flags = {
    minimumContainerTTLMs: config.minimumContainerTTL?.millis,
    maximumDeadContainersPerContainer: config.maximumDeadContainersPerContainer,
    maximumDeadContainers: config.maximumDeadContainers,
  };
  return Object.fromEntries(Object.entries(flags).filter((flag): flag is [string, number] => flag[1] !== undefined));
}
