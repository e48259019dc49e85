import { join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { NodeReclaimFunction } from "../../api/model/eviction.ts";
import { effectiveDocument, gateOn } from "../../api/profiles/effective.ts";
import { profileOf } from "../../api/profiles/index.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import type { Journal } from "../apply/journal.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import { type Connection, openConnection } from "../containerd/connection.ts";
import type { PodRuntime } from "../containerd/cri.ts";
import { KnownReadiness, KnownVersion, podRuntimeOver } from "../containerd/pods.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { Problem } from "../core/interfaces.ts";
import { PassClock } from "../core/pass-clock.ts";
import type { Listener } from "../grpc/listener.ts";
import { backOffLimits } from "../lifecycle/back-off.ts";
import { containerHash } from "../lifecycle/config/labels.ts";
import { kubeletsOn } from "../machine/kubelets.ts";
import { listeningPorts } from "../machine/listening-ports.ts";
import type { LoopDeps } from "../pass/loop.ts";
import { configurationOf } from "../pass/snapshot.ts";
import { liveSource } from "../podresources/live-source.ts";
import { servePodResources } from "../podresources/server.ts";
import type { Counters } from "../status/counters.ts";
import { kubeletsDevices } from "./admission/foreign-sandboxes.ts";
import { socketIdentity, watchedRuntime } from "./admission/foreign-stops.ts";
import type { PublishedSnapshot } from "./admission/node-snapshotter.ts";
import { OtherKubelet } from "./admission/other-kubelet.ts";
import { CurrentCgroups } from "./cgroups/cgroup-view.ts";
import { systemProcesses } from "./cgroups/orphan-processes.ts";
import { ManagerFiles } from "./devices/manager-files.ts";
import { LogRotation, type RotationDeps } from "./logs/rotation.ts";
import { type ManagerSettings, type PodEventDeps, PodManager, type PodManagerDeps } from "./manager.ts";
import { hostAddresses, thisNode } from "./networking/node-addresses.ts";
import { type OpenDevices, openNodeDevices } from "./open-devices.ts";
import { systemClock } from "./pod-clock.ts";
import { type OpenProbes, openProbes } from "./probing/open-probes.ts";
import { PodRecords, recordsIn } from "./records/records.ts";
import { NodeStats } from "./status/node-stats.ts";
import { Images } from "./sync/images.ts";
import { logLinksIn } from "./sync/log-link.ts";
import { PodWorker } from "./sync/pod-worker.ts";
import { terminationMessages } from "./sync/termination-message.ts";
import { type WorkerDeps, waitFor } from "./sync/worker-deps.ts";
import { claimDirectories } from "./volumes/claims.ts";
import { systemMounter } from "./volumes/mounter.ts";

export interface PodsShared
  extends Pick<LoopDeps, "client" | "readPods" | "readConfiguration" | "configurationNotices" | "observeMachine"> {
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
}
interface PodsEvents extends PodEventDeps {
  readonly reclaim?: (functions: readonly NodeReclaimFunction[]) => Promise<void>;
  readonly counters: Counters;
}
export interface OpenPods {
  readonly manager: PodManager;
  readonly stats: NodeStats;
  readonly version: KnownVersion;
  readonly readiness: KnownReadiness;
  /** Parts of the configuration that are ignored. */
  readonly notices: () => readonly Problem[];
  /** The device rows for people; undefined: no device plugins are served. */
  readonly devices: OpenDevices | undefined;
  readonly probes: OpenProbes;
  readonly otherKubelet: OtherKubelet;
  /** The API's faults, and the reasons why logs cannot be rotated. */
  readonly faults: () => readonly Problem[];
  readonly close: () => Promise<void>;
}

/** Opens what it takes to run pods on this machine's runtime. Errors: an invalid endpoint, unreadable records, a directory that cannot be made. */
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

/** INVARIANT: records and directories of another daemon are never read. */
async function openClaimed(
  shared: PodsShared,
  config: ActuatorConfig,
  events: PodsEvents,
  bootId: string,
): Promise<Result<OpenPods, string>> {
  const records = recordsOf(config, events);
  if (!records.ok) return records;
  const opened = await openRuntime(config, records.value, events);
  if (!opened.ok) return opened;
  const { connection, runtime, otherKubelet } = opened.value;
  const first = await shared.readConfiguration();
  if (!first.ok) return err(first.error.message);
  const configuration = lastReadConfiguration(shared.readConfiguration, first.value);
  const files = new ManagerFiles(join(config.stateDir, "managers"));
  const { hierarchy, readPods, client } = shared;
  const devicesOf = { config, files, bootId, ...events, onChange: events.onWorked };
  const given = await openNodeDevices({ ...devicesOf, configuration: first.value, readPods });
  if (!given.ok) return given;
  const { devices, claims, nodeDevices } = given.value;
  const profile = profileOf(config.kubeletVersion);
  const onChange = events.onWorked;
  const probes = openProbes({ config, runtime, hostIPs: hostAddresses(), client, ...events, onChange });
  const roots = rootsOf(config);
  const cgroups = new CurrentCgroups();
  const worker = workerOf({ config, configuration, runtime, profile, roots, cgroups, hierarchy, nodeDevices, events });
  const stats = statsOf(connection, shared, config, configuration);
  const deps: PodManagerDeps = {
    clock: systemClock,
    pods: { readPods: given.value.readPods, records: records.value },
    runtime: {
      runtime,
      worker,
      complete: terminationMessages(roots),
      hashOf: containerHash,
      probes: probes.probes,
      otherKubelet,
    },
    node: {
      ...shared,
      cgroups,
      readConfiguration: configuration.read,
      processes: systemProcesses,
      listening: listeningPorts(),
    },
    decisions: {
      client,
      files,
      ...nodeDevices,
      kubeletsDevices: () => kubeletsDevices(join(config.kubeletDir, "device-plugins")),
    },
    eviction: { evictionClock: new PassClock(config.stateDir, "eviction"), stats, ...reclaimOf(events) },
    observers: events,
  };
  const manager = new PodManager(deps, settingsOf(config, configuration));
  const isServed = devices !== undefined || claims !== undefined;
  const podResources = isServed ? await openPodResources(config, manager.published, events) : undefined;
  const rotation = rotationOf(manager, runtime, () => configuration.last, config, events);
  return ok({
    manager,
    stats,
    devices,
    probes,
    ...knownOf(connection),
    otherKubelet,
    notices: () => shared.configurationNotices?.() ?? [],
    faults: () => [...(client.fault ? [client.fault] : []), ...rotation.problems(), ...given.value.problems()],
    close: () =>
      closeAll([rotation, probes, podResources, devices, claims, stats, runtime, { close: () => rotation.rest() }]),
  });
}

interface WorkerParts {
  readonly config: ActuatorConfig;
  readonly configuration: { readonly last: unknown };
  readonly runtime: PodRuntime;
  readonly profile: Profile;
  readonly roots: ReturnType<typeof rootsOf>;
  readonly cgroups: CurrentCgroups;
  readonly hierarchy: Hierarchy;
  readonly nodeDevices: Pick<WorkerDeps, "devices" | "claims">;
  readonly events: PodsEvents;
}
function workerOf(parts: WorkerParts): PodWorker {
  const { config, configuration, runtime, profile, roots, cgroups, hierarchy, nodeDevices, events } = parts;
  return new PodWorker({
    runtime,
    images: imagesOf(runtime, configuration.last, profile),
    mounter: systemMounter,
    clock: systemClock,
    profile,
    onEvent: events.onEvent,
    owner: config.cgroupRoot,
    roots,
    logLinks: logLinksIn(config.containerLogsDirectory, (message) => events.onProblem({ from: "logs", message })),
    ...nodeDevices,
    node: () => thisNode(configuration.last, hierarchy.version, cgroups.allocatable ?? {}, config),
    cgroupParentOf: ({ uid }) => cgroups.parentOf(uid, config.cgroupRoot),
    sandboxValuesOf: (pod) => cgroups.sandboxOf(pod, configurationOf(configuration.last, profile)),
    memoryBytes: ({ uid }) => cgroups.memoryLimitOf(uid),
  });
}

const reclaimOf = ({ reclaim }: PodsEvents): Pick<PodsEvents, "reclaim"> => (reclaim === undefined ? {} : { reclaim });

function statsOf(
  connection: Connection,
  { hierarchy, observeMachine }: PodsShared,
  config: ActuatorConfig,
  configuration: { readonly last: unknown },
): NodeStats {
  const profile = profileOf(config.kubeletVersion);
  const sparesHugePages = () => gateOn(configurationOf(configuration.last, profile), "HugepageAwareEviction");
  const { nodeName } = config;
  return new NodeStats({ connection, hierarchy, observeMachine, roots: rootsOf(config), nodeName, sparesHugePages });
}

const rootsOf = ({ podsDirectory, podLogsDirectory }: ActuatorConfig) => ({ podsDirectory, podLogsDirectory });

/** Reads the configuration each time it is needed; `last`: the last one that could be read. */
function lastReadConfiguration(read: PodsShared["readConfiguration"], first: unknown) {
  const kept = {
    last: first,
    read: async () => {
      const found = await read();
      if (found.ok) kept.last = found.value;
      return found;
    },
  };
  return kept;
}

const knownOf = (connection: Connection): Pick<OpenPods, "version" | "readiness"> => ({
  version: new KnownVersion(connection),
  readiness: new KnownReadiness(connection),
});

/** The runtime, observed for other processes' changes. Errors: an invalid endpoint; another kubelet uses the runtime. */
async function openRuntime(config: ActuatorConfig, records: PodRecords, events: PodsEvents) {
  const { runtimeEndpoint, runtimeTimeoutSeconds, kubeletDir, cgroupRoot, podLogsDirectory } = config;
  const connection = openConnection({
    endpoint: runtimeEndpoint,
    timeoutMs: runtimeTimeoutSeconds * 1000,
    onFault: events.counters.runtimeCallFailed,
  });
  if (!connection.ok) return connection;
  const kubelets = kubeletsOn({ runtimeEndpoint, kubeletDir, podLogsDirectory });
  const otherKubelet = new OtherKubelet({
    ...events,
    kubelets,
    records,
    clock: systemClock,
    runtimeEndpoint,
    podLogsDirectory,
  });
  const runtime = watchedRuntime(
    podRuntimeOver(connection.value),
    cgroupRoot,
    (stop) => otherKubelet.recordStop(stop),
    () => socketIdentity(runtimeEndpoint),
  );
  if (otherKubelet.observe(null) === null && otherKubelet.isSuspected) {
    // a runtime that is slow to answer is observed in each sync
    const firstList = runtime.pods().then((listed) => listed.ok && otherKubelet.observe(listed.value));
    await waitFor(firstList, FIRST_LIST_MS, systemClock, new AbortController().signal);
  }
  if (otherKubelet.view === null) return ok({ connection: connection.value, runtime, otherKubelet });
  runtime.close();
  return err(`pods: ${otherKubelet.view.message}`);
}
const FIRST_LIST_MS = 3000;

/** Closes all, one after the other. */
async function closeAll(all: readonly ({ close(): unknown } | undefined)[]): Promise<void> {
  for (const one of all) await one?.close();
}

function rotationOf(
  { set }: PodManager,
  runtime: RotationDeps["runtime"],
  configuration: () => unknown,
  { podLogsDirectory, kubeletVersion }: ActuatorConfig,
  events: PodsEvents,
): LogRotation {
  const profile = profileOf(kubeletVersion);
  const runtimePods = () => set.runtimePods;
  const rotation = new LogRotation({ ...events, runtime, runtimePods, configuration, profile, podLogsDirectory });
  rotation.start();
  return rotation;
}

const recordsOf = ({ stateDir }: ActuatorConfig, { onProblem }: PodsEvents) =>
  PodRecords.open(recordsIn(stateDir), (message) => onProblem({ from: "pods", message }));

function imagesOf(runtime: PodRuntime, configuration: unknown, profile: Profile): Images {
  const { serializeImagePulls, maxParallelImagePulls } = effectiveDocument(profile, configuration);
  return new Images(runtime, systemClock, {
    serializeImagePulls,
    maxParallelImagePulls: typeof maxParallelImagePulls === "number" ? maxParallelImagePulls : null,
  });
}

/** Reads settings that may change while the daemon runs at the time of use. */
const settingsOf = (
  config: ActuatorConfig,
  configuration: { readonly last: unknown },
  profile = profileOf(config.kubeletVersion),
): ManagerSettings => ({
  nodeName: config.nodeName,
  profile,
  serves: { draDrivers: config.draDrivers === "serve" },
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
  get backOff() {
    return backOffLimits(profile, configuration.last);
  },
  maxAtOnce: 8,
});

/** The PodResources API, which reports pods' devices and CPUs to exporters. Undefined: it cannot be served; that is a problem, but pods run. */
async function openPodResources(
  config: ActuatorConfig,
  node: PublishedSnapshot,
  { onProblem }: Pick<PodsEvents, "onProblem">,
): Promise<Listener | undefined> {
  const onFault = (message: string): void => onProblem({ from: "devices", message });
  const source = liveSource({ version: () => node.version(), snapshot: () => node.snapshot() });
  const served = await servePodResources({ directory: config.podResourcesDirectory, source, onFault });
  if (served.ok) return served.value;
  onFault(`the podresources API is not served: ${served.error}`);
  return undefined;
}
