import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { QuantityList } from "../../api/model/decision.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { ActuatorConfig } from "../config.ts";
import { openConnection } from "../containerd/connection.ts";
import { podRuntimeOver } from "../containerd/pods.ts";
import type { Journal } from "../journal.ts";
import { containerHash } from "../lifecycle/config/container-hash.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PassReport } from "../loop.ts";
import type { LoopPorts } from "../ports.ts";
import type { CgroupView } from "./cgroup-view.ts";
import { systemClock } from "./clock.ts";
import { Images } from "./images.ts";
import { lastWords } from "./last-words.ts";
import { PodManager } from "./manager.ts";
import { ManagerFiles } from "./manager-files.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { systemMounter } from "./mounter.ts";
import { NodeStats } from "./node-stats.ts";
import { PodRecords } from "./records.ts";
import { configuredOf, hostAddresses, thisNode } from "./this-node.ts";
import { PodWorker } from "./worker.ts";
import { cgroupParentOf } from "./workers.ts";

export interface PodsShared extends Pick<LoopPorts, "client" | "readPods" | "readConfiguration" | "observeMachine"> {
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
}
export type PodsEvents = Pick<ManagerPorts, "onEvent" | "onProblem" | "onPass" | "onWorked" | "reclaim">;
export interface OpenPods {
  readonly manager: PodManager;
  readonly stats: NodeStats;
  readonly close: () => Promise<void>;
}

/** Running pods on this machine's runtime. Errors: the endpoint is none, the records cannot be read, a directory cannot be made. */
export async function openPods(
  shared: PodsShared,
  config: ActuatorConfig,
  events: PodsEvents,
): Promise<Result<OpenPods, string>> {
  const connection = openConnection({
    endpoint: config.runtimeEndpoint,
    timeoutMs: config.runtimeTimeoutSeconds * 1000,
  });
  if (!connection.ok) return connection;
  const runtime = podRuntimeOver(connection.value);
  const told = (message: string) => events.onProblem({ from: "pods", message });
  const records = PodRecords.open(join(config.stateDir, "pods"), told);
  if (!records.ok) return records;
  try {
    // which file system the pods' is, is settled by the first look at it
    mkdirSync(config.podsDirectory, { recursive: true, mode: 0o750 });
  } catch (e) {
    return err(`pods in ${config.podsDirectory}: ${(e as Error).message}`);
  }
  const first = await shared.readConfiguration();
  if (!first.ok) return err(first.error.message);
  const known = new Known(first.value);
  const roots = { podsDirectory: config.podsDirectory, podLogsDirectory: config.podLogsDirectory };
  const { serializeImagePulls, maxParallelImagePulls } = configuredOf(first.value);
  const worker = new PodWorker({
    runtime,
    images: new Images(runtime, systemClock, {
      serializeImagePulls: serializeImagePulls !== false,
      maxParallelImagePulls: typeof maxParallelImagePulls === "number" ? maxParallelImagePulls : null,
    }),
    mounter: systemMounter,
    clock: systemClock,
    onEvent: events.onEvent,
    owner: config.cgroupRoot,
    roots,
    node: () =>
      thisNode(known.configuration, shared.hierarchy.version, known.allocatable, dirname(config.podsDirectory)),
    cgroupParentOf: (pod) => known.cgroupParentOf(pod, config.cgroupRoot),
    memoryBytes: (pod) => known.memoryBytesOf(pod),
  });
  const { observeMachine, hierarchy } = shared;
  const stats = new NodeStats({
    connection: connection.value,
    hierarchy,
    observeMachine,
    roots,
    nodeName: config.nodeName,
  });
  const manager = new PodManager(
    {
      ...shared,
      ...events,
      readConfiguration: async () => known.note(await shared.readConfiguration()),
      clock: systemClock,
      runtime,
      worker,
      records: records.value,
      files: new ManagerFiles(join(config.stateDir, "managers")),
      complete: lastWords(roots),
      hashOf: containerHash,
      stats: () => stats.look(manager.set.living(), known.view),
      onPass: (report) => {
        known.notePass(report, manager.view);
        events.onPass(report);
      },
    },
    settingsOf(config),
  );
  const close = async (): Promise<void> => {
    await stats.close();
    runtime.close();
  };
  return ok({ manager, stats, close });
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

/** What the last pass told, for those who start containers. */
class Known {
  configuration: unknown;
  allocatable: QuantityList = {};
  view: CgroupView | null = null;

  constructor(configuration: unknown) {
    this.configuration = configuration;
  }
  note<R extends Result<unknown, unknown>>(read: R): R {
    if (read.ok) this.configuration = read.value;
    return read;
  }
  notePass({ allocatable }: PassReport, view: CgroupView | null): void {
    if (allocatable !== null) this.allocatable = allocatable.allocatable;
    this.view = view;
  }
  cgroupParentOf({ uid }: RunnablePod, root: string): string {
    return this.view === null ? "" : cgroupParentOf(this.view, uid, root);
  }
  memoryBytesOf({ uid }: RunnablePod): number | null {
    const limit = this.view?.pods.get(uid)?.memory ?? -1;
    return limit > 0 ? limit : null;
  }
}
