import type { QuantityList } from "../../api/model/decision.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import type { Problem } from "../ports.ts";
import { CgroupPasses } from "./cgroup-passes.ts";
import type { CgroupView } from "./cgroup-view.ts";
import { type DesiredPods, desiredPodsReader, type RefusedManifest } from "./desired-pods.ts";
import { Doorkeeper } from "./doorkeeper.ts";
import { Evictor } from "./evictor.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { PodSet } from "./pod-set.ts";
import { ResizeActuator } from "./resize/actuator.ts";
import { Resizer } from "./resize/resizer.ts";
import { Roster } from "./roster.ts";
import { Settler } from "./settler.ts";
import { StartFaults } from "./start-faults.ts";
import { ToldNode } from "./told-node.ts";
import { Workers } from "./workers.ts";

/** What a turn saw that a person should know. */
export interface TurnView {
  /** Of the manager's turns, from 1. */
  readonly sequence: number;
  readonly refused: readonly RefusedManifest[];
  readonly problems: readonly Problem[];
  readonly notices: readonly Problem[];
  /** The runtime answered. */
  readonly hears: boolean;
}

/**
 * Brings pods up, keeps them as decided and takes them down: look, compare, ask, plan, apply, one turn after the other.
 * Work at a pod goes on beside the turns, one piece at a time a pod.
 */
export class PodManager {
  readonly set: PodSet;
  readonly told: ToldNode;
  readonly #ports: ManagerPorts;
  readonly #read: ReturnType<typeof desiredPodsReader>;
  readonly #workers: Workers;
  readonly #passes: CgroupPasses;
  readonly #doorkeeper: Doorkeeper;
  readonly #resizer: Resizer;
  readonly #resizes: ResizeActuator;
  readonly #evictor: Evictor;
  readonly #roster: Roster;
  readonly #settler: Settler;
  readonly #startFaults: StartFaults;
  #desired: DesiredPods | null = null;
  readonly #standing: Record<"passes" | "evictor", readonly Problem[]> = { passes: [], evictor: [] };
  #sequence = 0;

  constructor(ports: ManagerPorts, settings: ManagerSettings) {
    this.#ports = ports;
    this.#read = desiredPodsReader(settings.nodeName);
    this.set = new PodSet(ports.records, settings.owner, settings.hostIPs, ports.complete, ports.probes);
    this.#workers = new Workers(ports, settings, this.set);
    this.#passes = new CgroupPasses(ports, settings, this.set);
    this.#doorkeeper = new Doorkeeper(ports, settings, this.set, () => this.allocatable);
    this.#startFaults = new StartFaults(ports, this.set, this.#doorkeeper.look);
    this.told = new ToldNode(ports, this.set, this.#doorkeeper.look);
    this.#resizer = new Resizer(ports, settings, this.set, this.#doorkeeper, () => this.allocatable);
    this.#roster = new Roster(ports, this.set, {
      leavers: this.#workers.leavers,
      doorkeeper: this.#doorkeeper,
      resizer: this.#resizer,
      end: (uid, end) => this.end(uid, end),
    });
    this.#resizes = new ResizeActuator(ports, this.set, this.#passes, () => this.#doorkeeper.roomMade());
    this.#workers.mayRestart = (known) => this.#resizes.mayRestart(known);
    this.#workers.onRefused = (uid, refusal) => this.#doorkeeper.sendBack(uid, refusal);
    this.#doorkeeper.preempter.onEnd = (uid, end) => this.end(uid, end);
    this.#evictor = new Evictor(ports, settings, this.set, this.#doorkeeper);
    this.#settler = new Settler(ports, this.set, {
      leavers: this.#workers.leavers,
      end: (uid, end) => this.end(uid, end),
      roomMade: () => this.#doorkeeper.roomMade(),
      isShort: () => this.#doorkeeper.look.conditions.length > 0,
      retryMs: () => settings.retryMs,
    });
    this.#evictor.isCleared = (uid) => this.#workers.leavers.isCleared(uid);
  }

  /** Of the last pass over the cgroups; null: there was none yet. */
  get view(): CgroupView | null {
    return this.#passes.current;
  }
  /** What pods may have of this node; null: it was not decided yet. */
  get allocatable(): QuantityList | null {
    return this.#passes.allocatable;
  }

  /** INVARIANT: never throws for what the world does. */
  async turn(): Promise<TurnView> {
    const problems: Problem[] = [];
    const untouched = this.#workers.idle();
    const read = await this.#ports.readPods(this.set.inForce());
    this.#desired = this.#read(read) ?? this.#desired;
    const looked = await this.#ports.runtime.pods();
    if (looked.ok) this.set.see(looked.value);
    else problems.push({ from: "runtime", message: `${looked.error.call}: ${looked.error.message}` });
    problems.push(...read.problems);
    const nowMs = this.#ports.clock.nowMs();
    if (looked.ok) {
      problems.push(...this.#roster.note(this.#desired, read.pods === null, nowMs));
      this.#settler.settle(untouched, nowMs);
      this.#tellPods(nowMs);
    }
    const sequence = ++this.#sequence;
    // who is let in is asked about with what the node can give
    if (this.allocatable === null) await this.#look("passes", sequence);
    problems.push(...(await this.#startFaults.run(sequence)));
    problems.push(...(await this.#resizer.askWaiting(sequence)));
    problems.push(...(await this.#doorkeeper.admitWaiting(sequence)));
    problems.push(...this.#doorkeeper.hostPorts.look());
    this.#resizes.look();
    await this.#look("passes", sequence);
    problems.push(...this.#resizes.settle());
    if (looked.ok) this.#workers.putToWork(untouched, this.view);
    await this.#look("evictor", sequence);
    problems.push(...this.#standing.passes, ...this.#standing.evictor, ...(this.#ports.devices?.problems() ?? []));
    problems.push(...(this.#ports.unseen?.() ?? []));
    for (const message of this.set.records.writeLate()) problems.push({ from: "pods", message });
    const { refused = [], notices = [] } = this.#desired ?? {};
    return { sequence, refused, problems, notices, hears: looked.ok };
  }

  /** Before anything is decided, those who work beside the turns hear which pods are on the node. */
  #tellPods(nowMs: number): void {
    const { devices, probes } = this.#ports;
    const living = this.set.living();
    probes?.look(living, (known) => this.set.statusOf(known, nowMs));
    devices?.recover(living);
    devices?.look(new Set(living.map(({ uid }) => uid)));
  }

  /** What a look met stands until the next one. */
  async #look(by: "passes" | "evictor", sequence: number): Promise<void> {
    const looks = { passes: this.#passes, evictor: this.#evictor };
    this.#standing[by] = (await looks[by].runIfDue(sequence)) ?? this.#standing[by];
  }

  /** Ends when no work at any pod is under way. */
  rest(): Promise<void> {
    return this.#workers.rest();
  }
  /** From now on nobody comes in any more. */
  drain(): void {
    this.#doorkeeper.isClosed = true;
  }
  /** Work that is under way ends at its next step. */
  stop(): void {
    this.#workers.stop();
  }

  /** INVARIANT: that a pod is to end is in its record before anything of it is stopped. */
  end(uid: string, end: PodEnd): void {
    const record = this.set.records.get(uid);
    if (record === undefined) return;
    this.#workers.interrupt(uid);
    this.set.records.hold(uid, { ...record, state: "ends", end });
  }
}
