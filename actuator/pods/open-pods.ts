import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { ActuatorConfig } from "../config.ts";
import { openConnection } from "../containerd/connection.ts";
import { podRuntimeOver } from "../containerd/pods.ts";
import { KnownVersion } from "../containerd/readiness.ts";
import type { Journal } from "../journal.ts";
import { containerHash } from "../lifecycle/config/container-hash.ts";
import { listeningPorts } from "../machine/listening-ports.ts";
import { PassClock } from "../pass-clock.ts";
import type { LoopPorts, Problem } from "../ports.ts";
import type { Counters } from "../status/counters.ts";
import { claimDirectories } from "./claims.ts";
import { systemClock } from "./clock.ts";
import { Images } from "./images.ts";
import { lastWords } from "./last-words.ts";
import { logLinksIn } from "./log-link.ts";
import { PodManager } from "./manager.ts";
import { ManagerFiles } from "./manager-files.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { systemMounter } from "./mounter.ts";
import { NodeStats } from "./node-stats.ts";
import { type OpenDevices, openDevices } from "./open-devices.ts";
import { type OpenProbes, openProbes } from "./open-probes.ts";
import type { PodRuntime } from "./ports.ts";
import { systemProcesses } from "./processes.ts";
import { PodRecords } from "./records.ts";
import { configuredOf, hostAddresses, thisNode } from "./this-node.ts";
import { PodWorker } from "./worker.ts";
import { cgroupParentOf } from "./workers.ts";

export interface PodsShared
  extends Pick<LoopPorts, "client" | "readPods" | "readConfiguration" | "configurationNotices" | "observeMachine"> {
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
}
export interface PodsEvents extends Pick<ManagerPorts, "onEvent" | "onProblem" | "onPass" | "onWorked" | "reclaim"> {
  readonly counters: Counters;
}
export interface OpenPods {
  readonly manager: PodManager;
  readonly stats: NodeStats;
  readonly version: KnownVersion;
  /** What was left out of the configuration. */
  readonly notices: () => readonly Problem[];
  /** As people see them; undefined: no device plugins are served. */
  readonly devices: OpenDevices | undefined;
  readonly probes: OpenProbes;
  /** What the API does wrong. */
  readonly faults: () => readonly Problem[];
  readonly close: () => Promise<void>;
}

const MACHINE: Pick<ManagerPorts, "processes" | "listening"> = {
  processes: systemProcesses,
  listening: listeningPorts(),
};

/** Running pods on this machine's runtime. Errors: the endpoint is none, the records cannot be read, a directory cannot be made. */
export async function openPods(
  shared: PodsShared,
  config: ActuatorConfig,
  events: PodsEvents,
): Promise<Result<OpenPods, string>> {
  const { bootID: bootId = "" } = shared.observeMachine().system;
  const claims = await claimDirectories(config, bootId);
  if (!claims.ok) return claims;
  const opened = await openClaimed(shared, config, events, bootId);
  if (!opened.ok) {
    claims.value.release();
    return opened;
  }
  const { close, ...rest } = opened.value;
  return ok({ ...rest, close: () => close().finally(claims.value.release) });
}

/** INVARIANT: no record is read, and no directory looked at, that another daemon keeps. */
async function openClaimed(
  shared: PodsShared,
  config: ActuatorConfig,
  events: PodsEvents,
  bootId: string,
): Promise<Result<OpenPods, string>> {
  const connection = openConnection({
    endpoint: config.runtimeEndpoint,
    timeoutMs: config.runtimeTimeoutSeconds * 1000,
    onFault: events.counters.runtimeCallFailed,
  });
  if (!connection.ok) return connection;
  const runtime = podRuntimeOver(connection.value);
  const records = recordsOf(config, events);
  if (!records.ok) return records;
  const first = await shared.readConfiguration();
  if (!first.ok) return err(first.error.message);
  let configuration = first.value;
  const files = new ManagerFiles(join(config.stateDir, "managers"));
  const { observeMachine, hierarchy } = shared;
  const onChange = events.onWorked;
  const devices = await openDevices({ config, files, clock: systemClock, bootId, ...events, onChange });
  if (!devices.ok) return err(`device plugins: ${devices.error}`);
  const keeper = devices.value === undefined ? {} : { devices: devices.value.keeper };
  const { podsDirectory, podLogsDirectory, nodeName } = config;
  const probes = openProbes({ config, runtime, hostIPs: hostAddresses(), client: shared.client, ...events, onChange });
  const roots = { podsDirectory, podLogsDirectory };
  const worker = new PodWorker({
    runtime,
    images: imagesOf(runtime, first.value),
    mounter: systemMounter,
    clock: systemClock,
    onEvent: events.onEvent,
    owner: config.cgroupRoot,
    roots,
    logLinks: logLinksIn(config.containerLogsDirectory, (message) => events.onProblem({ from: "logs", message })),
    ...keeper,
    node: () => thisNode(configuration, hierarchy.version, manager.allocatable ?? {}, dirname(podsDirectory)),
    cgroupParentOf: ({ uid }) => (manager.view === null ? "" : cgroupParentOf(manager.view, uid, config.cgroupRoot)),
    memoryBytes: ({ uid }) => memoryLimitOf(manager, uid),
  });
  const stats = new NodeStats({ connection: connection.value, hierarchy, observeMachine, roots, nodeName });
  const manager: PodManager = new PodManager(
    {
      ...shared,
      ...events,
      readConfiguration: async () => {
        const read = await shared.readConfiguration();
        if (read.ok) configuration = read.value;
        return read;
      },
      clock: systemClock,
      evictionClock: new PassClock(config.stateDir, "eviction"),
      runtime,
      worker,
      records: records.value,
      files,
      ...keeper,
      probes: probes.probes,
      ...MACHINE,
      complete: lastWords(roots),
      hashOf: containerHash,
      stats: () => stats.look(manager.set.living(), manager.view),
      unseen: () => stats.unseen,
    },
    settingsOf(config),
  );
  await devices.value?.tell(manager.told);
  return ok({
    manager,
    stats,
    devices: devices.value,
    probes,
    version: new KnownVersion(connection.value),
    notices: () => shared.configurationNotices?.() ?? [],
    faults: () => (shared.client.fault ? [shared.client.fault] : []),
    close: async () => {
      probes.close();
      await devices.value?.close();
      await stats.close();
      runtime.close();
    },
  });
}

const recordsOf = ({ stateDir }: ActuatorConfig, { onProblem }: PodsEvents) =>
  PodRecords.open(join(stateDir, "pods"), (message) => onProblem({ from: "pods", message }));

/** Of a pod's cgroup; null: none, or not decided yet. */
function memoryLimitOf({ view }: PodManager, uid: string): number | null {
  const limit = view?.pods.get(uid)?.memory ?? -1;
  return limit > 0 ? limit : null;
}

function imagesOf(runtime: PodRuntime, configuration: unknown): Images {
  const { serializeImagePulls, maxParallelImagePulls } = configuredOf(configuration);
  return new Images(runtime, systemClock, {
    serializeImagePulls: serializeImagePulls !== false,
    maxParallelImagePulls: typeof maxParallelImagePulls === "number" ? maxParallelImagePulls : null,
  });
}

/** What may change while the daemon runs is read when it is used. */
const settingsOf = (config: ActuatorConfig): ManagerSettings => ({
  nodeName: config.nodeName,
  owner: config.cgroupRoot,
  hostIPs: hostAddresses(),
  cgroupMount: config.cgroupMount,
  cgroupRoot: config.cgroupRoot,
  get removeOrphans() {
    return config.removeOrphans;
  },
  get intervalMs() {
    return config.intervalSeconds * 1000;
  },
  get evictionMs() {
    return config.evictionPeriodSeconds * 1000;
  },
  get retryMs() {
    return config.retrySeconds * 1000;
  },
  mostAtOnce: 8,
});
