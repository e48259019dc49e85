import type { Eviction, EvictionDecision } from "../../api/model/eviction.ts";
import type { DecisionAnswer, Problem } from "../ports.ts";
import type { Doorkeeper } from "./doorkeeper.ts";
import type { ManagerPorts, ManagerSettings, StatsSource } from "./manager-ports.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

/** How long the next look waits for what a victim frees. kubelet 1.36: podCleanupTimeout. */
const CLEAN_UP_MS = 30_000;
/** The least time that a kill may take before it is told. kubelet 1.36: killPodNow. */
const LEAST_KILL_MS = 10_000;
const EXCEEDED = {
  reason: "ExceededGracePeriod",
  message: "Container runtime did not kill the pod within specified grace period.",
};

interface Victim {
  readonly uid: string;
  readonly sinceMs: number;
  readonly killMs: number;
  isTold: boolean;
}

/** Looks what the node runs short of, and ends one pod at a time. kubelet 1.36: eviction managerImpl.synchronize. */
export class Evictor {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #door: Doorkeeper;
  #lastMs: number | null = null;
  /** Of the last pass; null: it evicted nobody, or what they leave behind is gone. */
  #victims: readonly Victim[] | null = null;
  /** Nothing of an ended pod is left that takes up room. */
  isCleared: (uid: string) => boolean = () => true;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet, door: Doorkeeper) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.#door = door;
  }

  async runIfDue(sequence: number): Promise<readonly Problem[]> {
    const { stats } = this.#ports;
    const nowMs = this.#ports.clock.nowMs();
    if (stats === undefined || this.#set.seen === null || !this.#isDue(nowMs)) return [];
    this.#lastMs = nowMs;
    const snapshot = await this.#door.snapshot(this.#set.living().filter(isActive), sequence);
    if (!snapshot.ok) return [snapshot.error];
    const answer = await this.#decide({ ...snapshot.value, stats: await stats() }, stats);
    if (!answer.ok) return [answer.error];
    return this.#carryOut(answer.value);
  }

  /** At each period; after an eviction as soon as its room is free, which is not waited for for ever. */
  #isDue(nowMs: number): boolean {
    if (this.#victims !== null) {
      for (const victim of this.#victims) this.#tellLate(victim, nowMs);
      const waited = nowMs - (this.#lastMs ?? nowMs);
      const isFree = this.#victims.every(({ uid }) => this.#isFinished(uid));
      if (!isFree && waited < CLEAN_UP_MS && waited >= 0) return false;
      this.#victims = null;
      return true;
    }
    // a victim of the daemon before this one
    const isGoing = ({ record: { end } }: KnownPod): boolean =>
      end?.cause === "evicted" && nowMs >= end.sinceMs && nowMs - end.sinceMs < CLEAN_UP_MS;
    if (this.#lastMs === null && this.#set.living().some(isGoing)) return false;
    const age = this.#lastMs === null ? null : nowMs - this.#lastMs;
    return age === null || age < 0 || age >= this.#settings.evictionMs;
  }

  /** kubelet 1.36: PodIsFinished. */
  #isFinished(uid: string): boolean {
    const record = this.#set.records.get(uid);
    if (record?.state === "lives" || record?.state === "ends") return false;
    return record?.state !== "ended" || this.isCleared(uid);
  }

  #tellLate(victim: Victim, nowMs: number): void {
    const known = this.#set.get(victim.uid);
    if (victim.isTold || known?.record.state !== "ends" || nowMs - victim.sinceMs < victim.killMs) return;
    victim.isTold = true;
    this.#eventsOf(known).warning(EXCEEDED.reason, EXCEEDED.message);
  }

  async #decide(snapshot: object, stats: StatsSource) {
    const { client, reclaim } = this.#ports;
    const first = await client.decide("eviction", snapshot);
    if (!first.ok) return first;
    const { reclaim: wanted } = first.value.decision as EvictionDecision;
    const runs = wanted?.nodeLevel ?? [];
    let last = first;
    if (runs.length > 0 && reclaim !== undefined) {
      await reclaim(runs);
      const again = await client.decide("eviction", snapshot, { statsAfterReclaim: await stats() });
      if (again.ok) last = again;
    }
    const { reclaim: taken, conditions } = last.value.decision as EvictionDecision;
    await client.settle(last.value, taken !== null || conditions.length > 0);
    return last;
  }

  #carryOut(answer: DecisionAnswer): readonly Problem[] {
    const { conditions, evicted, reclaim } = answer.decision as EvictionDecision;
    const before = this.#door.conditions;
    this.#door.conditions = conditions;
    if (before.some(({ type }) => !conditions.some((c) => c.type === type))) this.#door.roomMade();
    const problems: Problem[] = [];
    if (reclaim !== null) problems.push({ from: "pods", message: `${reclaim.event.reason}: ${reclaim.event.message}` });
    const victims: Victim[] = [];
    for (const eviction of evicted) {
      const fault = this.#evict(eviction, answer.id, victims);
      if (fault !== null) problems.push({ from: "pods", message: fault });
    }
    if (victims.length > 0) this.#victims = victims;
    return problems;
  }

  #evict(eviction: Eviction, decisionId: string | null, victims: Victim[]): string | null {
    const { pod, reason, message, gracePeriodSeconds: graceSeconds, condition } = eviction;
    const known = this.#set.get(pod.uid);
    if (known === null || known.record.state !== "lives") return null;
    this.#eventsOf(known).warning(reason, message);
    const sinceMs = this.#ports.clock.nowMs();
    const own = condition === null ? { isDisruption: false } : {};
    const end = { cause: "evicted", reason, message, sinceMs, graceSeconds, decisionId, ...own } as const;
    const fault = this.#door.onEnd(pod.uid, end);
    if (fault !== null) return fault;
    const killMs = Math.max(LEAST_KILL_MS, (graceSeconds + Math.trunc(graceSeconds / 2)) * 1000);
    victims.push({ uid: pod.uid, sinceMs, killMs, isTold: false });
    return null;
  }

  #eventsOf({ pod }: KnownPod): PodEvents {
    return new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
  }
}

/** What is on its way out for the node's sake has failed already, and is no victim. kubelet 1.36: filterOutInactivePods. */
const isActive = ({ record }: KnownPod): boolean => record.end === null || record.end.reason === "";
