import type { QuantityList } from "../../api/model/decision.ts";
import type { Victim } from "../../api/model/preemption.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import type { DecisionAnswer, Problem } from "../ports.ts";
import { type Admitted, admit } from "./admit.ts";
import { admitted, FORMER_VERSION, formerOf, inTurn, refused, WAITS_FOR_VICTIMS } from "./entrance.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { NodeLook } from "./node-look.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

/** kubelet 1.36: evictPodsToFreeRequests. */
const PREEMPTED = { reason: "Preempting", message: "Preempted in order to admit critical pod" };

/** Lets pods in, one at a time, and tries those again that were refused: the kubelet fails them for good. */
export class Doorkeeper {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  /** The node, as whoever asks about its pods sees it. */
  readonly look: NodeLook;
  #room = 0;
  readonly #tried = new Map<string, { readonly room: number; readonly atMs: number }>();
  /** The daemon is on its way out. */
  isClosed = false;
  /** Who ends a pod: the manager. Answers what keeps it from being noted. */
  onEnd: (uid: string, end: PodEnd) => void = () => {};

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet, allocatable: () => QuantityList | null) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.look = new NodeLook(ports, settings, set, allocatable);
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
    if (this.#set.seen === null || this.isClosed || this.look.allocatable() === null) return [];
    const strange = this.whyShut();
    if (strange !== null) return [strange];
    const problems: Problem[] = await this.#takeBack(sequence);
    const waiting = inTurn([...this.#set.all()].filter(({ record }) => record.state === "waits"));
    for (const known of waiting) {
      const kept = this.#isKept(known);
      if (kept !== null) {
        this.#refuse(known, kept.reason, kept.message, false);
        continue;
      }
      if (!this.#isDue(known)) {
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
    this.#tried.delete(uid);
    this.#set.records.note(uid, { ...record, pod: pod.object });
  }

  /** CPUs, memory and devices of pods that have left go back before anybody else is asked about. */
  #takenBackAt = -1;
  async #takeBack(sequence: number): Promise<Problem[]> {
    if (this.#takenBackAt === this.#room || this.#ports.files.read().assignments === undefined) return [];
    const snapshot = await this.look.snapshot(this.#set.living(), sequence);
    if (!snapshot.ok) return [snapshot.error];
    const answer = await this.#ports.client.decide("cpus", snapshot.value);
    if (!answer.ok) return [answer.error];
    const kept = this.#ports.files.keep(answer.value.next);
    if (!kept.ok) return [{ from: "state-files", message: kept.error }];
    this.#takenBackAt = this.#room;
    return [];
  }

  /** Why a pod is not even asked about; null: it may be. */
  #isKept(known: KnownPod): { readonly reason: string; readonly message: string } | null {
    const former = formerOf(known, this.#set.living());
    if (former === null) return null;
    return { reason: FORMER_VERSION, message: `waits for the end of its former version, ${former.uid}` };
  }

  #isDue({ uid }: KnownPod): boolean {
    const tried = this.#tried.get(uid);
    if (tried === undefined || tried.room !== this.#room) return true;
    return this.#ports.clock.monotonicMs() - tried.atMs >= this.#settings.retryMs;
  }

  /** Answers what kept it from being asked. */
  async #try(known: KnownPod, sequence: number): Promise<Problem | null> {
    const snapshot = await this.look.snapshot(this.#set.living(), sequence);
    if (!snapshot.ok) return snapshot.error;
    this.#tried.set(known.uid, { room: this.#room, atMs: this.#ports.clock.monotonicMs() });
    const asked = await admit(this.#ports.client, snapshot.value, known.pod);
    if (!asked.ok) return asked.error;
    return this.#carryOut(known, asked.value);
  }

  async #carryOut(known: KnownPod, asked: Admitted): Promise<Problem | null> {
    if (asked.kind === "refused") {
      const message = this.#ports.files.explained(asked.message);
      this.#refuse(known, asked.reason, message, true);
      await this.report(asked.answer, known, "admit", "skipped", message);
      return null;
    }
    if (asked.kind === "after") {
      const names = this.preemptAll(asked.victims, asked.answer.id);
      const message = `comes in once ${names} ended`;
      this.#refuse(known, WAITS_FOR_VICTIMS, message, false);
      await this.report(asked.answer, known, "admit", "skipped", message);
      return null;
    }
    const fault = this.#letIn(known, asked.answer.next);
    const message = fault?.message ?? "";
    await this.report(asked.answer, known, "admit", fault === null ? "applied" : "skipped", message);
    return fault;
  }

  /** Answers what keeps it from being noted. */
  #letIn({ uid, record }: KnownPod, next: unknown): Problem | null {
    const kept = this.#ports.files.keep(next);
    if (!kept.ok) return { from: "state-files", message: kept.error };
    const put = this.#set.records.put(uid, admitted(record, this.#ports.clock.nowMs()));
    return put.ok ? null : { from: "pods", message: put.error };
  }

  #refuse(known: KnownPod, reason: string, message: string, isTold: boolean): void {
    const { uid, pod, record } = known;
    const isNew = record.refusal?.reason !== reason || record.refusal.message !== message;
    if (!isNew && !isTold) return;
    const now = refused(record, reason, message, this.#ports.clock.nowMs(), isTold);
    this.#set.records.note(uid, now);
    if (isTold && record.refusal?.reason !== reason) this.#ports.counters?.refused(reason);
    if (isNew && isTold) this.#eventsOf(pod).warning(reason, message);
  }

  /** Ends them all. Answers their names. */
  preemptAll(victims: readonly Victim[], decisionId: string | null): string {
    for (const victim of victims) this.#preempt(victim, decisionId);
    return victims.map(({ namespace, name }) => `${namespace}/${name}`).join(", ");
  }

  #preempt({ uid }: Victim, decisionId: string | null): void {
    const victim = this.#set.get(uid);
    if (victim === null || victim.record.state !== "lives") return;
    this.#eventsOf(victim.pod).warning(PREEMPTED.reason, PREEMPTED.message);
    const sinceMs = this.#ports.clock.nowMs();
    this.onEnd(uid, { cause: "preempted", ...PREEMPTED, sinceMs, graceSeconds: null, decisionId });
    this.#ports.counters?.preempted();
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
