import { DEADLINE_MESSAGE, DEADLINE_REASON, isStopped, pastDeadline } from "../lifecycle/finished.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import { finishedPhase } from "../lifecycle/pod-status.ts";
import type { PodRecord } from "../lifecycle/record.ts";
import { resizeRestarts } from "../lifecycle/resize-restarts.ts";
import { type RosterChange, rosterChanges } from "../lifecycle/roster.ts";
import type { Problem } from "../ports.ts";
import { CgroupPasses } from "./cgroup-passes.ts";
import type { CgroupView } from "./cgroup-view.ts";
import { type DesiredPods, desiredPodsReader, type RefusedManifest } from "./desired-pods.ts";
import { Doorkeeper } from "./doorkeeper.ts";
import { admitted, arrival } from "./entrance.ts";
import { Evictor } from "./evictor.ts";
import { LostDirectories } from "./lost-directories.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { endOf, waitingAgain } from "./pod-ends.ts";
import { PodEvents } from "./pod-events.ts";
import { type KnownPod, PodSet } from "./pod-set.ts";
import { ResizeActuator } from "./resize/actuator.ts";
import { Resizer } from "./resize/resizer.ts";
import { Workers } from "./workers.ts";

/** What a turn saw that a person should know. */
export interface TurnView {
  readonly pods: readonly KnownPod[];
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
  readonly #ports: ManagerPorts;
  readonly #read: ReturnType<typeof desiredPodsReader>;
  readonly #workers: Workers;
  readonly #passes: CgroupPasses;
  readonly #doorkeeper: Doorkeeper;
  readonly #resizer: Resizer;
  readonly #resizes: ResizeActuator;
  readonly #evictor: Evictor;
  readonly #lost: LostDirectories;
  #desired: DesiredPods | null = null;
  #sequence = 0;

  constructor(ports: ManagerPorts, settings: ManagerSettings) {
    this.#ports = ports;
    this.#read = desiredPodsReader();
    this.set = new PodSet(ports.records, settings.owner, settings.hostIPs, ports.complete);
    this.#workers = new Workers(ports, settings, this.set);
    this.#passes = new CgroupPasses(ports, settings, this.set);
    this.#doorkeeper = new Doorkeeper(ports, settings, this.set, () => this.#passes.allocatable);
    this.#resizer = new Resizer(ports, settings, this.set, this.#doorkeeper, () => this.#passes.allocatable);
    this.#lost = new LostDirectories(ports);
    this.#resizes = new ResizeActuator(ports, this.set, this.#passes, () => this.#doorkeeper.roomMade());
    this.#workers.mayRestart = (known) => this.#resizes.mayRestart(known);
    this.#doorkeeper.onEnd = (uid, end) => this.end(uid, end);
    this.#evictor = new Evictor(ports, settings, this.set, this.#doorkeeper);
    this.#evictor.isCleared = (uid) => this.#workers.leavers.isCleared(uid);
  }

  /** Of the last pass over the cgroups; null: there was none yet. */
  get view(): CgroupView | null {
    return this.#passes.current;
  }

  /** INVARIANT: never throws for what the world does. */
  async turn(): Promise<TurnView> {
    const problems: Problem[] = [];
    const untouched = this.#workers.idle();
    const read = await this.#ports.readPods();
    this.#desired = this.#read(read) ?? this.#desired;
    const looked = await this.#ports.runtime.pods();
    if (looked.ok) this.set.see(looked.value);
    else problems.push({ from: "runtime", message: `${looked.error.call}: ${looked.error.message}` });
    problems.push(...read.problems);
    const nowMs = this.#ports.clock.nowMs();
    if (looked.ok) {
      this.#note(read.pods === null, nowMs, problems);
      this.#settle(untouched, nowMs, problems);
    }
    this.#sequence++;
    // who is let in is asked about with what the node can give
    if (this.#passes.allocatable === null) problems.push(...(await this.#passes.runIfDue(this.#sequence)));
    problems.push(...(await this.#resizer.askWaiting(this.#sequence)));
    problems.push(...(await this.#doorkeeper.admitWaiting(this.#sequence)));
    this.#resizes.look();
    problems.push(...(await this.#passes.runIfDue(this.#sequence)));
    problems.push(...this.#resizes.settle());
    if (looked.ok) this.#workers.putToWork(untouched, this.#passes.current);
    problems.push(...(await this.#evictor.runIfDue(this.#sequence)));
    const { refused = [], notices = [] } = this.#desired ?? {};
    return { pods: [...this.set.all()], refused, problems, notices, hears: looked.ok };
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

  /** Compares with what should run. A source that could not be read asks for nothing and ends nothing. */
  #note(isUnread: boolean, nowMs: number, problems: Problem[]): void {
    const desired = this.#desired;
    const changes = rosterChanges({
      desired: desired?.pods ?? new Map(),
      whole: !isUnread && desired?.whole === true,
      refused: new Set(desired?.refused.map(({ pod }) => pod)),
      records: this.set.records.entries(),
      seen: this.set.seen,
      nowMs,
    });
    this.#resizer.begin();
    for (const change of changes) {
      const noted = this.#noteOne(change, nowMs);
      if (noted !== null) problems.push({ from: "pods", message: noted });
    }
    if (!isUnread && desired?.whole === true) this.#lost.look([this.set.seen, this.set.records.known]);
  }

  /** Answers what keeps it from being noted. */
  #noteOne(change: RosterChange, nowMs: number): string | null {
    switch (change.kind) {
      case "comes":
        this.set.records.note(change.pod.uid, arrival(change.pod, nowMs));
        return null;
      case "adopts":
        return this.#put(change.pod.uid, admitted(arrival(change.pod, nowMs), nowMs));
      case "changes":
        return this.#change(change.uid, change.pod);
      case "ends":
        return this.end(change.uid, change.end);
      case "leaves":
        this.#workers.leavers.forget(change.uid, () => this.#doorkeeper.roomMade());
        return null;
      case "orphan":
        this.#workers.leavers.endOrphan(change.uid);
        return null;
    }
  }

  #change(uid: string, pod: RunnablePod): string | null {
    const known = this.set.get(uid);
    if (known === null) return null;
    if (known.record.state !== "waits") return this.#resizer.change(known, pod);
    this.#doorkeeper.change(known, pod);
    return null;
  }

  /** INVARIANT: that a pod is to end lies on the disk before anything of it is stopped. Answers why it does not. */
  end(uid: string, end: PodEnd): string | null {
    const record = this.set.records.get(uid);
    if (record === undefined) return null;
    this.#workers.interrupt(uid);
    return this.#put(uid, { ...record, state: "ends", end });
  }

  /** What has come to its end since the last turn. */
  #settle(untouched: (uid: string) => boolean, nowMs: number, problems: Problem[]): void {
    for (const known of this.set.living()) {
      if (!untouched(known.uid)) continue;
      const fault = known.record.state === "ends" ? this.#settleEnding(known, nowMs) : this.#settleLiving(known, nowMs);
      if (fault !== null) problems.push({ from: "pods", message: fault });
    }
  }

  #settleEnding(known: KnownPod, nowMs: number): string | null {
    const { uid, pod, record, seen } = known;
    if (!isStopped(seen)) return null;
    if (record.end?.cause === "deleted") {
      // it holds its room for as long as its record is there
      this.#workers.leavers.forget(uid, () => this.#doorkeeper.roomMade());
      return null;
    }
    this.#doorkeeper.roomMade();
    // nobody else would ever start a static pod again
    if (pod.isStatic || record.end?.cause === "drained") return this.#put(uid, waitingAgain(record));
    return this.#put(uid, this.#endedRecord(known, nowMs));
  }

  #settleLiving(known: KnownPod, nowMs: number): string | null {
    const { uid, pod, record, seen } = known;
    if (pastDeadline(pod, record.admittedAtMs, nowMs)) {
      this.#eventsOf(pod).normal(DEADLINE_REASON, DEADLINE_MESSAGE);
      return this.end(uid, endOf("deadline", DEADLINE_REASON, DEADLINE_MESSAGE, nowMs));
    }
    if (seen === null || !isStopped(seen) || resizeRestarts(record, seen).size > 0) return null;
    if (finishedPhase(pod, seen, this.set.statusOf(known, nowMs)) === null) return null;
    this.#doorkeeper.roomMade();
    return this.#put(uid, this.#endedRecord(known, nowMs));
  }

  #endedRecord(known: KnownPod, nowMs: number): PodRecord {
    const record: PodRecord = { ...known.record, state: "ended" };
    return { ...record, status: { ...this.set.statusOf({ ...known, record }, nowMs) } };
  }

  #eventsOf(pod: RunnablePod): PodEvents {
    return new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
  }

  #put(uid: string, record: PodRecord): string | null {
    const put = this.set.records.put(uid, record);
    return put.ok ? null : put.error;
  }
}
