import { mkdirSync, mkdtempSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Space } from "../../../actuator/gc/journal.ts";
import { RAM_DISK } from "../../kit/ram-disk.ts";
import { type Meddler, type Meddling, startMeddler } from "../containerd/meddler.ts";
import { must } from "../containerd/pods.ts";
import { type SmallFileSystem, smallFileSystem } from "../containerd/small-file-system.ts";
import { type Containerd, startContainerd } from "../containerd/start.ts";
import { removeClaims } from "../pods/claims.ts";
import { GcDaemon } from "./daemon.ts";
import { Gate } from "./gate.ts";
import { type PodsServer, startPodsServer } from "./pods-server.ts";
import type { Thresholds } from "./rules.ts";

const PERIOD_SECONDS = 0.2;

/** A node: containerd on a small separate file system, a meddler in front of it, and pods. */
export class GcNode {
  readonly disk: SmallFileSystem;
  readonly containerd: Containerd;
  readonly pods: PodsServer;
  /** The directory for state, settings and sockets; it is on another file system than the images. */
  readonly dir: string;
  /** How the meddler changes the daemon's calls. */
  meddling: Meddling = {};
  readonly #meddler: Meddler;
  readonly #gate: Gate;
  readonly #daemons: GcDaemon[] = [];
  #fillers = 0;

  private constructor(parts: Pick<GcNode, "disk" | "containerd" | "pods" | "dir">, gate: Gate, meddler: Meddler) {
    this.disk = parts.disk;
    this.containerd = parts.containerd;
    this.pods = parts.pods;
    this.dir = parts.dir;
    this.#gate = gate;
    this.#meddler = meddler;
  }

  static async start(diskBytes: number): Promise<GcNode> {
    const undo: (() => unknown)[] = [];
    try {
      const disk = smallFileSystem(diskBytes);
      undo.push(disk.release);
      const dir = mkdtempSync(join(RAM_DISK, "nodewise-gc-"));
      undo.push(() => rmSync(dir, { recursive: true }));
      const containerd = await startContainerd({ root: join(disk.path, "root") });
      undo.push(containerd.stop);
      const gate = new Gate();
      const pods = await startPodsServer(gate);
      undo.push(pods.close);
      let node: GcNode | undefined;
      const meddler = await startMeddler(dir, containerd.connection, () => node?.meddling ?? {});
      node = new GcNode({ disk, containerd, pods, dir }, gate, meddler);
      mkdirSync(join(dir, "state"));
      return node;
    } catch (error) {
      for (const step of undo.toReversed()) await step();
      throw error;
    }
  }

  /** Stops everything and removes all files, mounts and cgroups. */
  async stop(): Promise<void> {
    this.#gate.open();
    for (const daemon of this.#daemons) await daemon.kill();
    await this.#meddler.close();
    await this.pods.close();
    await this.containerd.stop();
    this.disk.release();
    removeClaims(...this.#daemons.map(({ pid }) => pid));
    rmSync(this.dir, { recursive: true });
  }

  /** The daemon that was started last. */
  get daemon(): GcDaemon {
    const last = this.#daemons.at(-1);
    if (last === undefined) throw new Error("no daemon was started");
    return last;
  }

  collectFrom({ high, low }: Thresholds): void {
    this.configure({ imageGCHighThresholdPercent: high, imageGCLowThresholdPercent: low });
  }
  /** Writes the kubelet's configuration, which each pass reads. By default it has no eviction threshold for a disk. */
  configure(configuration: object): void {
    const file = join(this.dir, "kubelet.json");
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    const ours = { imageMinimumGCAge: "1s", evictionHard: { "memory.available": "1Mi" } };
    writeFileSync(`${file}.new`, JSON.stringify({ ...head, ...ours, ...configuration }));
    renameSync(`${file}.new`, file);
  }

  /** Starts the daemon; it collects garbage at once, and then five times per second. */
  startDaemon(settings: Readonly<Record<string, unknown>> = {}, args: readonly string[] = []): GcDaemon {
    const daemon = new GcDaemon(["--settings", this.settingsFile(settings), ...args]);
    this.#daemons.push(daemon);
    return daemon;
  }
  settingsFile(settings: Readonly<Record<string, unknown>> = {}): string {
    const file = join(this.dir, "settings.json");
    writeFileSync(file, JSON.stringify({ ...this.settings, ...settings }));
    return file;
  }
  get settings() {
    return {
      nodeName: "gc",
      stateDir: join(this.dir, "state"),
      kubeletConfiguration: join(this.dir, "kubelet.json"),
      kubeletDir: join(this.dir, "no-kubelet"),
      podsUrl: this.pods.url,
      intervalSeconds: 3600,
      garbageCollection: "enforce",
      runtimeEndpoint: this.#meddler.endpoint,
      podLogsDirectory: this.containerd.podLogs,
      containerLogsDirectory: this.containerd.containerLogs,
      containerGCPeriodSeconds: PERIOD_SECONDS,
      imageGCPeriodSeconds: PERIOD_SECONDS,
    };
  }

  /** Runs `work` between two passes: the next pass first requests its pods, and gets them only after the work. */
  async betweenPasses<T>(work: () => Promise<T>): Promise<T> {
    await this.#gate.shut();
    try {
      return await work();
    } finally {
      this.#gate.open();
    }
  }

  space(): Space {
    const { blocks, bavail, bsize } = statfsSync(this.disk.path);
    return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
  }
  /** Fills the file system until this many bytes are free. */
  leaveFree(bytes: number): Space {
    const { availableBytes } = this.space();
    if (availableBytes <= bytes) throw new Error(`only ${availableBytes} bytes are free`);
    writeFileSync(join(this.disk.path, `filler-${++this.#fillers}`), Buffer.alloc(availableBytes - bytes));
    return this.space();
  }
  /** Deletes the files that `leaveFree` wrote. */
  makeRoom(): void {
    for (; this.#fillers > 0; this.#fillers--) rmSync(join(this.disk.path, `filler-${this.#fillers}`));
  }

  /** The images as containerd lists them, by their first tag. */
  async images(): Promise<ReadonlyMap<string, { readonly id: string; readonly sizeBytes: number }>> {
    const { images } = await must(this.containerd.connection.call("ListImages", {}));
    return new Map(images.map(({ id, repoTags, size }) => [repoTags[0] ?? id, { id, sizeBytes: Number(size) }]));
  }
}
