import type { QuantityList } from "../../api/model/decision.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { DecisionAnswer, Problem } from "../ports.ts";
import { type Admitted, admit } from "./admit.ts";
import { DeviceEntrance } from "./device-entrance.ts";
import { DeviceRepair } from "./device-repair.ts";
import type { DeviceFault } from "./devices/port.ts";
import { admitted, FORMER_VERSION, formerOf, inTurn, refused, WAITS_FOR_VICTIMS } from "./entrance.ts";
import { HostPorts } from "./host-ports.ts";
import { keepNext } from "./keep-next.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { NodeLook } from "./node-look.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";
import { Preempter } from "./preempter.ts";
import { TakeBack } from "./take-back.ts";
import { Tries } from "./tries.ts";

/** Lets pods in, one at a time, and tries those again that were refused: the kubelet fails them for good. */
export class Doorkeeper {
  readonly #ports: ManagerPorts;
  readonly #set: PodSet;
  /** The node, as whoever asks about its pods sees it. */
  readonly look: NodeLook;
  readonly #takeBack: TakeBack;
  readonly #devices: DeviceEntrance;
  readonly #repair: DeviceRepair;
  #room = 0;
  readonly #tries: Tries;
  readonly hostPorts: HostPorts;
  /** Who ends those that make room. */
  readonly preempter: Preempter;
  /** The daemon is on its way out. */
  isClosed = false;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet, allocatable: () => QuantityList | null) {
    this.#ports = ports;
    this.#set = set;
    this.look = new NodeLook(ports, settings, set, allocatable);
    this.preempter = new Preempter(ports, set);
    this.#tries = new Tries(ports, settings);
    this.hostPorts = new HostPorts(ports, set);
    this.#takeBack = new TakeBack(ports, set, this.look);
    this.#devices = new DeviceEntrance(ports.devices, ports.client);
    this.#repair = new DeviceRepair(ports, set, this.look, this.#tries);
  }

  roomMade(): void {
    this.#room++;
  }
  /** Grows whenever there may be more room than before. */
  get room(): number {
    return this.#room;
  }

  /** Asks about each pod that waits and has not been asked about since there was more room. */
  async admitWaiting(sequence: number): Promise<readonly Problem[]> {
    if (this.#set.seen === null) return [];
    this.#repair.look();
    if (this.isClosed || this.look.allocatable() === null) return [];
    const strange = this.whyShut();
    if (strange !== null) return [strange];
    const problems: Problem[] = await this.#takeBack.run(this.#room, sequence);
    this.#tries.keep((uid) => this.#set.records.get(uid) !== undefined);
    problems.push(...(await this.#repair.run(this.#room, sequence)));
    const waiting = inTurn([...this.#set.all()].filter(({ record }) => record.state === "waits"));
    for (const known of waiting) {
      const kept = this.#isKept(known);
      if (kept !== null) {
        if (kept.isTold && !this.#tries.isDue(known, this.#room)) continue;
        this.#refuse(known, kept.reason, kept.message, kept.isTold);
        if (kept.isTold) this.#tries.note(known.uid, this.#room);
        continue;
      }
      if (!this.#tries.isDue(known, this.#room)) {
        // what is freed for a critical pod is not given to another one
        if (known.record.refusal?.reason === WAITS_FOR_VICTIMS) break;
        continue;
      }
      const fault = await this.#try(known, sequence);
      if (fault !== null) problems.push(fault);
      if (this.#set.records.get(known.uid)?.refusal?.reason === WAITS_FOR_VICTIMS) break;
    }
    return problems;
  }

  /** INVARIANT: while something runs of which nothing is known, nothing that it may hold is given away. */
  whyShut(): Problem | null {
    const strangers = this.#set.strangers();
    const message = `nobody is let in while pods run whose records are lost: ${strangers.join(", ")}`;
    return strangers.length === 0 ? null : { from: "pods", message };
  }

  /** A pod that waits is asked for in another form. */
  change({ uid, record }: KnownPod, pod: RunnablePod): void {
    this.#tries.forget(uid);
    this.#set.records.note(uid, { ...record, pod: pod.object });
  }

  /** Why a pod is not even asked about; null: it may be. */
  #isKept(known: KnownPod): (DeviceFault & { readonly isTold: boolean }) | null {
    const former = formerOf(known, this.#set.living());
    if (former === null) return this.#devices.whyWaits(known.pod);
    const message = `waits for the end of its former version, ${former.uid}`;
    return { reason: FORMER_VERSION, message, isTold: false };
  }

  /** Answers what kept it from being asked. */
  async #try(known: KnownPod, sequence: number): Promise<Problem | null> {
    const snapshot = await this.look.snapshot(this.#set.living(), sequence, known.uid);
    if (!snapshot.ok) return snapshot.error;
    const asks = await this.#devices.asks(known.pod, snapshot.value);
    if (!asks.ok) return asks.error;
    this.#tries.note(known.uid, this.#room);
    if (asks.value !== null) {
      this.#refuse(known, asks.value.reason, asks.value.message, false);
      return null;
    }
    const asked = await admit(this.#ports.client, snapshot.value, known.pod);
    if (!asked.ok) return asked.error;
    return this.#carryOut(known, asked.value);
  }

  async #carryOut(known: KnownPod, asked: Admitted): Promise<Problem | null> {
    if (asked.kind === "refused") {
      const message = this.#ports.files.explained(asked.message);
      const isPlugins = this.#devices.hasFailed(known.uid);
      const times = isPlugins ? this.#tries.failed(known, this.#room) : undefined;
      this.#refuse(known, asked.reason, message, true, times);
      await this.report(asked.answer, known, "admit", "skipped", message);
      return null;
    }
    if (asked.kind === "after") {
      const names = this.preempter.preemptAll(asked.victims, asked.answer.id);
      const message = `comes in once ${names} ended`;
      this.#refuse(known, WAITS_FOR_VICTIMS, message, false);
      await this.report(asked.answer, known, "admit", "skipped", message);
      return null;
    }
    const fault = this.#letIn(known, asked.answer.next);
    if (fault === null) this.hostPorts.tellMapped(known);
    const message = fault?.message ?? "";
    await this.report(asked.answer, known, "admit", fault === null ? "applied" : "skipped", message);
    return fault;
  }

  /** Answers what keeps it from being noted. */
  #letIn({ uid, record }: KnownPod, next: unknown): Problem | null {
    const kept = keepNext(this.#ports, next);
    if (!kept.ok) return { from: "state-files", message: kept.error };
    this.#devices.forget(uid);
    const put = this.#set.records.put(uid, admitted(record, this.#ports.clock.nowMs()));
    return put.ok ? null : { from: "pods", message: put.error };
  }

  /**
   * A pod that was let in, and of which nothing runs, did not get its devices: it holds nothing any more, and is asked about
   * again as one that was refused.
   */
  sendBack(uid: string, { reason, message }: DeviceFault): void {
    const known = this.#set.get(uid);
    if (known === null || known.record.state !== "lives") return;
    this.roomMade();
    this.#refuse(known, reason, message, true, this.#tries.failed(known, this.#room));
  }

  /** `times`: how often it was refused in a row, where it was let in, or asked about, in between; absent: its record says it. */
  #refuse(known: KnownPod, reason: string, message: string, isTold: boolean, times?: number): void {
    const { uid, pod, record } = known;
    const isNew = record.refusal?.reason !== reason || record.refusal.message !== message;
    if (!isNew && !isTold) return;
    const now = refused(record, reason, message, this.#ports.clock.nowMs(), isTold);
    const { refusal } = now;
    const isCounted = times !== undefined && refusal !== null;
    this.#set.records.keep(uid, isCounted ? { ...now, refusal: { ...refusal, tries: times } } : now);
    if (isTold && record.refusal?.reason !== reason) this.#ports.counters?.refused(reason);
    if (isNew && isTold) this.#eventsOf(pod).warning(reason, message);
  }

  async report(
    answer: DecisionAnswer,
    { pod }: KnownPod,
    op: "admit" | "resize",
    status: "applied" | "skipped",
    message: string,
  ): Promise<void> {
    const at = new Date(this.#ports.clock.nowMs()).toISOString();
    const step = { op, pod: `${pod.namespace}/${pod.name}`, uid: pod.uid, status, message };
    await this.#ports.client.report({ at, dryRun: false, complete: true, results: [step] }, answer);
  }

  #eventsOf(pod: RunnablePod): PodEvents {
    return new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
  }
}
