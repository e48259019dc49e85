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
  /** By the clock that nobody sets, as all times here. */
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
  /** When it was first asked, and when it looked last. */
  #beganMs: number | null = null;
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

  /** What the look met; null: none was due, and what the last one met stands. */
  async runIfDue(sequence: number): Promise<readonly Problem[] | null> {
    const { stats } = this.#ports;
    const nowMs = this.#ports.clock.monotonicMs();
    if (stats === undefined || this.#set.seen === null || !this.#isDue(nowMs)) return null;
    this.#lastMs = nowMs;
    const look = await this.#door.look.passSnapshot(this.#set.living().filter(isActive), sequence);
    if (!look.ok) return [look.error];
    const { snapshot, moment } = look.value;
    const answer = await this.#decide({ ...snapshot, stats: await stats() }, stats);
    if (!answer.ok) return [answer.error];
    const kept = this.#ports.evictionClock.keep(moment);
    const problems: Problem[] = kept.ok ? [] : [{ from: "memory", message: kept.error.message }];
    return [...problems, ...this.#carryOut(answer.value)];
  }

  /** At each period; after an eviction as soon as its room is free, which is not waited for for ever. */
  #isDue(nowMs: number): boolean {
    if (this.#victims !== null) {
      for (const victim of this.#victims) this.#tellLate(victim, nowMs);
      const waited = nowMs - (this.#lastMs ?? nowMs);
      const isFree = this.#victims.every(({ uid }) => this.#isFinished(uid));
      if (!isFree && waited < CLEAN_UP_MS) return false;
      this.#victims = null;
      return true;
    }
    if (this.#lastMs !== null) return nowMs - this.#lastMs >= this.#settings.evictionMs;
    this.#beganMs ??= nowMs;
    // how long a victim of the daemon before this one has been going is told by the wall clock only
    const isGoing = this.#set.living().some(({ record: { end } }) => end?.cause === "evicted");
    return !isGoing || nowMs - this.#beganMs >= CLEAN_UP_MS;
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
    const before = this.#door.look.conditions;
    this.#door.look.conditions = conditions;
    if (before.some(({ type }) => !conditions.some((c) => c.type === type))) this.#door.roomMade();
    const problems: Problem[] = [];
    if (reclaim !== null) problems.push({ from: "pods", message: `${reclaim.event.reason}: ${reclaim.event.message}` });
    const victims = evicted.flatMap((eviction) => {
      const signal = eviction.cause === "threshold" ? reclaim?.threshold.signal : eviction.cause;
      return this.#evict(eviction, signal ?? eviction.cause, answer.id);
    });
    if (victims.length > 0) this.#victims = victims;
    return problems;
  }

  #evict(eviction: Eviction, signal: string, decisionId: string | null): readonly Victim[] {
    const { pod, reason, message, gracePeriodSeconds: graceSeconds, condition } = eviction;
    const known = this.#set.get(pod.uid);
    if (known === null || known.record.state !== "lives") return [];
    this.#eventsOf(known).warning(reason, message);
    const { clock, counters } = this.#ports;
    const own = condition === null ? { isDisruption: false } : {};
    const end = {
      cause: "evicted",
      reason,
      message,
      sinceMs: clock.nowMs(),
      graceSeconds,
      decisionId,
      ...own,
    } as const;
    this.#door.preempter.onEnd(pod.uid, end);
    counters?.evicted(signal);
    const killMs = Math.max(LEAST_KILL_MS, (graceSeconds + Math.trunc(graceSeconds / 2)) * 1000);
    return [{ uid: pod.uid, sinceMs: clock.monotonicMs(), killMs, isTold: false }];
  }

  #eventsOf({ pod }: KnownPod): PodEvents {
    return new PodEvents(pod, this.#ports.clock, this.#ports.onEvent);
  }
}

/** What is on its way out for the node's sake has failed already, and is no victim. kubelet 1.36: filterOutInactivePods. */
const isActive = ({ record }: KnownPod): boolean => record.end === null || record.end.reason === "";
