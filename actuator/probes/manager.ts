import { type ProbePlan, probePlan } from "../../api/decide/probes/plan.ts";
import type { ProbeSpec, ProbeType, StoredResult } from "../../api/model/probe.ts";
import type { ProbeFacts } from "../status/probe-rows.ts";
import { newlyHeld, ProbeChronicle } from "./chronicle.ts";
import { ProbeEngine, TOLD_MS } from "./engine.ts";
import { ExecLimit } from "./exec-limit.ts";
import { LiveWorker } from "./live-worker.ts";
import type { ManagerPorts, ManagerSettings } from "./ports.ts";
import { ProbeTime } from "./probe-time.ts";
import type { ProbedContainer, ProbedPod } from "./probed.ts";
import { ProbeResults } from "./results.ts";
import { ProbeRoster } from "./roster.ts";
import { isReady, isStarted, type ProbesSeen } from "./started.ts";
import { type Guarded, Storm } from "./storm.ts";

/** Probes the containers of all pods that it is told of. kubelet 1.36: prober.manager. */
export class ProbeManager {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #time: ProbeTime;
  readonly #results = new ProbeResults();
  readonly #execLimit: ExecLimit;
  readonly #chronicle: ProbeChronicle;
  readonly #storm: Storm | null;
  readonly #engine: ProbeEngine;
  readonly #roster: ProbeRoster;
  #overdueMs = Number.NEGATIVE_INFINITY;

  constructor(ports: ManagerPorts, settings: ManagerSettings) {
    const { clock, history } = ports;
    this.#ports = ports;
    this.#settings = settings;
    this.#time = new ProbeTime(clock);
    this.#execLimit = new ExecLimit(settings.execLimit);
    this.#chronicle = new ProbeChronicle(history, clock);
    this.#storm = settings.guard === null ? null : this.#stormOf(settings.guard);
    const { execLimit, chronicle, storm } = {
      execLimit: this.#execLimit,
      chronicle: this.#chronicle,
      storm: this.#storm,
    };
    this.#engine = new ProbeEngine({
      ...{ ports, settings, time: this.#time, results: this.#results, execLimit, chronicle, storm },
      isStarted: ({ container, name }) => isStarted(container, this.#seen(name.podUid, container)),
      onStarted: ({ pod, container }) => this.#triggerOne(pod, container),
      onOverdue: () => {
        this.#overdueMs = clock.monotonicMs();
      },
    });
    this.#roster = new ProbeRoster({
      make: (pod, container, type, probe) => this.#make(pod, container, type, probe),
      added: (worker) => this.#engine.begin(worker),
      stop: (worker) => this.#engine.stop(worker),
      runs: (pod, container) => this.#triggerOne(pod, container),
    });
  }

  /**
   * All pods that live: at each turn, and as soon as something is different. A pod that is missing is probed no more; of
   * one that is to end, liveness and startup are not. A container that has begun to run is asked for its readiness at once.
   */
  look(pods: readonly ProbedPod[]): void {
    this.#roster.look(pods);
  }

  /** Undefined: nothing is stored, as before its first turn and once its worker has ended. */
  resultOf(containerId: string, type: ProbeType): StoredResult | undefined {
    return this.#results.get(containerId, type);
  }

  /** `started` of the container's status, of what was looked at last; false of what is not known. */
  started(podUid: string, container: string): boolean {
    const known = this.#roster.container(podUid, container);
    return known !== undefined && isStarted(known, this.#seen(podUid, known));
  }

  /** `ready` of the container's status, of what was looked at last; false of what is not known. */
  ready(podUid: string, container: string): boolean {
    const pod = this.#roster.pod(podUid);
    const known = this.#roster.container(podUid, container);
    if (pod === undefined || known === undefined) return false;
    return isReady(pod, known, this.#seen(podUid, known), this.#settings.startedAtMs);
  }

  /**
   * Asks at once for the readiness of the pod's containers that are started and not ready; their periods count from here.
   * The kubelet does so whenever it makes the pod's status anew; more often is a probe that does not keep its period.
   */
  trigger(podUid: string): void {
    const pod = this.#roster.pod(podUid);
    for (const container of pod?.containers ?? []) if (pod !== undefined) this.#triggerOne(pod, container);
  }

  /** For people; in no order. */
  facts(): readonly ProbeFacts[] {
    return [...this.#roster.workers()].map((worker) => worker.facts(this.#time));
  }

  /** What the node's probes do to it; an exec takes as long as those of its probe did, or its timeout before the first. */
  plan(): ProbePlan {
    const planned = [...this.#roster.workers()].map(({ handler, spec, seconds }) => {
      const { periodSeconds, timeoutSeconds } = spec.probe;
      return { handler, periodSeconds, timeoutSeconds, seconds: seconds ?? timeoutSeconds };
    });
    return probePlan(planned);
  }

  /** Attempts a second, of all that may come. */
  get perSecond(): number {
    let sum = 0;
    for (const { spec } of this.#roster.workers()) sum += 1 / spec.probe.periodSeconds;
    return sum;
  }

  /** What holds now and somebody should know, in a line each. */
  problems(): readonly string[] {
    const { waiting, running } = this.#execLimit;
    const isOverdue = this.#ports.clock.monotonicMs() - this.#overdueMs < TOLD_MS;
    const held = this.#storm?.holding ?? null;
    return [
      ...(isOverdue
        ? [`exec probes wait longer than their period: ${running} run, ${waiting} wait for their turn`]
        : []),
      ...(held === null ? [] : [`the probe guard holds the kills of ${held.holding} containers: ${held.message}`]),
    ];
  }

  /** Nothing is asked any more, and no result told; attempts that are under way end by their timeouts. */
  close(): void {
    this.#engine.close(this.#roster.workers());
    this.#storm?.close();
    this.#ports.history.flush();
  }

  #make(pod: ProbedPod, container: ProbedContainer, type: ProbeType, probe: ProbeSpec): LiveWorker {
    const { strict } = this.#settings;
    const spec = { type, probe, sidecar: container.isSidecar, managerStartMs: this.#engine.startMs, strict };
    return new LiveWorker(spec, pod, container);
  }

  #seen(podUid: string, { name, probes }: ProbedContainer): ProbesSeen {
    return {
      results: this.#results,
      hasWorker: (type) => probes[type] !== null && this.#roster.worker(podUid, name, type) !== undefined,
    };
  }

  #triggerOne({ uid }: ProbedPod, container: ProbedContainer): void {
    const { id, name } = container;
    if (id === null || this.#results.get(id, "readiness") === "Success") return;
    const worker = this.#roster.worker(uid, name, "readiness");
    if (worker !== undefined && isStarted(container, this.#seen(uid, container))) this.#engine.trigger(worker);
  }

  #stormOf(settings: NonNullable<ManagerSettings["guard"]>): Storm {
    return new Storm({
      settings,
      time: this.#time,
      after: this.#ports.clock.after,
      groups: () => this.#livenessGroups().size,
      containers: () => new Set([...this.#liveness()].flatMap(({ container }) => container.id ?? [])),
      memory: this.#ports.guardMemory,
      onKill: (worker) => this.#engine.kill(worker),
      onGuarded: (guarded) => this.#guarded(guarded),
    });
  }
  #guarded(guarded: Guarded): void {
    this.#ports.counters.probeKillsHeld(newlyHeld(guarded.decision).length);
    this.#chronicle.guarded(guarded);
    this.#ports.onGuard(guarded);
  }
  #livenessGroups(): ReadonlySet<string> {
    return new Set([...this.#liveness()].map(({ pod }) => pod.owner ?? pod.uid));
  }
  *#liveness(): Generator<LiveWorker> {
    for (const worker of this.#roster.workers()) if (worker.spec.type === "liveness") yield worker;
  }
}
