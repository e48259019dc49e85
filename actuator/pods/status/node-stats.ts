import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hierarchy } from "../../cgroupfs/hierarchy.ts";
import type { Connection } from "../../containerd/connection.ts";
import { type ImageFileSystems, mountPointsOf, observeImageFileSystems } from "../../containerd/file-systems.ts";
import { containerLayers } from "../../containerd/pods.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { MachineFacts } from "../../machine/facts.ts";
import { plain } from "../../pass/snapshot.ts";
import { DiskFill, type DiskPath, DiskUsage } from "../../stats/disk-usage.ts";
import {
  cgroupStatsTargets,
  diskStatsTargets,
  type PodStatsTarget,
  podStatsOf,
  podsCgroupStats,
  podUsageOf,
  type StatsObservation,
  summaryOf,
  UsageHistory,
} from "../../stats/summary.ts";
import { type PodUsage, readUsages } from "../../stats/usage.ts";
import type { CgroupView } from "../cgroups/cgroup-view.ts";
import type { KnownPod } from "../records/pod-set.ts";
import { emptyDirAt, etcHostsAt, type PodRoots, placesOf } from "../volumes/places.ts";

interface StatsDeps {
  readonly connection: Connection;
  readonly hierarchy: Hierarchy;
  readonly observeMachine: () => MachineFacts;
  readonly roots: PodRoots;
  readonly nodeName: string;
  /** True: the gate HugepageAwareEviction is on in the current configuration. */
  readonly sparesHugePages: () => boolean;
}
const PODS_CGROUP = "/kubepods";
/** The longest wait for a count of the usage on a filling disk. */
const MEASURE_MS = 2000;

/** The usage of the node and its pods, for decisions and for people. */
export class NodeStats {
  readonly #deps: StatsDeps;
  readonly #history = new UsageHistory();
  readonly #disk = new DiskUsage();
  readonly #fill: DiskFill;
  #usages: ReadonlyMap<string, PodUsage> = new Map();
  #unseen: readonly Problem[] = [];

  constructor(deps: StatsDeps) {
    this.#deps = deps;
    this.#fill = new DiskFill(deps.roots.podsDirectory);
  }

  /** The usage at the last observation, by pod uid. */
  get usages(): ReadonlyMap<string, PodUsage> {
    return this.#usages;
  }

  /** Inputs for eviction that the last observation could not read. */
  get unseen(): readonly Problem[] {
    return this.#unseen;
  }

  /** `stats` of a snapshot, read now. Unreadable values are absent. */
  async observe(pods: readonly KnownPod[], view: CgroupView | null): Promise<Readonly<Record<string, unknown>>> {
    const { connection, hierarchy, observeMachine, nodeName, sparesHugePages } = this.#deps;
    const targets = pods.flatMap((known) => this.#targetsOf(known, view));
    const [layers, fileSystems] = await Promise.all([containerLayers(connection), this.#fileSystems()]);
    const machine = observeMachine();
    const at = new Date();
    const usages = readUsages(hierarchy, cgroupStatsTargets(PODS_CGROUP, targets));
    const rates = this.#history.rates(usages, performance.now());
    // read after the disk, so that any difference belongs to some pod
    await this.#measure(diskStatsTargets(targets));
    const diskOf = (path: string) => this.#disk.of(path);
    const seen: StatsObservation = { at, usages, rates, diskOf, layers: layers.ok ? layers.value : new Map() };
    this.#usages = new Map(
      targets.flatMap((target) => {
        const usage = podUsageOf(target, seen);
        return usage === null ? [] : [[target.uid, usage] as const];
      }),
    );
    const { node } = summaryOf(machine, nodeName, { images: fileSystems, sparesHugePages: sparesHugePages() });
    const systemContainers = [podsCgroupStats(PODS_CGROUP, seen)];
    const podStats = targets.map((target) => podStatsOf(target, seen)).filter((stats) => stats !== null);
    return plain({ node: { ...node, systemContainers }, pods: podStats });
  }

  /** Counts the disk usage; while a disk fills, it waits for the count, since a victim is chosen by it. A kubelet uses counts up to a minute old. */
  async #measure(places: readonly DiskPath[]): Promise<void> {
    if (!this.#fill.hasFilled()) {
      void this.#disk.count(places).catch(() => {});
      return;
    }
    const enough = new AbortController();
    const late = sleep(MEASURE_MS, undefined, { signal: enough.signal });
    await Promise.race([this.#countAgain(places, enough.signal), late]).catch(() => {});
    enough.abort();
    await late.catch(() => {});
  }

  async #countAgain(places: readonly DiskPath[], enough: AbortSignal): Promise<void> {
    let { unfinished } = await this.#disk.countAgain(places);
    while (unfinished > 0 && !enough.aborted) ({ unfinished } = await this.#disk.count(places));
  }

  async close(): Promise<void> {
    await this.#disk.count([]);
  }

  async #fileSystems(): Promise<ImageFileSystems | undefined> {
    const { connection, roots } = this.#deps;
    const answer = await connection.call("ImageFsInfo", {});
    this.#unseen = [];
    if (!answer.ok) return undefined;
    const disks = observeImageFileSystems(mountPointsOf({ imageFilesystems: answer.value }), roots.podsDirectory);
    this.#unseen = disks.missing.map(({ path, why }) => ({
      from: "machine",
      message: `${path}: ${why}: the image file system's signals are not known, and no pod is evicted for them`,
    }));
    return disks;
  }

  #targetsOf({ pod, runtimePod }: KnownPod, view: CgroupView | null): readonly PodStatsTarget[] {
    const { path: cgroup, containers } = view?.pods.get(pod.uid) ?? {};
    const places = placesOf(this.#deps.roots, pod);
    const sandbox = runtimePod?.sandboxes[0];
    if (cgroup === undefined || !places.ok || runtimePod === null || sandbox === undefined) return [];
    const hostsFile = etcHostsAt(places.value);
    const volumes = pod.spec.volumes.flatMap((volume) => {
      const at = "emptyDir" in volume ? emptyDirAt(places.value, volume.name) : null;
      if (at === null || !at.ok || !("emptyDir" in volume)) return [];
      return [{ name: volume.name, path: at.value, inMemory: volume.emptyDir.medium === "Memory" }];
    });
    const running = runtimePod.containers.filter(({ state }) => state === "running");
    return [
      {
        namespace: pod.namespace,
        name: pod.name,
        uid: pod.uid,
        createdAtMs: sandbox.createdAtMs,
        cgroup,
        containers: running.map(({ name, id, createdAtMs }) => {
          return { name, id, createdAtMs, cgroup: containers?.get(id) ?? `${cgroup}/${id}` };
        }),
        volumes,
        logDirectory: places.value.logDirectory,
        hostsFile: existsSync(hostsFile) ? hostsFile : null,
      },
    ];
  }
}
