import type { QuantityList } from "../../../api/model/decision.ts";
import { latestOf } from "../../lifecycle/instances.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Actuation, PodRecord } from "../../lifecycle/record.ts";
import { sameSpec } from "../../lifecycle/roster.ts";
import type { Problem } from "../../ports.ts";
import { type Admitted, admit } from "../admit.ts";
import { classOf, decodedPod, isCritical } from "../decoded-pod.ts";
import type { Doorkeeper } from "../doorkeeper.ts";
import { WAITS_FOR_VICTIMS } from "../entrance.ts";
import { keepNext } from "../keep-next.ts";
import type { ManagerPorts, ManagerSettings } from "../manager-ports.ts";
import type { KnownPod, PodSet } from "../pod-set.ts";
import { resourcesIn, split } from "./forms.ts";
import { resizesInTurn, type Wanted } from "./in-turn.ts";
import { whyInfeasible } from "./infeasible.ts";
import { nodeOf } from "./node.ts";
import { restartsFor, restartsForMemory } from "./policy.ts";
import { ResizeEvents } from "./resize-events.ts";

interface Tried {
  readonly object: object;
  readonly room: number;
  readonly atMs: number;
}

/**
 * Pods that are asked for with other resources than they have: lets them in as new ones are let in, or says why not.
 * kubelet 1.36: the allocation manager.
 */
export class Resizer {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #door: Doorkeeper;
  readonly #allocatable: () => QuantityList | null;
  readonly #events: ResizeEvents;
  readonly #wanted = new Map<string, RunnablePod>();
  readonly #tried = new Map<string, Tried>();

  constructor(
    ports: ManagerPorts,
    settings: ManagerSettings,
    set: PodSet,
    door: Doorkeeper,
    allocatable: () => QuantityList | null,
  ) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.#door = door;
    this.#allocatable = allocatable;
    this.#events = new ResizeEvents(ports);
  }

  /** What is asked for is compared anew from here on. */
  begin(): void {
    this.#wanted.clear();
    for (const uid of this.#tried.keys()) if (this.#set.records.get(uid) === undefined) this.#tried.delete(uid);
  }

  /**
   * A living pod that is asked for in another form: its image, labels and the like are taken at once, its resources are
   * asked about. Answers what keeps it from being noted.
   */
  change({ uid, record }: KnownPod, pod: RunnablePod): string | null {
    const { atOnce, isResize } = split(pod.object, record.pod);
    if (isResize) this.#wanted.set(uid, pod);
    return sameSpec(atOnce, record.pod) ? null : this.#put(uid, { ...record, pod: atOnce });
  }

  /** Asks about each that was not asked about yet, or not since there was more room. */
  async askWaiting(sequence: number): Promise<readonly Problem[]> {
    const problems: Problem[] = this.#takeBack();
    if (this.#set.seen === null || this.#door.isClosed || this.#door.whyShut() !== null) return problems;
    for (const wanted of resizesInTurn(this.#waiting(), classOf)) {
      if (!this.#isDue(wanted)) continue;
      const fault = await this.#ask(wanted, sequence);
      if (fault !== null) problems.push(fault);
    }
    return problems;
  }

  #waiting(): readonly Wanted[] {
    return [...this.#wanted].flatMap(([uid, pod]) => {
      const known = this.#set.get(uid);
      return known?.record.state === "lives" ? [{ known, pod }] : [];
    });
  }

  /** Nobody asks for other resources any more. kubelet 1.36: ClearPodResizePendingCondition. */
  #takeBack(): Problem[] {
    const problems: Problem[] = [];
    for (const { uid, record } of this.#set.living()) {
      if (this.#wanted.has(uid) || record.resize === null || record.resize.reason === "InProgress") continue;
      this.#tried.delete(uid);
      const fault = this.#put(uid, { ...record, resize: onlyActuation(record) });
      if (fault !== null) problems.push({ from: "pods", message: fault });
    }
    return problems;
  }

  /** What can never be is asked about again only because the node's configuration may have changed. */
  #isDue({ known: { uid, record }, pod }: Wanted): boolean {
    const tried = this.#tried.get(uid);
    if (tried === undefined || tried.object !== pod.object) return true;
    if (tried.room !== this.#door.room && record.resize?.reason !== "Infeasible") return true;
    const age = this.#ports.clock.nowMs() - tried.atMs;
    return age >= this.#settings.retryMs || age < 0;
  }

  async #ask(wanted: Wanted, sequence: number): Promise<Problem | null> {
    const { known, pod } = wanted;
    const allocatable = this.#allocatable();
    const [now, then] = [decodedPod(known.record.pod), decodedPod(pod.object)];
    const configuration = await this.#ports.readConfiguration();
    if (!configuration.ok) return configuration.error;
    if (allocatable === null || now === null || then === null) return null;
    const atMs = this.#ports.clock.nowMs();
    this.#tried.set(known.uid, { object: pod.object, room: this.#door.room, atMs });
    const node = nodeOf(configuration.value, allocatable, this.#ports.hierarchy.version);
    const never = whyInfeasible(then, now, node, {
      isCritical: isCritical(pod),
      restartsForMemory: (name) => restartsForMemory(known.record.pod, name),
    });
    if (never !== null) return this.#refuse(wanted, "Infeasible", "Infeasible", never);
    const snapshot = await this.#door.look.snapshot(this.#set.living(), sequence);
    if (!snapshot.ok) return snapshot.error;
    // as it would be: what its status tells is of what it has
    const { status: _status, ...object } = pod.object;
    const asked = await admit(this.#ports.client, snapshot.value, { ...pod, object });
    if (!asked.ok) return asked.error;
    const [fault, message] = this.#carryOut(wanted, asked.value);
    await this.#door.report(asked.value.answer, known, "resize", message === "" ? "applied" : "skipped", message);
    return fault;
  }

  /** Answers what keeps it from being noted, and why the resize is not let in; empty: it is. */
  #carryOut(wanted: Wanted, asked: Admitted): readonly [Problem | null, string] {
    if (asked.kind === "refused") {
      const { reason, message } = asked;
      return [this.#refuse(wanted, "Deferred", reason, message), message || reason];
    }
    if (asked.kind === "after") {
      const message = `comes in once ${this.#door.preempter.preemptAll(asked.victims, asked.answer.id)} ended`;
      return [this.#refuse(wanted, "Deferred", WAITS_FOR_VICTIMS, message), message];
    }
    const kept = keepNext(this.#ports, asked.answer.next);
    const fault: Problem | null = kept.ok ? this.#accept(wanted) : { from: "state-files", message: kept.error };
    return [fault, fault?.message ?? ""];
  }

  #refuse({ known, pod }: Wanted, kind: "Deferred" | "Infeasible", reason: string, message: string): Problem | null {
    const { uid, record } = known;
    const before = record.resize;
    if (before?.reason === kind && before.message === message) return null;
    const isSame = before?.reason === kind;
    const sinceMs = isSame ? before.sinceMs : this.#ports.clock.nowMs();
    const actuation = before?.actuation === undefined ? {} : { actuation: before.actuation };
    const fault = this.#put(uid, { ...record, resize: { reason: kind, message, sinceMs, ...actuation } });
    // another figure in the same words is not told again
    if (!isSame) this.#events.pending(pod, kind, reason, message);
    return fault === null ? null : { from: "pods", message: fault };
  }

  /** INVARIANT: what is in force, and which containers are to be stopped for it, lies on the disk before anything is done. */
  #accept({ known, pod }: Wanted): Problem | null {
    const { uid, record, seen } = known;
    const former = record.resize?.actuation?.former ?? resourcesIn(record.pod);
    const running = (name: string): string | null => {
      const latest = seen === null ? undefined : latestOf(seen, name);
      return latest?.state === "running" ? latest.id : null;
    };
    const restarts = restartsFor(pod.object, former, running);
    const actuation: Actuation = { former, restarts, error: "" };
    const sinceMs = this.#ports.clock.nowMs();
    const resize = { reason: "InProgress", message: "", sinceMs, actuation } as const;
    const fault = this.#put(uid, { ...record, pod: pod.object, resize });
    if (fault !== null) return { from: "pods", message: fault };
    this.#events.started(pod);
    return null;
  }

  #put(uid: string, record: PodRecord): string | null {
    const put = this.#set.records.put(uid, record);
    return put.ok ? null : put.error;
  }
}

const onlyActuation = ({ resize }: PodRecord): PodRecord["resize"] =>
  resize?.actuation === undefined
    ? null
    : { reason: "InProgress", message: resize.actuation.error, sinceMs: resize.sinceMs, actuation: resize.actuation };
