import type { Eviction, EvictionDecision, NodeReclaimFunction } from "../../../api/model/eviction.ts";
import type { DecisionAnswer, DecisionClient, Problem } from "../../core/interfaces.ts";
import type { PassClock } from "../../core/pass-clock.ts";
import { endOf } from "../../lifecycle/pod-state.ts";
import type { CapacityGeneration } from "../admission/admission-backoff.ts";
import type { NodeSnapshotter } from "../admission/node-snapshotter.ts";
import type { CgroupPasses } from "../cgroups/cgroup-passes.ts";
import type { CgroupView } from "../cgroups/cgroup-view.ts";
import type { PodClock } from "../pod-clock.ts";
import type { PodLifecycle } from "../pod-lifecycle.ts";
import type { KnownPod, PodSet } from "../records/pod-set.ts";
import type { PodEventRecorder } from "../records/records.ts";

/** The longest wait of the next pass for what a victim frees. kubelet 1.36: podCleanupTimeout. */
const CLEAN_UP_MS = 30_000;
/** The minimum time that a kill may take before it is reported. kubelet 1.36: killPodNow. */
const MIN_KILL_MS = 10_000;
const EXCEEDED = {
  reason: "ExceededGracePeriod",
  message: "Container runtime did not kill the pod within specified grace period.",
};

interface Victim {
  readonly uid: string;
  /** When the kill began; all times here are monotonic. */
  readonly sinceMs: number;
  readonly killMs: number;
  isReported: boolean;
}

/** Statistics of the node and of its pods. */
interface StatsSource {
  /** `stats` of a snapshot, read now. `view`: the pods' cgroups; null: not decided yet. */
  observe(pods: readonly KnownPod[], view: CgroupView | null): Promise<Readonly<Record<string, unknown>>>;
  /** Problems of the last observation: values that could not be read. */
  readonly unseen: readonly Problem[];
}
export interface EvictionDeps {
  readonly evictionClock: PassClock;
  /** The stats; absent: no pod is evicted. */
  readonly stats?: StatsSource;
  /** Frees disk space that the node itself can free. */
  readonly reclaim?: (functions: readonly NodeReclaimFunction[]) => Promise<void>;
}
interface Deps extends EvictionDeps {
  readonly clock: PodClock;
  readonly client: DecisionClient;
  readonly eventsOf: PodEventRecorder;
}
interface Settings {
  readonly evictionMs: number;
}
interface Parts {
  readonly set: PodSet;
  readonly lifecycle: PodLifecycle;
  readonly cleanup: { isCleared(uid: string): boolean };
  readonly snapshotter: NodeSnapshotter;
  readonly capacity: CapacityGeneration;
  readonly passes: Pick<CgroupPasses, "current">;
}

/** Finds resources that the node runs short of, and evicts one pod at a time. kubelet 1.36: eviction managerImpl.synchronize. */
export class Evictor {
  readonly #deps: Deps;
  readonly #settings: Settings;
  readonly #parts: Parts;
  /** The time of the first call; `#lastMs`: of the last pass. */
  #beganMs: number | null = null;
  #lastMs: number | null = null;
  /** Victims of the last pass; null: there were none, or they are removed completely. */
  #victims: readonly Victim[] | null = null;

  constructor(deps: Deps, settings: Settings, parts: Parts) {
    this.#deps = deps;
    this.#settings = settings;
    this.#parts = parts;
  }

  /** Returns the problems of the pass; null: no pass was due, and the last one's problems still apply. */
  async runIfDue(sequence: number): Promise<readonly Problem[] | null> {
    const { stats } = this.#deps;
    const { set, snapshotter } = this.#parts;
    const nowMs = this.#deps.clock.monotonicMs();
    if (stats === undefined || set.runtimePods === null || !this.#isDue(nowMs)) return null;
    this.#lastMs = nowMs;
    const pass = await snapshotter.passSnapshot(set.living().filter(isActive), sequence);
    if (!pass.ok) return [pass.error];
    const { snapshot, moment } = pass.value;
    const answer = await this.#decide({ ...snapshot, stats: await this.#observe(stats) }, stats);
    if (!answer.ok) return [answer.error];
    const kept = this.#deps.evictionClock.persist(moment);
    const problems: Problem[] = kept.ok ? [] : [{ from: "memory", message: kept.error.message }];
    return [...problems, ...this.#applyDecision(answer.value)];
  }

  /** Whether a pass is due: each period, and after an eviction as soon as its space is free, within a limit. */
  #isDue(nowMs: number): boolean {
    if (this.#victims !== null) {
      for (const victim of this.#victims) this.#reportLateKill(victim, nowMs);
      const waited = nowMs - (this.#lastMs ?? nowMs);
      const isFree = this.#victims.every(({ uid }) => this.#isFinished(uid));
      if (!isFree && waited < CLEAN_UP_MS) return false;
      this.#victims = null;
      return true;
    }
    if (this.#lastMs !== null) return nowMs - this.#lastMs >= this.#settings.evictionMs;
    this.#beganMs ??= nowMs;
    // how long the previous daemon's victim has been terminating is known only by the wall clock
    const isGoing = this.#parts.set.living().some(({ record: { end } }) => end?.cause === "evicted");
    return !isGoing || nowMs - this.#beganMs >= CLEAN_UP_MS;
  }

  /** kubelet 1.36: PodIsFinished. */
  #isFinished(uid: string): boolean {
    const record = this.#parts.set.records.get(uid);
    if (record?.state === "active" || record?.state === "terminating") return false;
    return record?.state !== "terminated" || this.#parts.cleanup.isCleared(uid);
  }

  #reportLateKill(victim: Victim, nowMs: number): void {
    const known = this.#parts.set.get(victim.uid);
    if (victim.isReported || known?.record.state !== "terminating" || nowMs - victim.sinceMs < victim.killMs) return;
    victim.isReported = true;
    this.#deps.eventsOf(known.pod).warning(EXCEEDED.reason, EXCEEDED.message);
  }

  #observe(stats: StatsSource): ReturnType<StatsSource["observe"]> {
    const { set, passes } = this.#parts;
    return stats.observe(set.living(), passes.current);
  }

  async #decide(snapshot: object, stats: StatsSource) {
    const { client, reclaim } = this.#deps;
    const first = await client.decide("eviction", snapshot);
    if (!first.ok) return first;
    const { reclaim: decided } = first.value.decision as EvictionDecision;
    const runs = decided?.nodeLevel ?? [];
    let last = first;
    if (runs.length > 0 && reclaim !== undefined) {
      await reclaim(runs);
      const again = await client.decide("eviction", snapshot, { statsAfterReclaim: await this.#observe(stats) });
      if (again.ok) last = again;
    }
    const { reclaim: taken, conditions } = last.value.decision as EvictionDecision;
    await client.commit(last.value, taken !== null || conditions.length > 0);
    return last;
  }

  #applyDecision(answer: DecisionAnswer): readonly Problem[] {
    const { conditions, evicted, reclaim } = answer.decision as EvictionDecision;
    const { snapshotter, capacity } = this.#parts;
    const before = snapshotter.conditions;
    snapshotter.conditions = conditions;
    if (before.some(({ type }) => !conditions.some((c) => c.type === type))) capacity.free();
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
    const known = this.#parts.set.get(pod.uid);
    if (known === null || known.record.state !== "active") return [];
    const { clock } = this.#deps;
    const own = condition === null ? { isDisruption: false } : {};
    const end = endOf(reason, message, clock.nowMs(), { graceSeconds, decisionId, ...own });
    this.#parts.lifecycle.handle(pod.uid, { kind: "Evicted", end, signal });
    const killMs = Math.max(MIN_KILL_MS, (graceSeconds + Math.trunc(graceSeconds / 2)) * 1000);
    return [{ uid: pod.uid, sinceMs: clock.monotonicMs(), killMs, isReported: false }];
  }
}

/** False for a pod that is being ended with a reason, such as an eviction: it counts as failed. kubelet 1.36: filterOutInactivePods. */
const isActive = ({ record }: KnownPod): boolean => record.end === null || record.end.reason === "";
