import { type ProbePlan, probePlan } from "../../../api/decide/probes/plan.ts";
import { RESTART_GRACE_MS } from "../../../api/decide/probes/worker.ts";
import { PROBE_TYPES, type ProbeSpec, type ProbeType, type StoredResult } from "../../../api/model/probe-spec.ts";
import type { ProbeFacts } from "../../status/probe-row.ts";
import { ExecLimit } from "./attempt.ts";
import { type ManagerDeps, type ManagerSettings, ProbeEngine, REPORT_MS } from "./engine.ts";
import { newlyHeldContainers, ProbeEventRecorder } from "./history.ts";
import { type Guarded, LivenessStormGuard } from "./liveness-storm-guard.ts";
import { ProbeTime } from "./probe-time.ts";
import { ProbeWorker } from "./probe-worker.ts";
import { type ProbedContainer, type ProbedPod, ProbeResults } from "./probed.ts";

interface KnownPod {
  pod: ProbedPod;
  /** The workers by type and container. */
  readonly workers: Map<string, ProbeWorker>;
  readonly containers: Map<string, ProbedContainer>;
}
interface ProbeTargetsDeps {
  readonly make: (pod: ProbedPod, container: ProbedContainer, type: ProbeType, probe: ProbeSpec) => ProbeWorker;
  /** Called for a new worker. */
  readonly added: (worker: ProbeWorker) => void;
  /** kubelet 1.36: StopLivenessAndStartup, RemovePod. */
  readonly stop: (worker: ProbeWorker) => void;
  /** Called for a container that runs and did not run at the last sync. */
  readonly runs: (pod: ProbedPod, container: ProbedContainer) => void;
}
const keyOf = (container: string, type: ProbeType): string => `${type}/${container}`;

/** The pods to probe, with a worker for each probe. kubelet 1.36: prober.manager. */
class ProbeTargets {
  readonly #deps: ProbeTargetsDeps;
  readonly #pods = new Map<string, KnownPod>();

  constructor(deps: ProbeTargetsDeps) {
    this.#deps = deps;
  }

  /** The workers that have not ended. */
  *workers(): Generator<ProbeWorker> {
    for (const { workers } of this.#pods.values())
      for (const worker of workers.values()) if (!worker.isEnded) yield worker;
  }
  pod(uid: string): ProbedPod | undefined {
    return this.#pods.get(uid)?.pod;
  }
  container(podUid: string, name: string): ProbedContainer | undefined {
    return this.#pods.get(podUid)?.containers.get(name);
  }
  /** The worker; undefined: there is none, or it has ended. */
  worker(podUid: string, container: string, type: ProbeType): ProbeWorker | undefined {
    const worker = this.#pods.get(podUid)?.workers.get(keyOf(container, type));
    return worker?.isEnded === true ? undefined : worker;
  }

  sync(pods: readonly ProbedPod[]): void {
    const living = new Set(pods.map(({ uid }) => uid));
    for (const [uid, { workers }] of this.#pods) {
      if (living.has(uid)) continue;
      this.#pods.delete(uid);
      for (const worker of workers.values()) this.#deps.stop(worker);
    }
    for (const pod of pods) this.#syncPod(pod);
  }

  #syncPod(pod: ProbedPod): void {
    const known: KnownPod = this.#pods.get(pod.uid) ?? { pod, workers: new Map(), containers: new Map() };
    const isDeletedNow = pod.deletionAtMs !== null && known.pod.deletionAtMs === null;
    known.pod = pod;
    this.#pods.set(pod.uid, known);
    const started: ProbedContainer[] = [];
    for (const container of pod.containers) {
      const before = known.containers.get(container.name);
      known.containers.set(container.name, container);
      for (const type of PROBE_TYPES) this.#syncProbe(known, container, type, isDeletedNow);
      const isSame = before?.id === container.id && before?.state === "running";
      if (before !== undefined && container.state === "running" && !isSame) started.push(container);
    }
    for (const container of started) this.#deps.runs(pod, container);
  }

  #syncProbe({ pod, workers }: KnownPod, container: ProbedContainer, type: ProbeType, isDeletedNow: boolean): void {
    const probe = container.probes[type];
    if (probe === null) return;
    const key = keyOf(container.name, type);
    const worker = workers.get(key);
    if (worker === undefined || this.#isAnew(worker, pod, container)) {
      const made = this.#deps.make(pod, container, type, probe);
      workers.set(key, made);
      this.#deps.added(made);
      return;
    }
    worker.pod = pod;
    worker.container = container;
    // the kubelet does not stop probes of sidecars
    if (isDeletedNow && type !== "readiness" && !container.isSidecar) this.#deps.stop(worker);
  }

  /** True if a container that was not expected to restart was started again. */
  #isAnew(worker: ProbeWorker, pod: ProbedPod, { id }: ProbedContainer): boolean {
    return worker.isEnded && id !== null && id !== worker.state?.containerId && pod.deletionAtMs === null;
  }
}

/** Probes the containers of all given pods. kubelet 1.36: prober.manager. */
export class ProbeManager {
  readonly #deps: ManagerDeps;
  readonly #settings: ManagerSettings;
  readonly #time: ProbeTime;
  readonly #results = new ProbeResults();
  readonly #execLimit: ExecLimit;
  readonly #events: ProbeEventRecorder;
  readonly #storm: LivenessStormGuard | null;
  readonly #engine: ProbeEngine;
  readonly #targets: ProbeTargets;
  #overdueMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ManagerDeps, settings: ManagerSettings) {
    const { clock, history } = deps;
    this.#deps = deps;
    this.#settings = settings;
    this.#time = new ProbeTime(clock);
    this.#execLimit = new ExecLimit(settings.execLimit);
    this.#events = new ProbeEventRecorder(history, clock);
    this.#storm = settings.guard === null ? null : this.#stormOf(settings.guard);
    const { execLimit, events, storm } = {
      execLimit: this.#execLimit,
      events: this.#events,
      storm: this.#storm,
    };
    this.#engine = new ProbeEngine({
      ...{ deps, settings, time: this.#time, results: this.#results, execLimit, events, storm },
      isStarted: ({ container, name }) => isStarted(container, this.#seen(name.podUid, container)),
      onStarted: ({ pod, container }) => this.#triggerOne(pod, container),
      onOverdue: () => {
        this.#overdueMs = clock.monotonicMs();
      },
    });
    this.#targets = new ProbeTargets({
      make: (pod, container, type, probe) => this.#make(pod, container, type, probe),
      added: (worker) => this.#engine.begin(worker),
      stop: (worker) => this.#engine.stop(worker),
      runs: (pod, container) => this.#triggerOne(pod, container),
    });
  }

  /**
   * Sets all living pods; called at each sync and after each change. A missing pod is no longer probed; liveness and startup
   * probes of a pod that is to end stop. The readiness of a container that has begun to run is probed at once.
   */
  sync(pods: readonly ProbedPod[]): void {
    this.#targets.sync(pods);
  }

  /** The stored result; undefined: none, for example before the first attempt and after the worker has ended. */
  resultOf(containerId: string, type: ProbeType): StoredResult | undefined {
    return this.#results.get(containerId, type);
  }

  /** `started` of the container's status as last observed; false if not known. */
  started(podUid: string, container: string): boolean {
    const known = this.#targets.container(podUid, container);
    return known !== undefined && isStarted(known, this.#seen(podUid, known));
  }

  /** `ready` of the container's status as last observed; false if not known. */
  ready(podUid: string, container: string): boolean {
    const pod = this.#targets.pod(podUid);
    const known = this.#targets.container(podUid, container);
    if (pod === undefined || known === undefined) return false;
    return isReady(pod, known, this.#seen(podUid, known), this.#settings.startedAtMs);
  }

  /**
   * Probes at once the readiness of the pod's containers that are started and not ready; their periods restart.
   * The kubelet does so whenever it computes the pod's status; calling it more often breaks the probe's period.
   */
  trigger(podUid: string): void {
    const pod = this.#targets.pod(podUid);
    for (const container of pod?.containers ?? []) if (pod !== undefined) this.#triggerOne(pod, container);
  }

  /** The probes' facts for people, unordered. */
  facts(): readonly ProbeFacts[] {
    return [...this.#targets.workers()].map((worker) => worker.facts(this.#time));
  }

  /**
   * Computes the load of the node's probes. The duration of an exec is that of its probe's earlier execs, at first its timeout.
   */
  plan(): ProbePlan {
    const planned = [...this.#targets.workers()].map(({ handler, spec, seconds }) => {
      const { periodSeconds, timeoutSeconds } = spec.probe;
      return { handler, periodSeconds, timeoutSeconds, seconds: seconds ?? timeoutSeconds };
    });
    return probePlan(planned);
  }

  /** Attempts per second of all probes. */
  get perSecond(): number {
    let sum = 0;
    for (const { spec } of this.#targets.workers()) sum += 1 / spec.probe.periodSeconds;
    return sum;
  }

  /** Lists the current problems for people, one line each. */
  problems(): readonly string[] {
    const { waiting, running } = this.#execLimit;
    const isOverdue = this.#deps.clock.monotonicMs() - this.#overdueMs < REPORT_MS;
    const held = this.#storm?.holding ?? null;
    return [
      ...(isOverdue
        ? [`exec probes wait longer than their period: ${running} run, ${waiting} wait for their turn`]
        : []),
      ...(held === null ? [] : [`the probe guard holds the kills of ${held.holding} containers: ${held.message}`]),
    ];
  }

  /** Stops: nothing is probed or reported any more; running attempts end by their timeouts. */
  close(): void {
    this.#engine.close(this.#targets.workers());
    this.#storm?.close();
    this.#deps.history.flush();
  }

  #make(pod: ProbedPod, container: ProbedContainer, type: ProbeType, probe: ProbeSpec): ProbeWorker {
    const { strict, profile } = this.#settings;
    const spec = { type, probe, sidecar: container.isSidecar, managerStartMs: this.#engine.startMs, strict, profile };
    return new ProbeWorker(spec, pod, container);
  }

  #seen(podUid: string, { name, probes }: ProbedContainer): ProbesSeen {
    return {
      results: this.#results,
      hasWorker: (type) => probes[type] !== null && this.#targets.worker(podUid, name, type) !== undefined,
    };
  }

  #triggerOne({ uid }: ProbedPod, container: ProbedContainer): void {
    const { id, name } = container;
    if (id === null || this.#results.get(id, "readiness") === "Success") return;
    const worker = this.#targets.worker(uid, name, "readiness");
    if (worker !== undefined && isStarted(container, this.#seen(uid, container))) this.#engine.trigger(worker);
  }

  #stormOf(settings: NonNullable<ManagerSettings["guard"]>): LivenessStormGuard {
    return new LivenessStormGuard({
      settings,
      time: this.#time,
      after: this.#deps.clock.after,
      groups: () => this.#livenessGroups().size,
      containers: () => new Set([...this.#liveness()].flatMap(({ container }) => container.id ?? [])),
      stateFile: this.#deps.guardStateFile,
      onKill: (worker) => this.#engine.kill(worker),
      onGuarded: (guarded) => this.#guarded(guarded),
    });
  }
  #guarded(guarded: Guarded): void {
    this.#deps.counters.probeKillsHeld(newlyHeldContainers(guarded.decision).length);
    this.#events.guarded(guarded);
    this.#deps.onGuard(guarded);
  }
  #livenessGroups(): ReadonlySet<string> {
    return new Set([...this.#liveness()].map(({ pod }) => pod.owner ?? pod.uid));
  }
  *#liveness(): Generator<ProbeWorker> {
    for (const worker of this.#targets.workers()) if (worker.spec.type === "liveness") yield worker;
  }
}

/** What `started` and `ready` depend on, besides the container itself. */
interface ProbesSeen {
  readonly results: Pick<ProbeResults, "get">;
  /** True if the container's probe of this type has a worker. */
  readonly hasWorker: (type: ProbeType) => boolean;
}

/** kubelet 1.36: prober.manager.isContainerStarted. */
function isStarted({ id, state, wasStarted }: ProbedContainer, { results, hasWorker }: ProbesSeen): boolean {
  if (state !== "running" || id === null) return false;
  const result = results.get(id, "startup");
  if (result !== undefined) return result === "Success";
  return wasStarted === true || !hasWorker("startup");
}

/**
 * `ready` of the container's status. `managerStartMs`: wall-clock start of the daemon's probes. kubelet 1.36:
 * prober.manager.UpdatePodStatus, setReadyStateOnKubeletRestart.
 */
function isReady(
  pod: Pick<ProbedPod, "wasReady">,
  container: ProbedContainer,
  seen: ProbesSeen,
  managerStartMs: number,
): boolean {
  const { id, startedAtMs, probes } = container;
  if (!isStarted(container, seen) || id === null) return false;
  const result = seen.results.get(id, "readiness");
  if (result === "Success") return true;
  const isUnprobed = !seen.hasWorker("readiness");
  if (startedAtMs === null || startedAtMs >= managerStartMs - RESTART_GRACE_MS) return isUnprobed;
  return (isUnprobed || result === undefined) && (probes.readiness === null || pod.wasReady);
}
