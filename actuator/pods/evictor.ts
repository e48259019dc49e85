import type { EvictionDecision } from "../../api/model/eviction.ts";
import type { DecisionAnswer, Problem } from "../ports.ts";
import type { Doorkeeper } from "./doorkeeper.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { PodEvents } from "./pod-events.ts";
import type { PodSet } from "./pod-set.ts";

/** Looks what the node runs short of, and ends one pod at a time. kubelet 1.36: eviction managerImpl.synchronize. */
export class Evictor {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #door: Doorkeeper;
  #lastMs: number | null = null;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet, door: Doorkeeper) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.#door = door;
  }

  async runIfDue(sequence: number): Promise<readonly Problem[]> {
    const { stats } = this.#ports;
    const nowMs = this.#ports.clock.nowMs();
    const age = this.#lastMs === null ? null : nowMs - this.#lastMs;
    if (stats === undefined || this.#set.seen === null) return [];
    if (age !== null && age >= 0 && age < this.#settings.evictionMs) return [];
    // one victim at a time: what it frees is seen first
    if (this.#set.living().some(({ record }) => record.end?.cause === "evicted")) return [];
    this.#lastMs = nowMs;
    const living = this.#set.living();
    const snapshot = await this.#door.snapshot(living, sequence);
    if (!snapshot.ok) return [snapshot.error];
    const answer = await this.#decide({ ...snapshot.value, stats: await stats() }, stats);
    if (!answer.ok) return [answer.error];
    return this.#carryOut(answer.value);
  }

  async #decide(snapshot: object, stats: () => Promise<object>) {
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
    const { conditions, evicted } = answer.decision as EvictionDecision;
    const before = this.#door.conditions;
    this.#door.conditions = conditions;
    if (before.some(({ type }) => !conditions.some((c) => c.type === type))) this.#door.roomMade();
    const problems: Problem[] = [];
    for (const { pod, reason, message, gracePeriodSeconds } of evicted) {
      const victim = this.#set.get(pod.uid);
      if (victim === null || victim.record.state !== "lives") continue;
      new PodEvents(victim.pod, this.#ports.clock, this.#ports.onEvent).warning(reason, message);
      const sinceMs = this.#ports.clock.nowMs();
      const graceSeconds = gracePeriodSeconds;
      const end = { cause: "evicted", reason, message, sinceMs, graceSeconds, decisionId: answer.id } as const;
      const fault = this.#door.onEnd(pod.uid, end);
      if (fault !== null) problems.push({ from: "pods", message: fault });
    }
    return problems;
  }
}
