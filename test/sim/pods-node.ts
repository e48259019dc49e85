import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Hierarchy } from "../../actuator/cgroupfs/hierarchy.ts";
import type { Problem } from "../../actuator/core/interfaces.ts";
import { drainPods } from "../../actuator/pods/daemon.ts";
import type { PodManager, SyncView } from "../../actuator/pods/manager.ts";
import { ROOT, simulated } from "../actuator/cgroups/hierarchy-kit.ts";
import type { SimKernel } from "../actuator/cgroups/sim-kernel.ts";
import { FakeMounter } from "../actuator/pods/fake-mounter.ts";
import type { SimApi } from "./api.ts";
import type { SimClock } from "./clock.ts";
import { PodTime } from "./pod-time.ts";
import type { Asked } from "./pods-client.ts";
import { openDaemon } from "./pods-daemon.ts";
import type { WatchedDisk } from "./pods-disk.ts";
import { type DeathPlan, guarded, Life, machineWork } from "./pods-life.ts";
import { PodsMemory } from "./pods-memory.ts";
import { PodsRuntime } from "./pods-runtime.ts";
import { PodsSource } from "./pods-source.ts";

const RESTART_MS = 2_000;
/** Turns without a pause: work that ends at once wakes the daemon again. */
const MAX_SPINS = 100;

/** One run of a daemon from its start to its end. */
interface Daemon {
  readonly life: Life;
  readonly manager: PodManager;
}
/** A machine in memory on which the real daemon runs pods. The runtime, the kernel and the time are simulated. */
export class PodsNode {
  readonly time: PodTime;
  readonly kernel: SimKernel;
  readonly runtime: PodsRuntime;
  readonly mounter = new FakeMounter();
  readonly problems: Problem[] = [];
  readonly asked: Asked[] = [];
  /** The kinds of the API's answers that a dead daemon did not receive. */
  readonly undelivered: string[] = [];
  readonly disk: WatchedDisk;
  readonly stateDir: string;
  readonly roots: { readonly podsDirectory: string; readonly podLogsDirectory: string };
  readonly source = new PodsSource();
  readonly memory: PodsMemory;
  readonly api: SimApi;
  readonly hierarchy: Hierarchy;
  /** Uids of pods whose records were lost at some time. */
  readonly lost = new Set<string>();
  syncMs = 5_000;
  cgroupWrites = 0;
  turns = 0;
  deaths = 0;
  last: SyncView | null = null;
  /** Called after each turn and after each event. */
  onLook: () => void = () => {};
  /** Where the next daemon dies. */
  death: DeathPlan | null = null;
  daemon: Daemon | null = null;
  isDraining = false;
  #boot = 1;
  #wake: () => void = () => {};
  #isWoken = false;
  #turnedAtMs = Number.NaN;
  #spins = 0;

  constructor(version: 1 | 2, clock: SimClock, dir: string, api: SimApi, disk: WatchedDisk) {
    ({ kernel: this.kernel, hierarchy: this.hierarchy } = simulated(version));
    this.api = api;
    this.time = new PodTime(clock);
    this.time.isBusy = () => machineWork.count > 0;
    this.runtime = new PodsRuntime(this.time, this.kernel, ROOT);
    this.memory = new PodsMemory(this.runtime);
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

  /** Advances the time by this much, with the daemon's turns; a daemon that dies is started again. */
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

  /** Runs one turn of the daemon. */
  async turn(): Promise<void> {
    const { daemon } = this;
    if (daemon === null) return;
    this.turns++;
    this.#spins = this.time.monotonicMs() === this.#turnedAtMs ? this.#spins + 1 : 0;
    this.#turnedAtMs = this.time.monotonicMs();
    if (this.#spins > MAX_SPINS)
      throw new Error(`turn follows turn without end: ${JSON.stringify(this.last?.problems)}`);
    const turned = daemon.life.run(() => daemon.manager.sync());
    const view = await this.#unlessOver(daemon.life, turned);
    if (view !== null) this.last = view;
    this.onLook();
  }

  /** False: the daemon does not start, and the start has to be repeated. */
  async start(): Promise<boolean> {
    const life = new Life();
    if (this.death !== null) life.diesAt(this.death);
    this.death = null;
    const opened = life.run(() =>
      openDaemon(this, life, () => {
        if (life.isOver) return;
        this.#isWoken = true;
        this.#wake();
      }),
    );
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
  /** Stops the daemon as a person does: work stops at its next step, and the pods keep running. */
  async stop(): Promise<void> {
    const { daemon } = this;
    if (daemon === null) return;
    daemon.life.run(() => daemon.manager.stop());
    await this.time.drive(Promise.race([daemon.life.run(() => daemon.manager.rest()), this.time.sleep(10_000)]));
    daemon.life.kill();
    this.daemon = null;
  }

  /** Drains the node as a person does: all pods end, and then the daemon. False: the daemon died before that. */
  async drain(): Promise<boolean> {
    const { daemon } = this;
    if (daemon === null) return false;
    this.isDraining = true;
    const turn = async (): Promise<void> => {
      this.last = await daemon.manager.sync();
      this.onLook();
    };
    const over = daemon.life.run(() => drainPods(daemon.manager, turn, this.time)).then(() => true);
    const isDone = (await this.#unlessOver(daemon.life, over)) ?? false;
    this.onLook();
    this.isDraining = false;
    await this.stop();
    return isDone;
  }

  /** Removes all containers, cgroups and mounts, and keeps the files. */
  reboot(keepsLists: boolean): void {
    this.kill();
    this.runtime.boot(keepsLists);
    for (const top of this.kernel.tops.values()) top.children.clear();
    this.mounter.points.splice(0);
    this.#boot++;
  }

  /** Null: the daemon died during the work. */
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
