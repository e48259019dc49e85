import type { Result } from "../../api/base/result.ts";
import type { BackOffLimits } from "../../api/decide/probes/back-off.ts";
import type { QuantityList } from "../../api/model/allocatable.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import type { Journal } from "../apply/journal.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { PodRuntime } from "../containerd/cri.ts";
import type { DecisionClient, Problem } from "../core/interfaces.ts";
import type { PodContainer, RunnablePod } from "../lifecycle/pod.ts";
import { isStopped, observedEvent } from "../lifecycle/pod-state.ts";
import type { Served } from "../lifecycle/spec/field-value.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { ListeningPorts } from "../machine/listening-ports.ts";
import type { LoopDeps, PassReport } from "../pass/loop.ts";
import type { Counters } from "../status/counters.ts";
import { AdmissionBackoff, CapacityGeneration } from "./admission/admission-backoff.ts";
import { ForeignSandboxes, type KubeletDevices } from "./admission/foreign-sandboxes.ts";
import { HostPorts } from "./admission/host-ports.ts";
import { NodeSnapshotter, PublishedSnapshot, StartErrors } from "./admission/node-snapshotter.ts";
import type { OtherKubelet } from "./admission/other-kubelet.ts";
import { PodAdmitter } from "./admission/pod-admitter.ts";
import { CgroupPasses } from "./cgroups/cgroup-passes.ts";
import type { CgroupView, CurrentCgroups } from "./cgroups/cgroup-view.ts";
import type { Processes } from "./cgroups/orphan-processes.ts";
import type { ManagerFiles } from "./devices/manager-files.ts";
import type { NodeClaimsPort } from "./devices/pod-claims.ts";
import type { NodeDevices } from "./devices/port.ts";
import { type EvictionDeps, Evictor } from "./eviction/evictor.ts";
import type { OnPodEvent, PodClock } from "./pod-clock.ts";
import { PodLifecycle } from "./pod-lifecycle.ts";
import { type DesiredPods, desiredPodsReader, type RefusedManifest } from "./records/desired-pods.ts";
import { type CompleteContainer, type PodHealth, type PodProbes, PodSet } from "./records/pod-set.ts";
import { type PodRecords, podEventRecorder } from "./records/records.ts";
import { ResizeActuator } from "./resize/actuator.ts";
import { ResizeEvents } from "./resize/resize-events.ts";
import { Resizer } from "./resize/resizer.ts";
import { PodCleanup } from "./sync/pod-cleanup.ts";
import { PodDispatcher } from "./sync/pod-dispatcher.ts";
import { PodReconciler } from "./sync/pod-reconciler.ts";
import { PodWorkQueue } from "./sync/pod-work-queue.ts";
import type { PodWorker } from "./sync/pod-worker.ts";

/** The dependencies of the pod manager, by subject. Each part declares which of them it needs. */
export interface PodManagerDeps {
  readonly clock: PodClock;
  readonly pods: PodDeps;
  readonly runtime: RuntimeDeps;
  readonly node: NodeDeps;
  readonly decisions: DecisionDeps;
  readonly eviction: EvictionDeps;
  readonly observers: PodEventDeps;
}

/** Sources of pods: those that should run, and the records. */
export interface PodDeps {
  readonly readPods: LoopDeps["readPods"];
  readonly records: PodRecords;
}

/** The container runtime, and the worker that acts on it. */
export interface RuntimeDeps {
  readonly runtime: Pick<PodRuntime, "pods" | "updateContainer">;
  readonly worker: Pick<
    PodWorker,
    "sync" | "link" | "pruneLinks" | "end" | "forget" | "forgetOrphan" | "forgetVolumes" | "clear"
  >;
  readonly complete: CompleteContainer;
  readonly hashOf: (pod: RunnablePod, container: PodContainer) => string;
  /** Absent: no container is probed. */
  readonly probes?: PodProbes;
  /** Detection of another kubelet; absent: off. */
  readonly otherKubelet?: Pick<OtherKubelet, "observe" | "view" | "problems" | "takeStops">;
}

/** The machine and its configuration. */
export interface NodeDeps {
  readonly observeMachine: () => MachineFacts;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly hierarchy: Hierarchy;
  readonly journal: Journal;
  /** Updated by the manager. */
  readonly cgroups: CurrentCgroups;
  /** Access to processes; absent: unexplained processes are reported, never killed. */
  readonly processes?: Processes;
  /** The listening ports; absent: host ports are not checked. */
  readonly listening?: ListeningPorts;
}

/** The client for decisions, and the state files for them. */
export interface DecisionDeps {
  readonly client: DecisionClient;
  readonly files: ManagerFiles;
  /** Device plugins; absent: none are served. */
  readonly devices?: NodeDevices;
  /** ResourceClaims; absent: no DRA drivers are served. */
  readonly claims?: NodeClaimsPort;
  /** The health of pods' devices; absent: not known. */
  readonly health?: PodHealth;
  /** The devices that pods hold according to a kubelet's files. Absent: none. */
  readonly kubeletsDevices?: () => Result<readonly KubeletDevices[], string>;
}

/** Listeners for what happens. */
export interface PodEventDeps {
  readonly onEvent: OnPodEvent;
  readonly onProblem: (problem: Problem) => void;
  readonly onPass: (report: PassReport) => void;
  /** Called when a piece of work has ended, so that its result can be observed. */
  readonly onWorked: () => void;
  /** Counters of pod events; absent: nothing is counted. */
  readonly counters?: Pick<Counters, "restarted" | "refused" | "evicted" | "preempted">;
}

export interface ManagerSettings {
  readonly nodeName: string;
  /** The kubelet version that is reimplemented. */
  readonly profile: Profile;
  /** Optional features that are served; absent: none. */
  readonly serves?: Served;
  /** The owner's name, on everything that the daemon creates in the runtime. */
  readonly owner: string;
  readonly hostIPs: readonly string[];
  readonly cgroupMount: string;
  readonly cgroupRoot: string;
  readonly removeOrphans: boolean;
  readonly intervalMs: number;
  readonly evictionMs: number;
  readonly retryMs: number;
  /** Back-off limits for containers that keep ending; the configuration may change while the daemon runs. */
  readonly backOff: BackOffLimits;
  /** The number of pods that are worked on at the same time. */
  readonly maxAtOnce: number;
}

/** The results of a sync for people. */
export interface SyncView {
  /** Number of the manager's sync, from 1. */
  readonly sequence: number;
  readonly refused: readonly RefusedManifest[];
  readonly problems: readonly Problem[];
  readonly notices: readonly Problem[];
  /** True: the runtime answered. */
  readonly isAnswering: boolean;
}

/** The parts of the manager; each depends on those above it. */
function partsOf(deps: PodManagerDeps, settings: ManagerSettings) {
  const { clock, pods, runtime, node, decisions, eviction, observers } = deps;
  const eventsOf = podEventRecorder(clock, observers.onEvent);
  const all = { clock, eventsOf, ...runtime, ...node, ...decisions, ...eviction, ...observers };
  const set = new PodSet(pods.records, settings, runtime.complete, runtime.probes, decisions.health);
  const capacity = new CapacityGeneration();
  const backOff = new AdmissionBackoff(all, capacity, settings);
  const queue = new PodWorkQueue(all);
  const cleanup = new PodCleanup(all, set, queue);
  const lifecycle = new PodLifecycle(all, { records: pods.records, set, queue, cleanup, capacity, backOff });
  const passes = new CgroupPasses(all, settings, set);
  const snapshotter = new NodeSnapshotter(all, settings, set, () => node.cgroups.allocatable);
  const shared = { set, lifecycle, capacity, snapshotter, cleanup };
  const foreign = new ForeignSandboxes(all, set);
  const hostPorts = new HostPorts(all, set);
  const admitter = new PodAdmitter(all, { ...shared, backOff, hostPorts, foreign });
  const events = new ResizeEvents(eventsOf);
  const resizer = new Resizer(all, settings, { ...shared, admitter, events });
  const resizes = new ResizeActuator(node.hierarchy, settings, { ...shared, passes, events });
  return {
    ...shared,
    queue,
    passes,
    foreign,
    hostPorts,
    admitter,
    resizer,
    resizes,
    dispatcher: new PodDispatcher(all, settings, { ...shared, queue, admitter, foreign, resizes }),
    reconciler: new PodReconciler(all, { ...shared, resizer }),
    evictor: new Evictor(all, settings, { ...shared, passes }),
    startErrors: new StartErrors(all, set, snapshotter),
    published: new PublishedSnapshot(all, set, snapshotter),
  };
}

/**
 * Starts pods, keeps them as decided and stops them: observe, compare, decide, plan, apply, one sync after another.
 * Work on a pod runs beside the syncs, one piece at a time per pod.
 */
export class PodManager {
  readonly #deps: PodManagerDeps;
  readonly #settings: ManagerSettings;
  readonly #parts: ReturnType<typeof partsOf>;
  readonly #read: ReturnType<typeof desiredPodsReader>;
  #desired: DesiredPods | null = null;
  readonly #standing: Record<"passes" | "evictor", readonly Problem[]> = { passes: [], evictor: [] };
  #sequence = 0;

  constructor(deps: PodManagerDeps, settings: ManagerSettings) {
    this.#deps = deps;
    this.#settings = settings;
    this.#read = desiredPodsReader(settings.nodeName, settings.profile, settings.serves);
    this.#parts = partsOf(deps, settings);
  }

  get set(): PodSet {
    return this.#parts.set;
  }
  /** The only place that handles events of pods' lives. */
  get lifecycle(): PodLifecycle {
    return this.#parts.lifecycle;
  }
  /** The node's snapshot for others, at any time. */
  get published(): PublishedSnapshot {
    return this.#parts.published;
  }
  /** The view of the last pass over the cgroups; null: there was none yet. */
  get view(): CgroupView | null {
    return this.#deps.node.cgroups.view;
  }
  /** The node's allocatable; null: it was not decided yet. */
  get allocatable(): QuantityList | null {
    return this.#deps.node.cgroups.allocatable;
  }

  /** INVARIANT: never throws because of external failures. */
  async sync(): Promise<SyncView> {
    const { pods, runtime, clock, decisions, eviction } = this.#deps;
    const {
      set,
      queue,
      foreign,
      startErrors: startRefusals,
      resizer,
      resizes,
      admitter,
      hostPorts,
      dispatcher,
    } = this.#parts;
    const problems: Problem[] = [];
    const untouched = queue.idle();
    const read = await pods.readPods(set.inForce());
    this.#desired = this.#read(read) ?? this.#desired;
    const listed = await runtime.runtime.pods();
    if (listed.ok) set.update(listed.value);
    else problems.push({ from: "runtime", message: `${listed.error.call}: ${listed.error.message}` });
    problems.push(...this.#recordForeignStops());
    runtime.otherKubelet?.observe(listed.ok ? listed.value : null);
    problems.push(...(runtime.otherKubelet?.problems() ?? []), ...read.problems);
    if (listed.ok) problems.push(...this.#reconcile(read.pods === null, untouched, clock.nowMs()));
    problems.push(...foreign.observe());
    const sequence = ++this.#sequence;
    // admission needs the node's allocatable
    if (this.allocatable === null) await this.#observeIfDue("passes", sequence);
    problems.push(...(await startRefusals.run(sequence)));
    problems.push(...(await resizer.askWaiting(sequence)));
    problems.push(...(await admitter.admitWaiting(sequence)));
    problems.push(...hostPorts.observe());
    resizes.observe();
    await this.#observeIfDue("passes", sequence);
    problems.push(...resizes.report());
    if (listed.ok) dispatcher.putToWork(untouched, this.view);
    await this.#observeIfDue("evictor", sequence);
    problems.push(...this.#standing.passes, ...this.#standing.evictor, ...(decisions.devices?.problems() ?? []));
    problems.push(...(decisions.claims?.problems() ?? []));
    problems.push(...(eviction.stats?.unseen ?? []));
    for (const message of pods.records.writeLate()) problems.push({ from: "pods", message });
    const { refused = [], notices = [] } = this.#desired ?? {};
    return { sequence, refused, problems, notices, isAnswering: listed.ok };
  }

  /** Runs before any decision: handles pods that came, changed or ended, and tells probes and devices which pods are on the node. */
  #reconcile(isUnread: boolean, untouched: (uid: string) => boolean, nowMs: number): readonly Problem[] {
    const { set, reconciler } = this.#parts;
    const problems = reconciler.reconcile(this.#desired, isUnread, nowMs);
    this.#observe(untouched, nowMs);
    const { devices, claims } = this.#deps.decisions;
    if (!isUnread && this.#desired?.whole === true) claims?.reconcile(() => this.#holders());
    const living = set.living();
    this.#deps.runtime.probes?.sync(living, (known) => set.statusOf(known, nowMs));
    devices?.recover(living);
    devices?.update(new Set(living.map(({ uid }) => uid)));
    return problems;
  }

  /** Uids of all pods that may hold claims. */
  #holders(): ReadonlySet<string> {
    const { set } = this.#parts;
    const known = [...set.records.entries()].filter(([, { state }]) => state !== "terminated");
    const running = [...(set.allRuntimePods ?? [])].filter(([, pod]) => !isStopped(pod));
    return new Set([...known, ...running].map(([uid]) => uid));
  }

  #recordForeignStops(): readonly Problem[] {
    const stops = this.#deps.runtime.otherKubelet?.takeStops() ?? [];
    return stops.flatMap(({ pod, containers }) => {
      const fault = this.lifecycle.handle(pod.uid, { kind: "StoppedByOthers", containers: containers.length });
      return fault === null ? [] : [{ from: "pods" as const, message: fault }];
    });
  }

  /** Handles pods that have ended since the last sync, that exceed their deadline, and that may be tried again. */
  #observe(untouched: (uid: string) => boolean, nowMs: number): void {
    const { set, lifecycle, cleanup, snapshotter } = this.#parts;
    const { retryMs } = this.#settings;
    const isUnderPressure = snapshotter.conditions.length > 0;
    for (const known of [...set.all()].filter(({ uid }) => untouched(uid))) {
      const { uid } = known;
      const status = () => set.statusOf(known, nowMs);
      const isCleared = cleanup.isCleared(uid);
      const event = observedEvent({ ...known, nowMs, status, isCleared, isUnderPressure, retryMs });
      // the pod's claims are released before its end is reported
      const isEnd = event?.kind === "Stopped" || event?.kind === "Finished";
      if (isEnd && this.#deps.decisions.claims?.released(known.pod) === false) continue;
      // these events always succeed, even on a full disk: `handle` returns no fault
      if (event !== null) lifecycle.handle(uid, event);
    }
  }

  /** Problems of an observation remain until the next one. */
  async #observeIfDue(by: "passes" | "evictor", sequence: number): Promise<void> {
    const { passes, evictor, resizes } = this.#parts;
    const problems =
      by === "passes"
        ? await passes.runIfDue(sequence, (known) => resizes.formOf(known))
        : await evictor.runIfDue(sequence);
    this.#standing[by] = problems ?? this.#standing[by];
  }

  /** Resolves when no work on any pod is running. */
  rest(): Promise<void> {
    return this.#parts.queue.rest();
  }
  /** Stops admission. */
  drain(): void {
    this.#parts.admitter.close();
  }
  /** Ends running work at its next step. */
  stop(): void {
    this.#parts.queue.stop();
  }
}
