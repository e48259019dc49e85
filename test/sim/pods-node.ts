import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Hierarchy } from "../../actuator/cgroupfs/hierarchy.ts";
import { ApiClient } from "../../actuator/client.ts";
import { Journal } from "../../actuator/journal.ts";
import { containerHash } from "../../actuator/lifecycle/config/container-hash.ts";
import { Memory } from "../../actuator/memory.ts";
import { Outbox } from "../../actuator/outbox.ts";
import { Images } from "../../actuator/pods/images.ts";
import { PodManager, type TurnView } from "../../actuator/pods/manager.ts";
import { ManagerFiles } from "../../actuator/pods/manager-files.ts";
import { PodRecords } from "../../actuator/pods/records.ts";
import { PodWorker } from "../../actuator/pods/worker.ts";
import { cgroupParentOf } from "../../actuator/pods/workers.ts";
import type { DecisionAnswer, DecisionClient, PodsRead, Problem } from "../../actuator/ports.ts";
import { recover } from "../../actuator/recover.ts";
import { ok } from "../../api/model/result.ts";
import { ROOT, simulated } from "../actuator/cgroups/grounds.ts";
import type { SimKernel } from "../actuator/cgroups/sim-kernel.ts";
import { FakeMounter } from "../actuator/pods/pod-kit.ts";
import type { SimApi } from "./api.ts";
import type { SimClock } from "./clock.ts";
import { machineAt } from "./machine.ts";
import { PodTime } from "./pod-time.ts";
import type { WatchedDisk } from "./pods-disk.ts";
import { counted, type DeathPlan, guarded, Life, machineWork } from "./pods-life.ts";
import { PodsRuntime } from "./pods-runtime.ts";

const RESTART_MS = 2_000;
/** Turns at one moment: work that ends at once wakes the daemon again. */
const MOST_SPINS = 100;
const HOST = {
  hostIPs: ["192.168.0.1"],
  clusterDomain: "",
  clusterDNS: ["10.96.0.10"],
  resolvConf: { servers: [], searches: [], options: [] },
  security: { seccompDefault: false, seccompDirectory: "/var/lib/kubelet/seccomp", maskedPaths: [] },
};
/** Seven CPUs for pods. */
export const CONFIGURATION = {
  cpuManagerPolicy: "static",
  kubeReserved: { cpu: "1", memory: "1Gi" },
  failCgroupV1: false,
};
const SETTINGS = {
  nodeName: "sim",
  owner: ROOT,
  hostIPs: HOST.hostIPs,
  cgroupMount: "/sim",
  cgroupRoot: ROOT,
  removeOrphans: true,
  intervalMs: 60_000,
  evictionMs: 10_000,
  retryMs: 30_000,
  mostAtOnce: 8,
};

/** One daemon from its start to its end. */
interface Daemon {
  readonly life: Life;
  readonly manager: PodManager;
}
/** An `admission` that was answered, and whether the daemon told what came of it. */
export interface Asked {
  readonly uid: string;
  readonly answer: DecisionAnswer;
  readonly life: Life;
  reports: number;
  /** What came of it could not be kept: the disk was full, and its daemon may die before it is told. */
  mayBeLost: boolean;
}

/** A machine in memory on which the real daemon runs pods: what is made up are the runtime, the kernel and the time. */
export class PodsNode {
  readonly time: PodTime;
  readonly kernel: SimKernel;
  readonly runtime: PodsRuntime;
  readonly mounter = new FakeMounter();
  readonly problems: Problem[] = [];
  readonly asked: Asked[] = [];
  readonly disk: WatchedDisk;
  readonly stateDir: string;
  readonly roots: { readonly podsDirectory: string; readonly podLogsDirectory: string };
  /** By uid, as the source tells them. */
  readonly desired = new Map<string, object>();
  source: "whole" | "partial" | "unreadable" = "whole";
  /** Of a partial list: what it lacks. */
  readonly missing = new Set<string>();
  /** Uids of pods whose records vanished at some time. */
  readonly lost = new Set<string>();
  syncMs = 5_000;
  cgroupWrites = 0;
  turns = 0;
  deaths = 0;
  last: TurnView | null = null;
  /** After each turn, and whenever something happened. */
  onLook: () => void = () => {};
  /** Where the next daemon dies. */
  death: DeathPlan | null = null;
  daemon: Daemon | null = null;
  readonly #hierarchy: Hierarchy;
  readonly #version: 1 | 2;
  readonly #api: SimApi;
  #boot = 1;
  #wake: () => void = () => {};
  #isWoken = false;
  #turnedAtMs = Number.NaN;
  #spins = 0;
  #read: PodsRead | null = null;

  constructor(version: 1 | 2, clock: SimClock, dir: string, api: SimApi, disk: WatchedDisk) {
    ({ kernel: this.kernel, hierarchy: this.#hierarchy } = simulated(version));
    this.#version = version;
    this.#api = api;
    this.time = new PodTime(clock);
    this.time.isBusy = () => machineWork.count > 0;
    this.runtime = new PodsRuntime(this.time, this.kernel, ROOT);
    this.stateDir = join(dir, "state");
    this.disk = disk;
    disk.directory = this.stateDir;
    this.roots = { podsDirectory: join(dir, "pods"), podLogsDirectory: join(dir, "logs") };
    for (const root of [...Object.values(this.roots), this.stateDir]) mkdirSync(root);
    this.kernel.beforeChange = () => {
      guarded("cgroup", () => void this.cgroupWrites++);
    };
  }

  get bootId(): string {
    return `boot-${this.#boot}`;
  }
  get outboxSize(): number {
    return Outbox.open(join(this.stateDir, "outbox.jsonl")).size;
  }

  /** Lets so much time pass, with the daemon's turns in it; one that dies is started again. */
  async run(ms: number): Promise<void> {
    const endMs = this.time.monotonicMs() + ms;
    while (this.time.monotonicMs() < endMs) {
      if (this.daemon === null && !(await this.start())) {
        await this.time.pass(Math.min(RESTART_MS, endMs - this.time.monotonicMs()));
        continue;
      }
      await this.turn();
      if (this.daemon !== null) await this.#pause(Math.min(this.syncMs, endMs - this.time.monotonicMs()));
    }
  }

  /** One turn of the daemon that runs. */
  async turn(): Promise<void> {
    const { daemon } = this;
    if (daemon === null) return;
    this.turns++;
    this.#spins = this.time.monotonicMs() === this.#turnedAtMs ? this.#spins + 1 : 0;
    this.#turnedAtMs = this.time.monotonicMs();
    if (this.#spins > MOST_SPINS)
      throw new Error(`turn follows turn without end: ${JSON.stringify(this.last?.problems)}`);
    const turned = daemon.life.run(() => daemon.manager.turn());
    const view = await this.#unlessOver(daemon.life, turned);
    if (view !== null) this.last = view;
    this.onLook();
  }

  /** False: it does not come up, and is to be tried again. */
  async start(): Promise<boolean> {
    const life = new Life();
    if (this.death !== null) life.diesAt(this.death);
    this.death = null;
    const opened = life.run(() => this.#open(life));
    const manager = await this.#unlessOver(life, opened);
    if (manager !== null) this.daemon = { life, manager };
    else life.kill();
    return manager !== null;
  }

  kill(): void {
    this.daemon?.life.kill();
    this.daemon = null;
    this.deaths++;
  }
  /** As a person stops it: work ends at its next step, pods go on. */
  async stop(): Promise<void> {
    const { daemon } = this;
    if (daemon === null) return;
    daemon.life.run(() => daemon.manager.stop());
    await this.time.drive(Promise.race([daemon.life.run(() => daemon.manager.rest()), this.time.sleep(10_000)]));
    daemon.life.kill();
    this.daemon = null;
  }

  /** All containers, cgroups and mounts are gone, files are not. */
  reboot(keepsLists: boolean): void {
    this.kill();
    this.runtime.boot(keepsLists);
    for (const top of this.kernel.tops.values()) top.children.clear();
    this.mounter.points.splice(0);
    this.#boot++;
  }

  /** Null: the daemon died of it. */
  async #unlessOver<T>(life: Life, work: Promise<T>): Promise<T | null> {
    const over = life.ended.then(() => null);
    try {
      const done = await this.time.drive(Promise.race([work, over]));
      if (!life.isOver) return done;
    } catch (e) {
      if (!life.isOver) throw e;
    }
    if (this.daemon?.life === life) this.kill();
    return null;
  }

  async #open(life: Life): Promise<PodManager | null> {
    const onProblem = (problem: Problem): void => {
      if (!life.isOver) this.problems.push(problem);
    };
    const journal = Journal.open(join(this.stateDir, "journal.jsonl"), this.bootId);
    if (!journal.ok) return null;
    const mended = await recover(journal.value, this.#hierarchy, this.bootId);
    if (mended.journalError !== null) return null;
    const records = PodRecords.open(join(this.stateDir, "pods"), (message) => onProblem({ from: "pods", message }));
    if (!records.ok) return null;
    const client = this.#client(life, onProblem);
    const { time: clock, runtime, mounter } = this;
    let manager: PodManager | undefined;
    const worker = new PodWorker({
      runtime,
      images: new Images(runtime, clock, { serializeImagePulls: true, maxParallelImagePulls: null }),
      mounter,
      clock,
      onEvent: () => {},
      owner: ROOT,
      roots: this.roots,
      node: () => ({ ...HOST, allocatable: {}, cgroupVersion: this.#version }),
      cgroupParentOf: ({ uid }) => {
        const view = manager?.view ?? null;
        return view === null ? "" : cgroupParentOf(view, uid, ROOT);
      },
      memoryBytes: () => null,
    });
    manager = new PodManager(
      {
        clock,
        runtime,
        worker,
        readPods: async () => this.#readPods(),
        readConfiguration: async () => ok(CONFIGURATION),
        observeMachine: () => machineAt(new Date(clock.nowMs()).toISOString(), this.bootId, this.#version),
        client,
        hierarchy: this.#hierarchy,
        journal: journal.value,
        records: records.value,
        files: new ManagerFiles(join(this.stateDir, "managers")),
        complete: (_, container) => container,
        hashOf: containerHash,
        onEvent: () => {},
        onProblem,
        onPass: () => {},
        onWorked: () => {
          if (life.isOver) return;
          this.#isWoken = true;
          this.#wake();
        },
      },
      SETTINGS,
    );
    return manager;
  }

  /** The real client, and what it was asked and told of admissions. */
  #client(life: Life, onProblem: (problem: Problem) => void): DecisionClient {
    const fetch = (request: Request): Promise<Response> => counted(() => this.#api.fetch(request));
    const access = { url: "http://api.sim", token: undefined, timeoutMs: 1000, fetch };
    const memory = new Memory(this.stateDir, (message) => onProblem({ from: "memory", message }));
    const client = new ApiClient(access, Outbox.open(join(this.stateDir, "outbox.jsonl")), memory, onProblem);
    return {
      decide: async (kind, snapshot, ask) => {
        const answer = await client.decide(kind, snapshot, ask);
        const { pod } = (ask ?? {}) as { readonly pod?: { readonly metadata: { readonly uid: string } } };
        if (kind === "admission" && answer.ok && pod !== undefined)
          this.asked.push({ uid: pod.metadata.uid, answer: answer.value, life, reports: 0, mayBeLost: false });
        return answer;
      },
      settle: (answer, isTold) => client.settle(answer, isTold),
      report: async (report, answer) => {
        await client.report(report, answer);
        const asked = this.asked.find((one) => one.answer === answer);
        if (asked === undefined || life.isOver) return;
        asked.reports++;
        asked.mayBeLost = this.disk.isFull;
      },
    };
  }

  #readPods(): PodsRead {
    const { source } = this;
    if (source === "unreadable")
      return { pods: null, whole: false, problems: [{ from: "pods", message: "it cannot be read" }], notices: [] };
    const pods = [...this.desired].flatMap(([uid, pod]) =>
      source === "partial" && this.missing.has(uid) ? [] : [pod],
    );
    const isSame = this.#read?.whole === (source === "whole") && sameItems(this.#read.pods ?? [], pods);
    if (this.#read === null || !isSame) this.#read = { pods, whole: source === "whole", problems: [], notices: [] };
    return this.#read;
  }

  async #pause(ms: number): Promise<void> {
    if (!this.#isWoken) {
      const early = new AbortController();
      this.#wake = () => early.abort();
      await this.time.drive(this.time.sleep(ms, early.signal));
      this.#wake = () => {};
    }
    this.#isWoken = false;
    this.onLook();
  }
}

const sameItems = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((item, i) => item === other[i]);
